"""Packets that a server of MQTT publishers sends, as bytes in the version of each client."""

import struct
from collections.abc import Iterable

from gateway.transports.mqtt_fields import (
    MQTT_3_1,
    MQTT_3_1_1,
    MQTT_5,
    PACKET_MAXIMUM,
    RECEIVE,
    SESSION_EXPIRY,
    Code,
)
from gateway.transports.mqtt_packets import PUBLISH_BYTES

RECEIVE_MAXIMUM = 100
"""Unacknowledged messages that a client of MQTT 5 is asked not to exceed."""

HEADER_BYTES = 5
"""Bytes of a packet's header, at most: one for its type, four for its length."""

OLD_CODES = {
    0: 0,
    Code.UNKNOWN_VERSION: 1,
    Code.BAD_CLIENT_ID: 2,
    Code.NOT_NOW: 3,
    Code.BAD_CREDENTIALS: 4,
    Code.NOT_AUTHORISED: 5,
}
"""The codes of a CONNACK before MQTT 5, by the code of MQTT 5. For other faults there is none."""


def connack(
    level: int,
    code: int,
    session_present: bool = False,
    *,
    keep_alive: int | None = None,
    session_expiry: int | None = None,
    client_id: str = "",
) -> bytes:
    """Make the answer to a CONNECT; `code` is of MQTT 5. Empty where an older version has no code for it.

    With a `level` of 0 it has the form of 3.1.1. MQTT 5 learns what differs from its wishes: `keep_alive`,
    `session_expiry`, and the `client_id` that was given to a client without one (60 characters at most).
    """
    present = session_present and code == 0 and level != MQTT_3_1
    if level != MQTT_5:
        return bytes((0x20, 2, present, OLD_CODES[code])) if code in OLD_CODES else b""
    properties = b""
    if code == 0:
        properties = struct.pack(
            ">BHBI", RECEIVE, RECEIVE_MAXIMUM, PACKET_MAXIMUM, HEADER_BYTES + PUBLISH_BYTES
        )
        # No wildcards, no subscription identifiers, no shared subscriptions.
        properties += b"\x28\0\x29\0\x2a\0"
        if keep_alive is not None:
            properties += struct.pack(">BH", 0x13, keep_alive)
        if session_expiry is not None:
            properties += struct.pack(">BI", SESSION_EXPIRY, session_expiry)
        if client_id:
            properties += struct.pack(">BH", 0x12, len(client_id)) + client_id.encode("ascii")
    return bytes((0x20, 3 + len(properties), present, code, len(properties))) + properties


def puback(level: int, mid: int, code: int = 0) -> bytes:
    """Make the answer to a message of QoS 1."""
    return _answer(0x40, level, mid, code)


def pubrec(level: int, mid: int, code: int = 0) -> bytes:
    """Make the first answer to a message of QoS 2."""
    return _answer(0x50, level, mid, code)


def pubcomp(level: int, mid: int, code: int = 0) -> bytes:
    """Make the answer to a PUBREL."""
    return _answer(0x70, level, mid, code)


def _answer(first: int, level: int, mid: int, code: int) -> bytes:
    if code and level == MQTT_5:
        return struct.pack(">BBHB", first, 3, mid, code)
    return struct.pack(">BBH", first, 2, mid)


def suback(level: int, mid: int, codes: Iterable[int]) -> bytes:
    """Make the answer to a SUBSCRIBE; the codes are of MQTT 5, from 0x80 on they refuse a filter.

    3.1.1 has one code that refuses, and 3.1 none: there a refused filter is answered like others.
    """
    if level == MQTT_5:
        body = b"\0" + bytes(codes)
    else:
        refused = 0x80 if level == MQTT_3_1_1 else 0
        body = bytes(code if code < 0x80 else refused for code in codes)
    return struct.pack(">BBH", 0x90, 2 + len(body), mid) + body


def unsuback(level: int, mid: int, number: int) -> bytes:
    """Make the answer to an UNSUBSCRIBE with this number of filters, none of which is there."""
    body = b"\0" + bytes((Code.NO_SUCH_FILTER,)) * number if level == MQTT_5 else b""
    return struct.pack(">BBH", 0xB0, 2 + len(body), mid) + body


def pingresp() -> bytes:
    """Make the answer to a PINGREQ."""
    return b"\xd0\0"


def disconnect(level: int, code: int) -> bytes:
    """Make the last packet of a connection; empty before MQTT 5, where a server just closes."""
    return bytes((0xE0, 1, code)) if level == MQTT_5 else b""
