"""Read packets of MQTT 3.1, 3.1.1 and 5.0, as a server needs that only takes. No I/O, no clock.

`Packets` makes packets of the bytes of one connection. It judges a packet by the first byte and by the length
in its header, before the body is there, and raises `Malformed` with the reason code of MQTT 5.

Wills, retain flags and most properties are checked and forgotten, because nothing is ever delivered.
"""

from dataclasses import dataclass
from functools import lru_cache

from gateway.transports.mqtt_fields import (
    ALIAS,
    AUTH_DATA,
    AUTH_METHOD,
    IN_CONNECT,
    IN_GOODBYE,
    IN_PUBLISH,
    IN_RELEASE,
    IN_SUBSCRIBE,
    IN_UNSUBSCRIBE,
    IN_WILL,
    MQTT_3_1,
    MQTT_3_1_1,
    MQTT_5,
    RECEIVE,
    SESSION_EXPIRY,
    Body,
    Code,
    Malformed,
    text_of,
)

LEVELS = {(b"MQIsdp", MQTT_3_1), (b"MQTT", MQTT_3_1_1), (b"MQTT", MQTT_5)}
BRIDGE = 0x80
"""The bit of the protocol level by which mosquitto says that it is a bridge."""

CONNECT_BYTES = 8 * 1024
"""Bytes of a CONNECT after its header, at most."""

PAYLOAD_BYTES = 64 * 1024
"""Bytes of the content of a PUBLISH, at most."""

TOPIC_BYTES = 1024
"""Bytes of the topic of a PUBLISH, at most."""

PUBLISH_BYTES = 67_600
"""Bytes of a PUBLISH after its header, at most: content, topic and a kilobyte of properties."""

RELEASE_BYTES = 256
"""Bytes of a PUBREL after its header, at most."""

FILTERS_BYTES = 16 * 1024
"""Bytes of a SUBSCRIBE or UNSUBSCRIBE after its header, at most."""

FILTERS = 64
"""Filters of a SUBSCRIBE or UNSUBSCRIBE, at most."""

GOODBYE_BYTES = 1024
"""Bytes of a DISCONNECT after its header, at most."""

CREDENTIAL_BYTES = 256
"""Bytes of a client id, a user name and a password, each, at most."""

REMEMBERED_TOPICS = 512
"""Topics, of all connections together, that need not be decoded and checked again."""

FOREVER_S = 0xFFFFFFFF
"""The session expiry that means never."""

CONNECT, PUBLISH, RELEASE, SUBSCRIBE, UNSUBSCRIBE, PING, GOODBYE = 0x10, 0x30, 0x62, 0x82, 0xA2, 0xC0, 0xE0
DUP = 0x08
LIMITS = {
    **{PUBLISH | flags: PUBLISH_BYTES for flags in (0, 1, 2, 3, 4, 5, 10, 11, 12, 13)},
    RELEASE: RELEASE_BYTES,
    SUBSCRIBE: FILTERS_BYTES,
    UNSUBSCRIBE: FILTERS_BYTES,
    PING: 0,
    GOODBYE: GOODBYE_BYTES,
}
"""First bytes that a connected client may send, with the most bytes that follow the header."""

LIMITS_3_1 = LIMITS | {first | DUP: LIMITS[first] for first in (RELEASE, SUBSCRIBE, UNSUBSCRIBE)}
"""The same for MQTT 3.1, which marks these three when they are sent again."""

LIMITS_FIRST = {CONNECT: CONNECT_BYTES}
"""The same for a client that has not connected."""


@dataclass(slots=True)
class Connect:
    """The first packet. `session_expiry`: seconds to keep the session, 0 if it ends with the connection."""

    level: int
    bridge: bool
    clean: bool
    keep_alive: int
    client_id: str
    user: str | None
    password: bytes | None
    session_expiry: int
    receive_maximum: int


