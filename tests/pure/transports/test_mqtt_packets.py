"""MQTT packets from bytes, however they are cut, and every way in which they can be wrong."""

import itertools
import tracemalloc
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.transports import mqtt_answers as answers
from gateway.transports.mqtt_fields import Code, Malformed
from gateway.transports.mqtt_packets import (
    Connect,
    Filters,
    Goodbye,
    Packet,
    Packets,
    Ping,
    Publish,
    Release,
)
from tests import mqtt_wire as wire
from tests.cases import each
from tests.hostile import mqtt_packets as fuzz
from tests.mqtt_wire import LEVELS, MQTT_3_1, MQTT_3_1_1, MQTT_5, Will, connect, packet, publish, text

MEGABYTES_256 = b"\xff\xff\xff\x7f"
"""The greatest length that a header can name."""


def read(pieces: Iterable[bytes]) -> list[Packet]:
    """All packets of bytes that come in these pieces."""
    packets, found = Packets(), []
    for piece in pieces:
        packets.feed(piece)
        while (one := packets.next()) is not None:
            found.append(one)
    return found


def fault(data: bytes, level: int = 0) -> Code | None:
    """The code of what is wrong with bytes that follow a good CONNECT of this level, if there is one."""
    packets = Packets()
    packets.feed((connect(level) if level else b"") + data)
    try:
        while packets.next() is not None:
            pass
    except Malformed as error:
        code, words = error.code, error.words
    else:
        return None
    assert words.isprintable()
    packets.feed(publish("a", b""))
    assert packets.next() is None, "nothing is read after a fault"
    assert packets.unfinished == 0
    return code


def stream(level: int) -> bytes:
    """Each packet that a client may send, with all that it may hold."""
    is_5 = level == MQTT_5
    will = Will(
        "a/status", b"gone", qos=2, retain=True, properties=b"\x18\0\0\0\x05\x01\x01" if is_5 else b""
    )
    expiry = b"\x11\0\0\x0e\x10\x21\0\x14\x26\0\x01a\0\x01b"
    return b"".join(
        (
            connect(
                level, "säule", clean=False, keep_alive=15, user="", password=b"\xff", will=will, raw=expiry
            ),
            publish("hydrometer/red", b"", level=level),
            publish("hydrometer/red", b"{}" * 400, 1, 1, level=level, retain=True),
            publish("ispindel/blä/tilt", bytes(20_000), 2, 65_535, level=level, dup=True),
            publish("$SYS/broker", b"\0", 0, level=level, raw=b"\x01\x01\x02\0\0\0\x09\x03\0\x01t"),
            wire.release(65_535),
            wire.subscribe(7, ["#", "a/+", "home/lamp/set"], level, qos=1),
            wire.unsubscribe(8, ["#"], level),
            wire.PING,
            packet(0xE0, b"\x04\x05\x11\0\0\0\x07") if is_5 else wire.GOODBYE,
        )
    )


def meaning(level: int) -> list[Packet]:
    """The packets of `stream`."""
    is_5 = level == MQTT_5
    expiry = 3600 if is_5 else 0xFFFFFFFF
    return [
        Connect(level, False, False, 15, "säule", "", b"\xff", expiry, 20 if is_5 else 65_535),
        Publish("hydrometer/red", b"", 0, False, False, 0),
        Publish("hydrometer/red", b"{}" * 400, 1, True, False, 1),
        Publish("ispindel/blä/tilt", bytes(20_000), 2, False, True, 65_535),
        Publish("$SYS/broker", b"\0", 0, False, False, 0),
        Release(65_535),
        Filters(7, ("#", "a/+", "home/lamp/set"), True),
        Filters(8, ("#",), False),
        Ping(),
        Goodbye(4, 7) if is_5 else Goodbye(0, None),
    ]


@each("level", LEVELS)
def test_each_packet_whole_and_byte_by_byte(level: int) -> None:
    assert read([stream(level)]) == meaning(level)
    assert read(bytes([byte]) for byte in stream(level)) == meaning(level)


