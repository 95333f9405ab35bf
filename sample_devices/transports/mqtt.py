"""Hand over MQTT messages on a connection of their own, packet by packet as small ESP clients do.

MQTT 3.1.1 (OASIS): CONNECT with a clean session, wait for CONNACK, the PUBLISH packets in order and
never retained, DISCONNECT, close.  Source of the habits: knolleary/pubsubclient `src/PubSubClient.cpp`
and 256dpi/arduino-mqtt `src/lwmqtt/packet.c` (devices.md section 4.4).  Both send QoS 0 only; QoS 1
is here for tests and load, and waits for each PUBACK.
"""

import asyncio
from collections.abc import Iterable
from itertools import count

from sample_devices.transports.errors import NotAnswered, reason
from sample_devices.wire.report import Login, Message

HANDOVER_DEADLINE_S = 15.0  # MQTT_SOCKET_TIMEOUT of PubSubClient

DISCONNECT = b"\xe0\x00"  # section 3.14

_CONNACK = 0x20
_PUBACK = 0x40
_REFUSED = {  # section 3.2.2.3
    1: "unacceptable protocol version",
    2: "client id rejected",
    3: "server unavailable",
    4: "bad user name or password",
    5: "not authorised",
}


def connect_packet(login: Login) -> bytes:
    """Encode CONNECT (section 3.1): clean session, no will; user and password only where not None."""
    flags = 0x02
    payload = _text(login.client_id)
    if login.user is not None:
        flags |= 0x80
        payload += _text(login.user)
        if login.password is not None:  # never without a user name: [MQTT-3.1.2-22]
            flags |= 0x40
            payload += _text(login.password)
    head = _text("MQTT") + bytes([4, flags]) + login.keep_alive_s.to_bytes(2, "big")
    return _packet(0x10, head + payload)


def publish_packet(message: Message, packet_id: int | None = None) -> bytes:
    """Encode PUBLISH (section 3.3), not retained: QoS 0, or QoS 1 when a packet id is given."""
    if packet_id is None:
        return _packet(0x30, _text(message.topic) + message.payload)
    return _packet(0x32, _text(message.topic) + packet_id.to_bytes(2, "big") + message.payload)


async def deliver(
    host: str,
    port: int,
    login: Login,
    messages: Iterable[Message],
    qos: int = 0,
    deadline_s: float = HANDOVER_DEADLINE_S,
) -> None:
    """Publish the messages in order on one connection, or raise NotAnswered with the reason."""
    try:
        async with asyncio.timeout(deadline_s):
            await _converse(host, port, login, messages, qos)
    except (OSError, EOFError, ValueError) as failure:
        raise NotAnswered(f"{host}:{port}: {reason(failure, deadline_s)}") from failure


async def _converse(host: str, port: int, login: Login, messages: Iterable[Message], qos: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(connect_packet(login))
        connack = await _read_packet(reader, _CONNACK)
        if connack[1] != 0:
            raise NotAnswered(f"{host}:{port}: refused: {_REFUSED.get(connack[1], connack[1])}")
        for packet_id, message in zip(count(1), messages, strict=False):
            writer.write(publish_packet(message, packet_id if qos else None))
            await writer.drain()
            if qos and await _read_packet(reader, _PUBACK) != packet_id.to_bytes(2, "big"):
                raise ValueError("PUBACK for another message")
        if reader.at_eof():
            raise NotAnswered(f"{host}:{port}: broker closed the connection before DISCONNECT")
        writer.write(DISCONNECT)
        await writer.drain()
    finally:
        writer.close()
    await writer.wait_closed()  # raises when the broker reset the connection instead of reading it


async def _read_packet(reader: asyncio.StreamReader, kind: int) -> bytes:
    """Read one CONNACK or PUBACK (sections 3.2, 3.4): both have exactly two bytes after the header."""
    packet = await reader.readexactly(4)
    if packet[0] != kind or packet[1] != 2:
        raise ValueError(f"packet {packet.hex()}, expected type {kind:#04x}")
    return packet[2:]


def _packet(first_byte: int, rest: bytes) -> bytes:
    return bytes([first_byte]) + _remaining_length(len(rest)) + rest


def _remaining_length(length: int) -> bytes:
    """Encode the variable-length integer of section 2.2.3: seven bits a byte, lowest first."""
    digits = bytearray()
    while length >= 0x80:
        digits.append(length % 0x80 | 0x80)
        length //= 0x80
    digits.append(length)
    return bytes(digits)


def _text(text: str) -> bytes:
    """Encode a UTF-8 string with its two-byte length (section 1.5.3)."""
    octets = text.encode()
    return len(octets).to_bytes(2, "big") + octets
