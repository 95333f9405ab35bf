"""MQTT messages for tests, and the payloads that the MQTT part makes of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.domain.payload import Payload
from gateway.drivers import BY_NAME
from gateway.transports.assembler import Assembler, is_missing
from gateway.transports.mqtt import whole_payload
from gateway.transports.mqtt_link import Message
from gateway.transports.topics import TopicMap

ARRIVAL = 1_741_980_600.5

CHOSEN = (
    "brewery/bpl1=brewpiless",
    "cellar-tilt/sensor/+/state=esphome",
    "$aws/things/+/shadow/update=aws",
    "homeassistant/sensor/{label}/{key}=home_assistant",
    "cbpi/sensordata/gravityGravityGravity1=fermenter 1:gravity",
    "cbpi/sensordata/temperatureTemperatu1=fermenter 1:temp",
)
"""What the users of the cases' devices would tell the gateway, as firmware has no topic of its own."""


def topic_map(chosen: Sequence[str] = CHOSEN) -> TopicMap:
    """The gateway's own topics and these, as far as there are drivers for them."""
    return TopicMap([text for text in chosen if ":" in text or text.rpartition("=")[2] in BY_NAME])


def as_messages(sent: Sequence[Mapping[str, Any]]) -> list[Message]:
    """As they are delivered live, whatever the broker also keeps of them."""
    return [
        Message(
            topic=message["topic"],
            payload=message["payload"].encode(),
            qos=0,
            retain=False,
            dup=False,
            mid=0,
            number=place,
            connection=0,
            received_at=ARRIVAL,
        )
        for place, message in enumerate(sent)
    ]


def payloads_of(messages: Sequence[Mapping[str, Any]], chosen: Sequence[str] = CHOSEN) -> list[Payload]:
    """What the MQTT part hands to the intake for messages that are delivered live."""
    topics, assembler = topic_map(chosen), Assembler()
    payloads: list[Payload] = []
    groups = []
    for message in as_messages(messages):
        place = topics.place_of(message.topic)
        if place is None or (place.key is None and is_missing(message.payload)):
            continue
        if place.key is None:
            payloads.append(whole_payload(place, message))
        else:
            groups += assembler.add(place, message, 0.0)
    groups += assembler.due(float("inf"))
    return payloads + [group.payload() for group in groups if not group.is_empty()]
