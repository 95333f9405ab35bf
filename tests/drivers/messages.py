"""MQTT messages for tests, and the payloads that the MQTT part makes of them."""

from typing import Any

from gateway.domain.payload import Payload
from gateway.ingest.assembler import Assembler, split_topic
from gateway.ingest.mqtt_link import Message

ARRIVAL = 1_741_980_600.5


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
            received_at=ARRIVAL,
        )
        result.append((message, address))
    return result


def payloads_of(messages: list[dict[str, Any]]) -> list[Payload]:
    """What the MQTT part hands to the intake for messages that are delivered live."""
    assembler = Assembler()
    sent = [[message["topic"], message["payload"]] for message in messages]
    groups = [
        group
        for message, (name, key) in as_messages(sent)
        for group in assembler.add(name, key, message, 0.0)
    ]
    groups += assembler.due(1e9)
    return [group.payload() for group in groups]
