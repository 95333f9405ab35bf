"""How a report leaves the device: one short HTTP or MQTT connection, as before deep sleep."""