@dataclass(slots=True)
class Publish:
    """A message; `mid` is 0 at QoS 0."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    mid: int


@dataclass(slots=True)
class Release:
    """PUBREL: the client forgets its message of this id."""

    mid: int


@dataclass(slots=True)
class Filters:
    """SUBSCRIBE, or UNSUBSCRIBE."""

    mid: int
    filters: tuple[str, ...]
    subscribe: bool


@dataclass(slots=True)
class Ping:
    """PINGREQ."""


@dataclass(slots=True)
class Goodbye:
    """DISCONNECT; `session_expiry` replaces that of the CONNECT, if it is not None."""

    reason: int
    session_expiry: int | None


Packet = Connect | Publish | Release | Filters | Ping | Goodbye


class Packets:
    """Makes packets of the bytes of one connection. After a `Goodbye` or a fault there are no more.

    `level` is 0 until the level of a CONNECT is known, then 3, 4 or 5. An answer to a fault needs it.
    `first_byte` is the first byte of a connection that does not begin with a CONNECT, else None.
    """

    __slots__ = ("_at", "_data", "_is_over", "_keeps", "_limits", "_more", "_needed", "first_byte", "level")

    def __init__(self) -> None:
        self.level = 0
        self._limits = LIMITS_FIRST
        self._data = b""
        self._at = 0
        self._more = bytearray()
        self._needed = 1
        self._keeps = False
        self._is_over = False
        self.first_byte: int | None = None

    @property
    def unfinished(self) -> int:
        """Return how many bytes wait: those of an unfinished packet, once `next` has returned None."""
        return len(self._data) - self._at + len(self._more)

    def feed(self, data: bytes | memoryview) -> None:
        """Take bytes of the connection. The caller may use a memory view's buffer again."""
        if self._is_over:
            return
        if self._more or self._at < len(self._data):
            self._more += data
        else:
            self._data, self._at = bytes(data), 0

    def next(self) -> Packet | None:
        """Return the next packet, None until more bytes are there. Raise `Malformed` for a fault."""
        try:
            return self._next()
        except Malformed:
            self._stop()
            raise

    def _next(self) -> Packet | None:
        data, at = self._data, self._at
        there = len(data) - at
        if there < self._needed:
            return self._wait(self._needed)
        first = data[at]
        limit = self._limits.get(first)
        if limit is None:
            raise self._unwelcome(first)
        if there < 2:
            return self._wait(2)
        length, start = data[at + 1], at + 2
        if length > 0x7F:
            length, start = self._length(at + 1)
            if not start:
                return self._wait(there + 1)
        if length > limit:
            raise Malformed(Code.TOO_LARGE, f"{length} bytes in a packet of type {first >> 4}")
        end = start + length
        if end > len(data):
            return self._wait(end - at)
        self._at, self._needed = end, 1
        return self._publish(first, start, end) if first >> 4 == 3 else self._other(first, start, end)

    def _wait(self, needed: int) -> Packet | None:
        """Go on if the packet has so many bytes, else wait for them, and keep no byte before it."""
        self._needed = needed
        if self._more and self.unfinished >= needed:
            # Not at each `feed`, because a packet that comes in small pieces would be copied for each.
            self._data, self._at = self._data[self._at :] + self._more, 0
            self._more.clear()
            return self._next()
        if self._at:
            self._data, self._at = self._data[self._at :], 0
        return None

    def _stop(self) -> None:
        self._is_over, self._data, self._at, self._needed = True, b"", 0, 1
        self._more.clear()

    def _length(self, at: int) -> tuple[int, int]:
        """Return the length that begins at this byte and its end, (0, 0) if its end is not there yet."""
        length = 0
        for place, byte in enumerate(self._data[at : at + 4]):
            length |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                if not byte and self.level == MQTT_5:
                    raise Malformed(Code.MALFORMED, "a length is longer than it must be")
                return length, at + place + 1
        if len(self._data) - at >= 4:
            raise Malformed(Code.MALFORMED, "a length of more than four bytes")
        return 0, 0

    def _unwelcome(self, first: int) -> Malformed:
        if not self.level:
            self.first_byte = first
            return Malformed(Code.PROTOCOL_ERROR, f"byte {first:#04x} where a CONNECT must begin")
        if any(first >> 4 == known >> 4 for known in self._limits):
            return Malformed(Code.MALFORMED, f"flags of byte {first:#04x}")
        return Malformed(Code.PROTOCOL_ERROR, f"a packet of type {first >> 4}")

    def _publish(self, first: int, at: int, end: int) -> Publish:
        data = self._data
        qos = first >> 1 & 3
        begin = at + 2
        if begin > end:
            raise Malformed(Code.MALFORMED, "a PUBLISH without a topic")
        stop = begin + (data[at] << 8 | data[at + 1])
        rest = stop + 2 if qos else stop
        if rest > end:
            raise Malformed(Code.MALFORMED, "a PUBLISH ends in its topic")
        mid = 0
        if qos:
            mid = data[stop] << 8 | data[stop + 1]
            if not mid:
                raise Malformed(Code.PROTOCOL_ERROR, "a message of id 0")
        if self.level == MQTT_5:
            if rest < end and not data[rest]:
                rest += 1
            else:
                body = Body(data, rest, end)
                if ALIAS in body.properties(IN_PUBLISH):
                    raise Malformed(Code.BAD_ALIAS, "a topic alias, and none was offered")
                rest = body.at
        if end - rest > PAYLOAD_BYTES:
            raise Malformed(Code.TOO_LARGE, f"a message of {end - rest} bytes")
        topic = _topic(data[begin:stop])
        return Publish(topic, data[rest:end], qos, first & 1 == 1, first & DUP == DUP, mid)

    def _other(self, first: int, start: int, end: int) -> Packet:
        body = Body(self._data, start, end)
        if first == CONNECT:
            return self._connect(body)
        if first == PING:
            return Ping()
        if first == GOODBYE:
            return self._goodbye(body)
        mid = body.two()
        if not mid:
            raise Malformed(Code.PROTOCOL_ERROR, "a packet of id 0")
        if first & ~DUP == RELEASE:
            if self.level == MQTT_5 and not body.is_read:
                body.byte()
                if not body.is_read:
                    body.properties(IN_RELEASE)
            body.finish()
            return Release(mid)
        subscribe = first & ~DUP == SUBSCRIBE
        return Filters(mid, self._filters(body, subscribe), subscribe)

    def _connect(self, body: "Body") -> Connect:
        name, level = body.binary(), body.byte()
        bridge, level = level & BRIDGE == BRIDGE, level & ~BRIDGE
        if (name, level) not in LEVELS:
            raise Malformed(Code.UNKNOWN_VERSION, f"protocol {name[:16]!r}, level {level}")
        self.level = level
        self._limits = LIMITS_3_1 if level == MQTT_3_1 else LIMITS
        flags, keep_alive = body.byte(), body.two()
        has_user, has_password, has_will, clean = flags & 0x80, flags & 0x40, flags & 4, flags & 2 == 2
        if flags & 1 or flags & 0x18 == 0x18 or (flags & 0x38 and not has_will):
            raise Malformed(Code.MALFORMED, f"flags {flags:#04x} of a CONNECT")
        if level != MQTT_5 and has_password and not has_user:
            raise Malformed(Code.MALFORMED, "a password without a user")
        more = body.properties(IN_CONNECT) if level == MQTT_5 else {}
        if AUTH_METHOD in more or AUTH_DATA in more:
            raise Malformed(Code.BAD_AUTHENTICATION, "a method of authentication")
        client_id = body.text(CREDENTIAL_BYTES, Code.BAD_CLIENT_ID)
        if has_will:
            if level == MQTT_5:
                body.properties(IN_WILL)
            _topic(body.binary())
            body.binary()
        # Before 3.1.1 a flag may be there and the text not (MQTT 3.1 section 3.1).
        lenient = level == MQTT_3_1
        user = password = None
        if has_user and not (lenient and body.is_read):
            user = body.text(CREDENTIAL_BYTES, Code.BAD_CREDENTIALS)
        if has_password and not (lenient and body.is_read):
            password = body.binary(CREDENTIAL_BYTES, Code.BAD_CREDENTIALS)
        body.finish()
        if level == MQTT_5:
            expiry = more.get(SESSION_EXPIRY, 0)
        elif clean:
            expiry = 0
        elif client_id:
            expiry = FOREVER_S
        else:
            raise Malformed(Code.BAD_CLIENT_ID, "no client id, and a session that is to be kept")
        self._keeps = expiry > 0
        maximum = more.get(RECEIVE, 0xFFFF)
        return Connect(level, bridge, clean, keep_alive, client_id, user, password, expiry, maximum)

    def _filters(self, body: "Body", subscribe: bool) -> tuple[str, ...]:
        if self.level == MQTT_5:
            body.properties(IN_SUBSCRIBE if subscribe else IN_UNSUBSCRIBE)
        filters: list[str] = []
        while not body.is_read:
            if len(filters) == FILTERS:
                raise Malformed(Code.TOO_MUCH, f"more than {FILTERS} filters")
            filters.append(body.text())
            if not filters[-1]:
                raise Malformed(Code.PROTOCOL_ERROR, "an empty filter")
            if subscribe:
                options = body.byte()
                others = 0xC0 if self.level == MQTT_5 else 0xFC
                if options & 3 == 3 or options & others or options & 0x30 == 0x30:
                    raise Malformed(Code.PROTOCOL_ERROR, f"options {options:#04x} of a filter")
        if not filters:
            raise Malformed(Code.PROTOCOL_ERROR, "no filter")
        return tuple(filters)

    def _goodbye(self, body: "Body") -> Goodbye:
        reason, expiry = 0, None
        if self.level == MQTT_5 and not body.is_read:
            reason = body.byte()
            if not body.is_read:
                expiry = body.properties(IN_GOODBYE).get(SESSION_EXPIRY)
        body.finish()
        if expiry and not self._keeps:
            raise Malformed(Code.PROTOCOL_ERROR, "a DISCONNECT keeps a session that ends with its connection")
        self._stop()
        return Goodbye(reason, expiry)


# Of all connections together, because of each it would cost more memory than all its other parts.
@lru_cache(REMEMBERED_TOPICS)
def _topic(raw: bytes) -> str:
    if not 0 < len(raw) <= TOPIC_BYTES:
        raise Malformed(Code.BAD_TOPIC, f"a topic of {len(raw)} bytes")
    topic = text_of(raw)
    if "+" in topic or "#" in topic:
        raise Malformed(Code.BAD_TOPIC, "a topic with a wildcard")
    return topic
