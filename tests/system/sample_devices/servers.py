"""Tiny raw servers that keep what they were sent, so that bytes can be compared."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.patience import PATIENCE_S

OK_ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 20\r\nX-Extra: 1\r\n\r\n{"result":"success"}'
CONNACK_OK = b"\x20\x02\x00\x00"
WAIT_S = PATIENCE_S

Talk = Callable[["Heard", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Heard:
    """What a server was sent: one entry per HTTP request or MQTT packet; and its port."""

    port: int = 0
    items: list[bytes] = field(default_factory=list)
    ended: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def add(self, item: bytes) -> None:
        async with self.changed:
            self.items.append(item)
            self.changed.notify_all()

    async def end(self) -> None:
        async with self.changed:
            self.ended += 1
            self.changed.notify_all()

    async def at_least(self, number: int) -> None:
        """Wait until so many items came."""
        async with asyncio.timeout(WAIT_S), self.changed:
            await self.changed.wait_for(lambda: len(self.items) >= number)

    async def connection_ended(self) -> None:
        """Wait until one conversation is over."""
        async with asyncio.timeout(WAIT_S), self.changed:
            await self.changed.wait_for(lambda: self.ended > 0)


@asynccontextmanager
async def serving(talk: Talk) -> AsyncIterator[Heard]:
    """Serve a conversation on 127.0.0.1 and give what it heard."""
    heard = Heard()

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(heard, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            await heard.end()

    server = await asyncio.start_server(on_connection, "127.0.0.1", 0)
    heard.port = server.sockets[0].getsockname()[1]
    try:
        yield heard
    finally:
        server.close()


def http_talk(answer: bytes = OK_ANSWER, hold: asyncio.Event | None = None) -> Talk:
    """Read one request, keep it, answer it (after the hold, if there is one) and close."""

    async def talk(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lengths = (
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        length = next(lengths, 0)
        await heard.add(head + await reader.readexactly(length))
        if hold is not None:
            await hold.wait()
        writer.write(answer)
        await writer.drain()

    return talk


def mqtt_talk(connack: bytes = CONNACK_OK, puback_shift: int = 0) -> Talk:
    """Keep every packet up to DISCONNECT, then close; answer CONNECT, PUBREL and PUBLISH at QoS 1 and 2."""

    async def talk(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            packet = await read_packet(reader)
            await heard.add(packet)
            if packet[0] == 0xE0:
                return
            if packet[0] == 0x10:
                writer.write(connack)
            elif packet[0] == 0x62:
                writer.write(b"\x70" + packet[1:])
            elif packet[0] & 0xF6 in {0x32, 0x34}:
                rest = packet[2 if packet[1] < 0x80 else 3 :]
                topic_end = 2 + int.from_bytes(rest[:2], "big")
                packet_id = int.from_bytes(rest[topic_end : topic_end + 2], "big") + puback_shift
                answer = b"\x40\x02" if packet[0] & 0x06 == 0x02 else b"\x50\x02"
                writer.write(answer + packet_id.to_bytes(2, "big"))

    return talk


def tcp_talk(answer: bytes = b"", at_least: int = 1) -> Talk:
    """Keep what comes until so many bytes are there, answer it, and keep the connection until its end."""

    async def talk(heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = b""
        while len(data) < at_least:
            data += await reader.read(4096)
        await heard.add(data)
        writer.write(answer)
        await reader.read()

    return talk


async def read_packet(reader: asyncio.StreamReader) -> bytes:
    """Read one whole MQTT packet."""
    packet = await reader.readexactly(2)
    while packet[-1] & 0x80:
        packet += await reader.readexactly(1)
    length = sum((digit & 0x7F) << (7 * place) for place, digit in enumerate(packet[1:]))
    return packet + await reader.readexactly(length)
