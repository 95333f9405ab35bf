"""What the gateway does, free of HTTP, MQTT and SQL."""
