"""The ways in for devices: HTTP and MQTT."""
