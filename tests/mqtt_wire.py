"""Packets as MQTT clients send them, in all versions, from the standards' texts alone: none of our parser."""

from collections.abc import Iterable
from dataclasses import dataclass

MQTT_3_1, MQTT_3_1_1, MQTT_5 = 3, 4, 5
LEVELS = (MQTT_3_1, MQTT_3_1_1, MQTT_5)
NAMES = {MQTT_3_1: b"MQIsdp", MQTT_3_1_1: b"MQTT", MQTT_5: b"MQTT"}

PING = b"\xc0\x00"
PONG = b"\xd0\x00"
GOODBYE = b"\xe0\x00"

USER, PASSWORD, WILL_RETAIN, WILL, CLEAN = 0x80, 0x40, 0x20, 0x04, 0x02
DUP, RETAIN = 0x08, 0x01


def text(raw: str | bytes) -> bytes:
    """A text, or bytes, after its length in two bytes."""
    octets = raw.encode() if isinstance(raw, str) else raw
    return len(octets).to_bytes(2) + octets


def length(number: int) -> bytes:
    """A length in one to four bytes, seven bits in each, lowest first."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*digits, number])


def packet(first: int, body: bytes = b"") -> bytes:
    return bytes([first]) + length(len(body)) + body


def properties(level: int, raw: bytes = b"") -> bytes:
    """Properties after their length; nothing before MQTT 5."""
    return length(len(raw)) + raw if level == MQTT_5 else b""


@dataclass(frozen=True)
class Will:
    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    properties: bytes = b""


def connect(
    level: int = MQTT_3_1_1,
    client_id: str | bytes = "test",
    *,
    clean: bool = True,
    keep_alive: int = 60,
    user: str | bytes | None = None,
    password: str | bytes | None = None,
    will: Will | None = None,
    raw: bytes = b"",
    bridge: bool = False,
) -> bytes:
    """CONNECT; `raw` are its properties."""
    flags = CLEAN if clean else 0
    rest = text(client_id)
    if will is not None:
        flags |= WILL | will.qos << 3 | (WILL_RETAIN if will.retain else 0)
        rest += properties(level, will.properties) + text(will.topic) + text(will.payload)
    if user is not None:
        flags |= USER
        rest += text(user)
    if password is not None:
        flags |= PASSWORD
        rest += text(password)
    head = text(NAMES[level]) + bytes([level | (0x80 if bridge else 0), flags]) + keep_alive.to_bytes(2)
    return packet(0x10, head + properties(level, raw) + rest)


def publish(
    topic: str | bytes,
    payload: bytes,
    qos: int = 0,
    mid: int = 0,
    *,
    level: int = MQTT_3_1_1,
    retain: bool = False,
    dup: bool = False,
    raw: bytes = b"",
) -> bytes:
    first = 0x30 | qos << 1 | retain | (DUP if dup else 0)
    ident = mid.to_bytes(2) if qos else b""
    return packet(first, text(topic) + ident + properties(level, raw) + payload)


def release(mid: int) -> bytes:
    """PUBREL; as short in MQTT 5."""
    return packet(0x62, mid.to_bytes(2))


def subscribe(mid: int, filters: Iterable[str], level: int = MQTT_3_1_1, qos: int = 0) -> bytes:
    body = b"".join(text(each) + bytes([qos]) for each in filters)
    return packet(0x82, mid.to_bytes(2) + properties(level) + body)


def unsubscribe(mid: int, filters: Iterable[str], level: int = MQTT_3_1_1) -> bytes:
    return packet(0xA2, mid.to_bytes(2) + properties(level) + b"".join(map(text, filters)))