@given(level=st.sampled_from(LEVELS), cuts=st.lists(st.integers(0, 21_200), max_size=12))
def test_cuts_change_no_packet(level: int, cuts: list[int]) -> None:
    data = stream(level)
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    buffer = bytearray(len(data))
    packets = Packets()
    found: list[Packet] = []
    for begin, end in itertools.pairwise(places):
        buffer[: end - begin] = data[begin:end]
        packets.feed(memoryview(buffer)[: end - begin])
        buffer[:] = bytes(len(buffer))  # of all connections: the next bytes are of another
        if len(found) % 3:  # now and then nothing is read between two pieces
            continue
        while (one := packets.next()) is not None:
            found.append(one)
    while (one := packets.next()) is not None:
        found.append(one)
    assert found == meaning(level)
    assert packets.unfinished == 0


def test_an_unfinished_packet_is_counted_and_holds_no_other_bytes() -> None:
    tail = publish("hydrometer/red", bytes(1000))[:100]
    chunk = connect() + publish("hydrometer/red", bytes(60_000)) + tail
    tracemalloc.start()
    try:
        waiting = [Packets() for _ in range(20)]
        for packets in waiting:
            packets.feed(chunk)
            while packets.next() is not None:
                pass
            assert packets.unfinished == len(tail)
        assert tracemalloc.get_traced_memory()[0] < 20 * 2_000
    finally:
        tracemalloc.stop()


def test_nothing_is_read_after_a_goodbye() -> None:
    packets = Packets()
    packets.feed(connect() + wire.GOODBYE + publish("hydrometer/red", b""))
    assert isinstance(packets.next(), Connect)
    assert isinstance(packets.next(), Goodbye)
    packets.feed(wire.PING)
    assert packets.next() is None
    assert packets.unfinished == 0


@each(
    "data, expected",
    [
        (connect(MQTT_3_1_1, ""), Connect(4, False, True, 60, "", None, None, 0, 65_535)),
        (connect(bridge=True), Connect(4, True, True, 60, "test", None, None, 0, 65_535)),
        (connect(user="", password=""), Connect(4, False, True, 60, "test", "", b"", 0, 65_535)),
        (connect(MQTT_5, "", clean=False), Connect(5, False, False, 60, "", None, None, 0, 65_535)),
        (connect(MQTT_5, password="x"), Connect(5, False, True, 60, "test", None, b"x", 0, 65_535)),
        # MQTT 3.1 section 3.1: flags of user and password, and no such texts.
        (
            packet(0x10, text("MQIsdp") + b"\x03\xc2\0\x3c" + text("a")),
            Connect(3, False, True, 60, "a", None, None, 0, 65_535),
        ),
    ],
)
def test_connects(data: bytes, expected: Connect) -> None:
    assert read([data]) == [expected]


ALLOWED = {
    *(0x30, 0x31, 0x32, 0x33, 0x3A, 0x3B, 0x34, 0x35, 0x3C, 0x3D),
    *(0x62, 0x82, 0xA2, 0xC0, 0xE0),
}
AGAIN_3_1 = {0x6A, 0x8A, 0xAA}
"""First bytes that a client may send after its CONNECT; in MQTT 3.1 three more with DUP."""


@each("level", [0, *LEVELS])
def test_every_first_byte(level: int) -> None:
    good = {0: {0x10}, MQTT_3_1: ALLOWED | AGAIN_3_1}.get(level, ALLOWED)
    for first in range(256):
        code = fault(bytes([first]), level)
        assert (code is None) == (first in good), hex(first)
        if code is not None:
            is_of_a_kind = level and first >> 4 in (3, 6, 8, 10, 12, 14)
            assert code == (Code.MALFORMED if is_of_a_kind else Code.PROTOCOL_ERROR), hex(first)


