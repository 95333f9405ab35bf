"""MQTT messages for tests, from topic and text."""

from gateway.ingest.assembler import split_topic
from gateway.ingest.mqtt_link import Message


def as_messages(sent: list[list[str]]) -> list[tuple[Message, tuple[str, str]]]:
    """QoS 0 messages in order of arrival, each with the device's name and the key from its topic."""
    result = []
    for place, (topic, text) in enumerate(sent):
        address = split_topic(topic)
        assert address is not None
        message = Message(
            topic=topic,
            payload=text.encode(),
            qos=0,
            retain=False,
            dup=False,
            mid=0,
            place=place,
            connection=0,
            received_at=1_741_980_600.5,
        )
        result.append((message, address))
    return result
