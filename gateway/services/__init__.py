"""The services of the gateway, free of HTTP, MQTT and SQL."""
