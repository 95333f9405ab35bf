"""Read what a broker sends to a subscriber of MQTT 3.1.1, and make what it gets. No I/O, no clock."""

import struct
from collections.abc import Sequence
from functools import lru_cache

from gateway.transports.mqtt_link import PACKET_BYTES, MqttUrl

CONNACK, PUBLISH, RELEASE, SUBACK, PINGRESP = 0x20, 0x30, 0x62, 0x90, 0xD0
"""First bytes of the packets that a broker sends; a PUBLISH has its flags in the lower four bits."""

BODY_BYTES = {CONNACK: 2, RELEASE: 2, PINGRESP: 0}
"""Bytes after the header of the packets that have a fixed length."""

PING, GOODBYE = b"\xc0\0", b"\xe0\0"
"""PINGREQ and DISCONNECT."""

PUBACK, PUBREC, PUBCOMP = b"\x40\2%c%c", b"\x50\2%c%c", b"\x70\2%c%c"
"""Answers that name a packet id, as formats of its two bytes."""

REFUSALS = {
    1: "Unsupported protocol version",
    2: "Client identifier not valid",
    3: "Server unavailable",
    4: "Bad user name or password",
    5: "Not authorized",
}
"""The reasons of a CONNACK that refuses (MQTT 3.1.1 section 3.2.2.3)."""

REFUSED_FILTER = 0x80
"""The code of a SUBACK for a filter that the broker refuses."""

REMEMBERED_TOPICS = 512
"""Topics that need not be decoded again."""


class Unreadable(Exception):
    """Bytes that end the connection to a broker, with the fault in words."""


class BrokerPackets:
    """Cuts the bytes of a connection into packets.

    Of a packet that is too long (up to 256 MB) only the beginning is kept, with topic and packet id. The
    connection is not ended, because the broker would send the packet again, for ever.
    """

    __slots__ = ("_at", "_data", "_skip", "is_cut")

    def __init__(self) -> None:
        self._data = b""
        self._at = 0
        self._skip = 0
        self.is_cut = False
        """Whether the last packet was too long."""

    def feed(self, data: bytes) -> None:
        """Take bytes of the connection."""
        if self._skip:
            skipped = min(self._skip, len(data))
            self._skip -= skipped
            data = data[skipped:]
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0

    def next(self) -> tuple[int, bytes] | None:
        """Return first byte and body of the next packet, None until more bytes are there."""
        data, at = self._data, self._at
        there = len(data)
        if there - at < 2:
            return None
        length, start = data[at + 1], at + 2
        if length > 0x7F:
            length, start = self._length(at + 1)
            if not start:
                return None
        if length != BODY_BYTES.get(data[at], length):
            raise Unreadable("malformed")
        end = start + length
        self.is_cut = length > PACKET_BYTES
        if self.is_cut and there >= start + PACKET_BYTES:
            self._at, self._skip = min(end, there), max(0, end - there)
            return data[at], data[start : start + PACKET_BYTES]
        if end > there:
            return None
        self._at = end
        return data[at], data[start:end]

    def _length(self, at: int) -> tuple[int, int]:
        """Return the length that begins at this byte and its end, (0, 0) if its end is not there yet."""
        length = 0
        for place, byte in enumerate(self._data[at : at + 4]):
            length |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return length, at + place + 1
        if len(self._data) - at >= 4:
            raise Unreadable("a length of more than four bytes")
        return 0, 0


def parts_of_publish(first: int, body: bytes) -> tuple[str, bytes, int, int]:
    """Return topic, content, quality of service and packet id (0 at QoS 0) of a PUBLISH."""
    qos = first >> 1 & 3
    if len(body) < 2 or qos == 3:
        raise Unreadable("malformed")
    stop = 2 + (body[0] << 8 | body[1])
    if not qos:
        if stop > len(body):
            raise Unreadable("malformed")
        return _topic(body[2:stop]), body[stop:], 0, 0
    if stop + 2 > len(body):
        raise Unreadable("malformed")
    return _topic(body[2:stop]), body[stop + 2 :], qos, body[stop] << 8 | body[stop + 1]


@lru_cache(REMEMBERED_TOPICS)
def _topic(raw: bytes) -> str:
    """Return a topic as text, an empty one if it is none: such a message is acknowledged and no more."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return ""


def connect(url: MqttUrl, client_id: str, keep_alive_s: int) -> bytes:
    """Make a CONNECT for a session that outlives the connection."""
    flags, texts = 0, [client_id]
    if url.user is not None:
        flags |= 0x80
        texts.append(url.user)
        if url.password is not None:
            flags |= 0x40
            texts.append(url.password)
    body = b"\0\4MQTT\4" + struct.pack(">BH", flags, keep_alive_s)
    return _packet(0x10, body + b"".join(map(_text, texts)))


def subscribe(mid: int, filters: Sequence[str]) -> bytes:
    """Make a SUBSCRIBE at QoS 1."""
    return _packet(0x82, struct.pack(">H", mid) + b"".join(_text(name) + b"\1" for name in filters))


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">H", len(raw)) + raw


def _packet(first: int, body: bytes) -> bytes:
    length, digits = len(body), bytearray()
    while length > 0x7F:
        digits.append(length & 0x7F | 0x80)
        length >>= 7
    digits.append(length)
    return bytes((first,)) + digits + body