@each("level", LEVELS)
def test_every_flag_of_a_connect(level: int) -> None:
    for flags in range(256):
        body = (
            text(wire.NAMES[level]) + bytes([level, flags]) + b"\0\x3c" + wire.properties(level) + text("a")
        )
        if flags & wire.WILL:
            body += wire.properties(level) + text("w") + text("")
        body += text("u") * bool(flags & wire.USER) + text("p") * bool(flags & wire.PASSWORD)
        will_is_whole = flags >> 3 & 3 < 3 and (flags & wire.WILL or not flags & 0x38)
        password_may = level == MQTT_5 or flags & wire.USER or not flags & wire.PASSWORD
        good = not flags & 1 and will_is_whole and password_may
        assert fault(packet(0x10, body)) == (None if good else Code.MALFORMED), hex(flags)


KINDS = {
    **dict.fromkeys((0x01, 0x17, 0x19), b"\x01"),
    **dict.fromkeys((0x21, 0x22, 0x23), b"\0\x05"),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), b"\0\0\0\x05"),
    **dict.fromkeys((0x03, 0x08, 0x15, 0x1F), b"\0\x01t"),
    **dict.fromkeys((0x09, 0x16), b"\0\x01\xff"),
    0x0B: b"\x80\x01",
    0x26: b"\0\x01k\0\x01v",
}
"""A good value of each property that a client may send (MQTT 5 section 2.2.2.2)."""

MAY = {
    "connect": {0x11, 0x17, 0x19, 0x21, 0x22, 0x26, 0x27},
    "will": {0x01, 0x02, 0x03, 0x08, 0x09, 0x18, 0x26},
    "publish": {0x01, 0x02, 0x03, 0x08, 0x09, 0x26},
    "release": {0x1F, 0x26},
    "subscribe": {0x0B, 0x26},
    "unsubscribe": {0x26},
    "goodbye": {0x11, 0x1F, 0x26},
}
"""Where; but for the method of authentication and the alias, which have a code of their own."""

TWICE = {0x26}


def with_properties(where: str, raw: bytes) -> Code | None:
    """The fault of a packet with these properties."""
    props = wire.properties(MQTT_5, raw)
    keeps = connect(MQTT_5, raw=b"\x11\0\0\0\x01")
    if where == "connect":
        return fault(connect(MQTT_5, raw=raw))
    if where == "will":
        return fault(connect(MQTT_5, will=Will("a", properties=raw)))
    bodies = {
        "publish": packet(0x32, text("a") + b"\0\x01" + props + b"{}"),
        "release": packet(0x62, b"\0\x01\0" + props),
        "subscribe": packet(0x82, b"\0\x01" + props + text("a") + b"\0"),
        "unsubscribe": packet(0xA2, b"\0\x01" + props + text("a")),
        "goodbye": packet(0xE0, b"\0" + props),
    }
    return fault(keeps + bodies[where])


@each("where", MAY)
def test_every_property_and_every_fault_of_it(where: str) -> None:
    for name in range(256):
        raw = wire.length(name) + KINDS.get(name, b"\0\0\0\0\0\0")
        code = with_properties(where, raw)
        if where == "connect" and name in (0x15, 0x16):
            assert code == Code.BAD_AUTHENTICATION
        elif where == "publish" and name == 0x23:
            assert code == Code.BAD_ALIAS
        elif name not in MAY[where]:
            assert code == (Code.PROTOCOL_ERROR if name in KINDS else Code.MALFORMED), hex(name)
        else:
            assert code is None, hex(name)
            assert with_properties(where, raw * 2) == (None if name in TWICE else Code.PROTOCOL_ERROR)
            for end in range(1, len(raw)):
                assert with_properties(where, raw[:end]) == Code.MALFORMED, (hex(name), end)
    assert with_properties(where, b"\xff\xff\xff\xff\x01") == Code.MALFORMED
    user = b"\x26" + KINDS[0x26]
    assert with_properties(where, user * 16) is None
    assert with_properties(where, user * 17) == Code.TOO_MUCH
    assert with_properties(where, b"\x26\0\x01\0\0\0") == Code.MALFORMED, "a NUL"
    assert with_properties(where, b"\x26\0\x01\xff\0\0") == Code.MALFORMED, "no UTF-8"


