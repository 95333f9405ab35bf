"""Home Assistant finds the devices by itself, by MQTT discovery on the user's broker."""
