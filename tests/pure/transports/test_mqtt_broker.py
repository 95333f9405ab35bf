"""What a broker sends, however it is cut, and what it gets, as our own listener reads it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.transports import mqtt_broker as broker
from gateway.transports.mqtt_broker import BrokerPackets, Unreadable, parts_of_publish
from gateway.transports.mqtt_link import PACKET_BYTES, MqttUrl
from gateway.transports.mqtt_packets import Connect, Filters, Packet, Packets
from tests.cases import each, examples
from tests.mqtt_wire import publish

TOPIC = "hydrometer/red"


def read(stream: bytes, *cuts: int) -> list[tuple[int, bytes]]:
    packets, found, start = BrokerPackets(), [], 0
    for end in (*sorted(cuts), len(stream)):
        packets.feed(stream[start:end])
        start = end
        while packet := packets.next():
            found.append(packet)
    return found


STREAM = b"".join(
    [
        b"\x20\x02\x00\x00",
        publish(TOPIC, b"x" * 20, qos=1, mid=7),
        b"\x90\x03\x00\x01\x01",
        b"\xd0\x00",
        publish(TOPIC, b"y" * 300, qos=1, mid=8),
        publish(TOPIC, b"z" * (PACKET_BYTES + 9), qos=1, mid=9),
        publish(TOPIC, b"", qos=0),
    ]
)


@settings(max_examples=examples(0.3))
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_packets_come_out_as_they_went_in_however_they_are_cut(cuts: list[int]) -> None:
    found = read(STREAM, *cuts)
    assert found == read(STREAM)
    assert [first for first, _ in found] == [0x20, 0x32, 0x90, 0xD0, 0x32, 0x32, 0x30]


def test_of_a_packet_that_is_too_long_the_beginning_is_kept() -> None:
    found = [
        (len(body), parts_of_publish(first, body)) for first, body in read(STREAM) if first & 0xF0 == 0x30
    ]
    assert [(size, topic, len(payload), qos, mid) for size, (topic, payload, qos, mid) in found] == [
        (2 + len(TOPIC) + 2 + 20, TOPIC, 20, 1, 7),
        (2 + len(TOPIC) + 2 + 300, TOPIC, 300, 1, 8),
        (PACKET_BYTES, TOPIC, PACKET_BYTES - len(TOPIC) - 4, 1, 9),
        (2 + len(TOPIC), TOPIC, 0, 0, 0),
    ]


@each(
    "packet",
    [
        b"\x20\x03\x00\x00\x00",
        b"\x32\x01\x00",
        b"\x30\x03\x00\x02x",
        b"\x32\x04\x00\x01x\x00",
        b"\x36\x06\x00\x01x\x00\x01y",
        b"\x30\xff\xff\xff\xff\x01",
    ],
)
def test_a_fault_ends_the_connection(packet: bytes) -> None:
    with pytest.raises(Unreadable):
        [parts_of_publish(first, body) for first, body in read(packet)]


def read_by_a_server(*packets: bytes) -> list[Packet | None]:
    server = Packets()
    server.feed(b"".join(packets))
    return [server.next() for _ in packets]


@each(
    "user, password",
    [(None, None), ("me", None), ("me", "geheim wört"), (None, "a password alone")],
)
def test_our_packets_are_those_of_the_standard(user: str | None, password: str | None) -> None:
    url = MqttUrl("h", 1, user=user, password=password)
    filters = [f"hydrometer/{number}/+" for number in range(20)]
    greeting, wanted = read_by_a_server(broker.connect(url, "gw", 60), broker.subscribe(1, filters))
    raw = password.encode() if user is not None and password is not None else None
    assert isinstance(greeting, Connect)
    assert (greeting.client_id, greeting.user, greeting.password) == ("gw", user, raw)
    assert (greeting.level, greeting.clean, greeting.keep_alive) == (4, False, 60)
    assert wanted == Filters(1, tuple(filters), subscribe=True)
