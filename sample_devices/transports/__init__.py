"""How a report leaves the device: one short HTTP, MQTT or TCP connection, as before deep sleep."""
