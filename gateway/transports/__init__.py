"""The ways in for devices: HTTP, MQTT and TCP."""