@each(
    "where, raw",
    [
        *(("connect", bytes([name, 2])) for name in (0x17, 0x19)),
        ("connect", b"\x21\0\0"),
        ("connect", b"\x27\0\0\0\0"),
        ("will", b"\x01\x02"),
        ("publish", b"\x01\x02"),
        ("subscribe", b"\x0b\0"),
    ],
)
def test_a_property_of_a_value_that_is_none(where: str, raw: bytes) -> None:
    assert with_properties(where, raw) == Code.PROTOCOL_ERROR


WHOLE: dict[str, tuple[int, Callable[[int], bytes]]] = {
    "connect": (0x10, lambda level: connect(level, user="u", password="p", will=Will("a", b"x"))),
    "release": (0x62, lambda level: packet(0x62, b"\0\x01\0\x05\x1f\0\x02ab" if level == 5 else b"\0\x01")),
    "subscribe": (0x82, lambda level: wire.subscribe(1, ["a", "b"], level)),
    "unsubscribe": (0xA2, lambda level: wire.unsubscribe(1, ["a", "b"], level)),
}


@each("name, level", [(name, level) for name in WHOLE for level in LEVELS])
def test_no_packet_may_be_shorter_than_its_fields_or_longer(name: str, level: int) -> None:
    first, make = WHOLE[name]
    whole = make(level)
    body = whole[2:]
    assert packet(first, body) == whole
    connected = 0 if name == "connect" else level
    # Such an end is one between two fields, after which all others may be left out.
    ends = {"release": {2, 3}, "subscribe": {2 + (level == 5) + 4}, "unsubscribe": {2 + (level == 5) + 3}}
    before_user = {len(body) - 6, len(body) - 3} if level == MQTT_3_1 else set()
    may = ends.get(name, before_user)
    for end in range(len(body)):
        code = fault(packet(first, body[:end]), connected)
        if name == "connect" and end < 2 + len(wire.NAMES[level]) + 1:
            assert code in (Code.MALFORMED, Code.UNKNOWN_VERSION)
        else:
            assert (code is None) == (end in may), end
    if name in ("connect", "release"):
        assert fault(packet(first, body + b"\0"), connected) == Code.MALFORMED


@each(
    "data, code",
    [
        (packet(0x30), Code.MALFORMED),
        (packet(0x30, b"\0"), Code.MALFORMED),
        (packet(0x30, b"\0\x05abc"), Code.MALFORMED),
        (packet(0x32, b"\0\x01a\0"), Code.MALFORMED),
        (publish("a", b"", 1, 0), Code.PROTOCOL_ERROR),
        (publish("a", b"", 2, 0), Code.PROTOCOL_ERROR),
        (publish("", b""), Code.BAD_TOPIC),
        (publish("a/+", b""), Code.BAD_TOPIC),
        (publish("a/#", b""), Code.BAD_TOPIC),
        (publish("a\0b", b""), Code.MALFORMED),
        (publish(b"\xff", b""), Code.MALFORMED),
        (publish(b"\xed\xa0\x80", b""), Code.MALFORMED),
        (publish("x" * 1024, b""), None),
        (publish("x" * 1025, b""), Code.BAD_TOPIC),
        (publish("x", bytes(65_536)), None),
        (publish("x", bytes(65_537)), Code.TOO_LARGE),
        (wire.release(0), Code.PROTOCOL_ERROR),
        (packet(0x62, b"\0"), Code.MALFORMED),
        (packet(0x62, b"\0\x01\0"), Code.MALFORMED),
        (wire.subscribe(0, ["a"]), Code.PROTOCOL_ERROR),
        (wire.subscribe(1, []), Code.PROTOCOL_ERROR),
        (wire.subscribe(1, [""]), Code.PROTOCOL_ERROR),
        (wire.subscribe(1, ["a\0"]), Code.MALFORMED),
        (wire.subscribe(1, ["a"], qos=3), Code.PROTOCOL_ERROR),
        (wire.subscribe(1, ["a"], qos=4), Code.PROTOCOL_ERROR),
        (wire.subscribe(1, ["a"] * 64), None),
        (wire.subscribe(1, ["a"] * 65), Code.TOO_MUCH),
        (wire.unsubscribe(1, []), Code.PROTOCOL_ERROR),
        (wire.unsubscribe(1, ["a"] * 65), Code.TOO_MUCH),
        (packet(0xC0, b"\0"), Code.TOO_LARGE),
        (packet(0xE0, b"\0"), Code.MALFORMED),
        (b"\x30\x80\x80\x80\x80", Code.MALFORMED),
        (b"\x30\x83\x00\x00\x01a", None),
    ],
)
def test_faults_after_a_connect(data: bytes, code: Code | None) -> None:
    assert fault(data, MQTT_3_1_1) == code


