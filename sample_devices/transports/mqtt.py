"""Hand over MQTT messages on a connection of their own, packet by packet as small ESP clients do.

MQTT 3.1.1 (OASIS): CONNECT with a clean session, wait for CONNACK, the PUBLISH packets in order,
DISCONNECT, close.  Source of the habits: knolleary/pubsubclient `src/PubSubClient.cpp` and
256dpi/arduino-mqtt `src/lwmqtt/packet.c` (devices.md section 4.4).  Both send QoS 0 only; messages of
bridges may ask for QoS 1 or 2 and be retained, and each of these is waited for.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from itertools import count

from sample_devices.transports.errors import NotAnswered, reason
from sample_devices.wire.report import Login, Message

HANDOVER_DEADLINE_S = 15.0  # MQTT_SOCKET_TIMEOUT of PubSubClient
CLOSE_DEADLINE_S = 1.0

DISCONNECT = b"\xe0\x00"  # section 3.14

_CONNACK = 0x20
_PUBACK = 0x40
_PUBREC = 0x50
_PUBREL = 0x62
_PUBCOMP = 0x70
_ANSWERS = {_PUBACK: "PUBACK", _PUBREC: "PUBREC", _PUBCOMP: "PUBCOMP"}
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
    """Encode PUBLISH (section 3.3): at the message's QoS, which is 1 at least when a packet id is given."""
    head, rest = 0x30 | message.retain, _text(message.topic)
    if packet_id is not None:
        head |= max(1, message.qos) << 1
        rest += packet_id.to_bytes(2, "big")
    return _packet(head, rest + message.payload)


def packets(login: Login, messages: Iterable[Message]) -> list[bytes]:
    """Give all that the client sends, in order, if every answer of the broker is a good one."""
    sent = [connect_packet(login)]
    for packet_id, message in zip(count(1), messages, strict=False):
        sent.append(publish_packet(message, packet_id if message.qos else None))
        if message.qos == 2:
            sent.append(_pubrel(packet_id))
    return [*sent, DISCONNECT]


async def deliver(
    host: str,
    port: int,
    login: Login,
    messages: Iterable[Message],
    qos: int = 0,
    deadline_s: float = HANDOVER_DEADLINE_S,
) -> None:
    """Publish the messages in order on one connection, each at least at the QoS, or raise NotAnswered."""
    raised = [message._replace(qos=max(message.qos, qos)) for message in messages]
    try:
        async with asyncio.timeout(deadline_s):
            await _converse(host, port, login, raised)
    except (OSError, EOFError, ValueError) as failure:
        raise NotAnswered(f"{host}:{port}: {reason(failure, deadline_s)}") from failure


async def _converse(host: str, port: int, login: Login, messages: Iterable[Message]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(connect_packet(login))
        connack = await _read_packet(reader, _CONNACK)
        if connack[1] != 0:
            raise NotAnswered(f"{host}:{port}: refused: {_REFUSED.get(connack[1], connack[1])}")
        for packet_id, message in zip(count(1), messages, strict=False):
            writer.write(publish_packet(message, packet_id if message.qos else None))
            await writer.drain()
            if message.qos == 1:
                await _read_for(reader, _PUBACK, packet_id)
            elif message.qos == 2:
                await _read_for(reader, _PUBREC, packet_id)
                writer.write(_pubrel(packet_id))
                await _read_for(reader, _PUBCOMP, packet_id)
        if reader.at_eof():
            raise NotAnswered(f"{host}:{port}: broker closed the connection before DISCONNECT")
        writer.write(DISCONNECT)
        await writer.drain()
        await _until_closed(reader)
    finally:
        writer.close()
    await writer.wait_closed()  # raises when the broker reset the connection instead of reading it


async def _until_closed(reader: asyncio.StreamReader) -> None:
    """Let the broker close first: a real device sleeps now, and its next connection overtakes nothing."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_DEADLINE_S):
            await reader.read()


async def _read_for(reader: asyncio.StreamReader, kind: int, packet_id: int) -> None:
    """Read the answer to one message, or raise ValueError when it is for another."""
    if await _read_packet(reader, kind) != packet_id.to_bytes(2, "big"):
        raise ValueError(f"{_ANSWERS[kind]} for another message")


async def _read_packet(reader: asyncio.StreamReader, kind: int) -> bytes:
    """Read a CONNACK or an answer to PUBLISH (sections 3.2, 3.4 to 3.7): all have two bytes and no more."""
    packet = await reader.readexactly(4)
    if packet[0] != kind or packet[1] != 2:
        raise ValueError(f"packet {packet.hex()}, expected type {kind:#04x}")
    return packet[2:]


def _pubrel(packet_id: int) -> bytes:
    return _packet(_PUBREL, packet_id.to_bytes(2, "big"))


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
