"""Fields of MQTT packets: numbers, texts, the properties of MQTT 5; and the codes for what is wrong."""

from enum import IntEnum

MQTT_3_1, MQTT_3_1_1, MQTT_5 = 3, 4, 5
"""The levels of the protocol."""


class Code(IntEnum):
    """Reason codes of MQTT 5, for all versions. From 0x80 on they are faults."""

    NOBODY_LISTENS = 0x10
    NO_SUCH_FILTER = 0x11
    MALFORMED = 0x81
    PROTOCOL_ERROR = 0x82
    UNKNOWN_VERSION = 0x84
    BAD_CLIENT_ID = 0x85
    BAD_CREDENTIALS = 0x86
    NOT_AUTHORISED = 0x87
    NOT_NOW = 0x88
    STOPPING = 0x8B
    BAD_AUTHENTICATION = 0x8C
    KEEP_ALIVE = 0x8D
    TAKEN_OVER = 0x8E
    BAD_TOPIC = 0x90
    UNKNOWN_ID = 0x92
    TOO_MANY_IDS = 0x93
    BAD_ALIAS = 0x94
    TOO_LARGE = 0x95
    TOO_MUCH = 0x97


USER_PROPERTIES = 16
"""User properties of a packet, at most."""

BYTE, TWO, FOUR, VARIABLE, BINARY, TEXT, PAIR = range(7)
SUBSCRIPTION_ID, SESSION_EXPIRY, AUTH_METHOD, AUTH_DATA = 0x0B, 0x11, 0x15, 0x16
RECEIVE, ALIAS, USER, PACKET_MAXIMUM = 0x21, 0x23, 0x26, 0x27
KINDS = {
    0x01: BYTE,  # payload format
    0x02: FOUR,  # message expiry
    0x03: TEXT,  # content type
    0x08: TEXT,  # response topic
    0x09: BINARY,  # correlation data
    SUBSCRIPTION_ID: VARIABLE,
    SESSION_EXPIRY: FOUR,
    AUTH_METHOD: TEXT,
    AUTH_DATA: BINARY,
    0x17: BYTE,  # request problem information
    0x18: FOUR,  # will delay
    0x19: BYTE,  # request response information
    0x1F: TEXT,  # reason
    RECEIVE: TWO,
    0x22: TWO,  # topic alias maximum
    ALIAS: TWO,
    USER: PAIR,
    PACKET_MAXIMUM: FOUR,
}
"""The form of each property that a client may send (MQTT 5 section 2.2.2.2)."""

IN_CONNECT = {SESSION_EXPIRY, 0x17, 0x19, RECEIVE, 0x22, PACKET_MAXIMUM, USER, AUTH_METHOD, AUTH_DATA}
IN_PUBLISH = {0x01, 0x02, 0x03, 0x08, 0x09, ALIAS, USER}
IN_WILL = IN_PUBLISH - {ALIAS} | {0x18}
IN_RELEASE = {0x1F, USER}
IN_SUBSCRIBE = {SUBSCRIPTION_ID, USER}
IN_UNSUBSCRIBE = {USER}
IN_GOODBYE = {SESSION_EXPIRY, 0x1F, USER}
"""Properties that a client may send in each packet."""

NOT_ZERO = {SUBSCRIPTION_ID, RECEIVE, PACKET_MAXIMUM}


class Malformed(Exception):
    """Bytes that end the connection: the reason code of MQTT 5, and words for the log."""

    def __init__(self, code: Code, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


class Body:
    """The bytes of a packet after its header, read in order. A field that is not all there is a fault."""

    __slots__ = ("_data", "_end", "at")

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data = data
        self._end = end
        self.at = at

    @property
    def is_read(self) -> bool:
        """Return whether no byte is left."""
        return self.at == self._end

    def finish(self) -> None:
        """Raise `Malformed` if bytes are left."""
        if self.at != self._end:
            raise Malformed(Code.MALFORMED, f"{self._end - self.at} bytes are left over")

    def byte(self) -> int:
        """Read a byte."""
        return self._take(1)[0]

    def two(self) -> int:
        """Read an integer of two bytes."""
        return int.from_bytes(self._take(2))

    def four(self) -> int:
        """Read an integer of four bytes."""
        return int.from_bytes(self._take(4))

    def variable(self) -> int:
        """Read an integer of one to four bytes."""
        value = 0
        for shift in (0, 7, 14, 21):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if shift and not byte:
                    break
                return value
        raise Malformed(Code.MALFORMED, "an integer of a wrong length")

    def binary(self, most: int = 0xFFFF, code: Code = Code.TOO_LARGE) -> bytes:
        """Read bytes that follow their number. With more than `most` raise `Malformed` of this code."""
        size = self.two()
        if size > most:
            raise Malformed(code, f"{size} bytes where there may be {most}")
        return self._take(size)

    def text(self, most: int = 0xFFFF, code: Code = Code.TOO_LARGE) -> str:
        """Read a text, as `binary` reads bytes."""
        return text_of(self.binary(most, code))

    def properties(self, allowed: set[int]) -> dict[int, int]:
        """Read all properties, check them, and return those that are numbers; 0 stands for others."""
        size = self.variable()
        end = self.at + size
        if end > self._end:
            raise Malformed(Code.MALFORMED, "properties are longer than their packet")
        inner = Body(self._data, self.at, end)
        self.at = end
        found: dict[int, int] = {}
        users = 0
        while not inner.is_read:
            # Not `byte`: the standard writes an identifier as a variable integer, though all fit in one byte.
            name = inner.variable()
            if name not in allowed:
                raise Malformed(
                    Code.PROTOCOL_ERROR if name in KINDS else Code.MALFORMED, f"property {name:#04x}"
                )
            if name == USER:
                users += 1
                if users > USER_PROPERTIES:
                    raise Malformed(Code.TOO_MUCH, f"more than {USER_PROPERTIES} user properties")
            elif name in found:
                raise Malformed(Code.PROTOCOL_ERROR, f"property {name:#04x} is there twice")
            found[name] = value = inner._property(KINDS[name])
            if (name in NOT_ZERO and not value) or (KINDS[name] == BYTE and value > 1):
                raise Malformed(Code.PROTOCOL_ERROR, f"property {name:#04x} is {value}")
        return found

    def _property(self, kind: int) -> int:
        if kind in NUMBERS:
            return NUMBERS[kind](self)
        if kind == BINARY:
            self.binary()
        else:
            self.text()
            if kind == PAIR:
                self.text()
        return 0

    def _take(self, size: int) -> bytes:
        begin, self.at = self.at, self.at + size
        if self.at > self._end:
            raise Malformed(Code.MALFORMED, "a field ends after its packet")
        return self._data[begin : self.at]


NUMBERS = {BYTE: Body.byte, TWO: Body.two, FOUR: Body.four, VARIABLE: Body.variable}


def text_of(raw: bytes) -> str:
    """Decode a text. Raise `Malformed` if it is not UTF-8 or has a NUL."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Malformed(Code.MALFORMED, "a text that is not UTF-8") from None
    if "\0" in text:
        raise Malformed(Code.MALFORMED, "a text with a NUL")
    return text