@each(
    "data, code",
    [
        (b"\x30\x84\x00\x00\x01a\0", Code.MALFORMED),
        (packet(0x30, text("a")), Code.MALFORMED),
        (packet(0x30, text("a") + b"\x01"), Code.MALFORMED),
        (packet(0x30, text("a") + b"\x80\x00"), Code.MALFORMED),
        (packet(0x30, text("") + b"\x03\x23\0\x01"), Code.BAD_ALIAS),
        (packet(0x82, b"\0\x01\0" + text("a") + b"\x2e"), None),
        (packet(0x82, b"\0\x01\0" + text("a") + b"\x30"), Code.PROTOCOL_ERROR),
        (packet(0x82, b"\0\x01\0" + text("a") + b"\x40"), Code.PROTOCOL_ERROR),
        (packet(0xE0, b"\x04"), None),
        (packet(0xE0, b"\x04\x00\x00"), Code.MALFORMED),
        (packet(0xE0, b"\x00\x05\x11\0\0\0\x01"), Code.PROTOCOL_ERROR),
        (packet(0xE0, b"\x00\x05\x11\0\0\0\x00"), None),
        (packet(0xF0, b"\x00"), Code.PROTOCOL_ERROR),
    ],
)
def test_faults_after_a_connect_of_version_5(data: bytes, code: Code | None) -> None:
    assert fault(data, MQTT_5) == code


def connect_of(name: bytes, level: int) -> bytes:
    return packet(0x10, text(name) + bytes([level]) + b"\x02\0\x3c" + text("a"))


@each(
    "data, code",
    [
        (connect_of(b"MQTT", 3), Code.UNKNOWN_VERSION),
        (connect_of(b"MQTT", 6), Code.UNKNOWN_VERSION),
        (connect_of(b"MQIsdp", 4), Code.UNKNOWN_VERSION),
        (connect_of(b"", 4), Code.UNKNOWN_VERSION),
        (connect_of(b"MQTT" * 1000, 4), Code.UNKNOWN_VERSION),
        (connect(MQTT_3_1, "", clean=False), Code.BAD_CLIENT_ID),
        (connect(MQTT_3_1_1, "", clean=False), Code.BAD_CLIENT_ID),
        (connect(client_id="x" * 256), None),
        (connect(client_id="x" * 257), Code.BAD_CLIENT_ID),
        (connect(client_id=b"\xff"), Code.MALFORMED),
        (connect(user="x" * 257), Code.BAD_CREDENTIALS),
        (connect(user="x", password="x" * 256), None),
        (connect(user="x", password="x" * 257), Code.BAD_CREDENTIALS),
        (connect(will=Will("")), Code.BAD_TOPIC),
        (connect(will=Will("a/+")), Code.BAD_TOPIC),
        (connect(will=Will("a\0")), Code.MALFORMED),
        (connect(will=Will("a", bytes(8192))), Code.TOO_LARGE),
        (b"GET / HTTP/1.1\r\n", Code.PROTOCOL_ERROR),
        (b"\x16\x03\x01", Code.PROTOCOL_ERROR),
    ],
)
def test_faults_of_a_connect(data: bytes, code: Code | None) -> None:
    assert fault(data) == code


@each(
    "first, most",
    [(0x10, 8192), (0x30, 67_600), (0x62, 256), (0x82, 16_384), (0xA2, 16_384), (0xC0, 0), (0xE0, 1024)],
)
def test_what_is_too_long_is_refused_by_its_header(first: int, most: int) -> None:
    for level in (0,) if first == 0x10 else LEVELS:
        assert fault(bytes([first]) + MEGABYTES_256, level) == Code.TOO_LARGE
        assert fault(bytes([first]) + wire.length(most + 1), level) == Code.TOO_LARGE
        if most:
            assert fault(bytes([first]) + wire.length(most), level) is None


def test_of_each_level_it_is_known_in_whose_form_to_answer() -> None:
    for level in LEVELS:
        packets = Packets()
        packets.feed(connect(level, client_id="x" * 300))
        with pytest.raises(Malformed):
            packets.next()
        assert packets.level == level
    packets = Packets()
    packets.feed(connect_of(b"MQTT", 9))
    with pytest.raises(Malformed) as caught:
        packets.next()
    assert answers.connack(packets.level, caught.value.code) == b"\x20\x02\x00\x01"


@each(
    "made, expected",
    [
        (answers.connack(4, 0), "20020000"),
        (answers.connack(4, 0, True), "20020100"),
        (answers.connack(3, 0, True), "20020000"),
        (answers.connack(4, Code.BAD_CLIENT_ID, True), "20020002"),
        (answers.connack(4, Code.NOT_NOW), "20020003"),
        (answers.connack(3, Code.BAD_CREDENTIALS), "20020004"),
        (answers.connack(4, Code.MALFORMED), ""),
        (answers.connack(5, Code.MALFORMED), "2003008100"),
        (answers.connack(5, Code.NOT_NOW), "2003008800"),
        (answers.connack(5, 0), "2011 00 00 0e 210064 2700010815 2800 2900 2a00"),
        (
            answers.connack(5, 0, True, keep_alive=3600, session_expiry=604_800, client_id="abc"),
            "201f 01 00 1c 210064 2700010815 2800 2900 2a00 130e10 1100093a80 120003616263",
        ),
        (answers.puback(4, 258), "40020102"),
        (answers.puback(5, 258), "40020102"),
        (answers.puback(4, 258, Code.NOBODY_LISTENS), "40020102"),
        (answers.puback(5, 258, Code.NOBODY_LISTENS), "4003010210"),
        (answers.pubrec(5, 1), "50020001"),
        (answers.pubcomp(4, 1), "70020001"),
        (answers.pubcomp(5, 1, Code.UNKNOWN_ID), "7003000192"),
        (answers.suback(3, 1, [0, Code.NOT_AUTHORISED]), "900400010000"),
        (answers.suback(4, 1, [0, Code.NOT_AUTHORISED]), "900400010080"),
        (answers.suback(5, 1, [0, Code.NOT_AUTHORISED]), "90050001000087"),
        (answers.suback(5, 1, [0] * 64), "90430001" + "00" * 65),
        (answers.unsuback(4, 1, 2), "b0020001"),
        (answers.unsuback(5, 1, 2), "b0050001001111"),
        (answers.pingresp(), "d000"),
        (answers.disconnect(4, Code.KEEP_ALIVE), ""),
        (answers.disconnect(5, Code.KEEP_ALIVE), "e0018d"),
    ],
)
def test_answers(made: bytes, expected: str) -> None:
    assert made == bytes.fromhex(expected)


def test_twenty_thousand_mutants_raise_nothing_but_malformed() -> None:
    counts = fuzz.fuzz(20_000, seed=13)
    assert counts["packets"] > 1_000
    assert counts["refused"] > 10_000
