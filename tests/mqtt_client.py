"""A raw MQTT client: it sends the bytes that it is given, and hears packets."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from tests import mqtt_wire as wire
from tests.patience import PATIENCE_S

HOST = "127.0.0.1"

RESETS = struct.pack("ii", 1, 0)
"""SO_LINGER: closing resets the connection at once."""


@dataclass
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *writes: bytes) -> None:
        """Hand over each of the writes by itself."""
        for data in writes:
            self.writer.write(data)
            await self.writer.drain()

    async def hears(self, expected: bytes) -> None:
        """Wait for these bytes, which must be the next."""
        async with asyncio.timeout(PATIENCE_S):
            heard = await self.reader.readexactly(len(expected))
        assert heard == expected, f"{heard.hex()} instead of {expected.hex()}"

    async def packet(self) -> bytes:
        """Return the next packet; empty at the end of the connection."""
        with suppress(ConnectionResetError, asyncio.IncompleteReadError):
            async with asyncio.timeout(PATIENCE_S):
                head = await self.reader.readexactly(2)
                assert head[1] < 0x80, "no answer is longer"
                return head + await self.reader.readexactly(head[1])
        return b""

    async def rest(self) -> bytes:
        """Return all that comes until the other side ends the connection."""
        heard = b""
        with suppress(ConnectionResetError):
            async with asyncio.timeout(PATIENCE_S):
                while data := await self.reader.read(65_536):
                    heard += data
        return heard

    async def ping(self) -> None:
        """Wait until all that was sent before is read."""
        await self.send(wire.PING)
        await self.hears(wire.PONG)

    def reset(self) -> None:
        """End the connection without a word."""
        if not self.writer.is_closing():
            own = self.writer.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
            self.writer.transport.abort()


@asynccontextmanager
async def opened(port: int, *writes: bytes, source: str = HOST) -> AsyncIterator[Client]:
    """A connection from this address on which these bytes were sent."""
    reader, writer = await asyncio.open_connection(HOST, port, local_addr=(source, 0))
    client = Client(reader, writer)
    try:
        await client.send(*writes)
        yield client
    except BaseException:
        writer.transport.abort()  # not closed: it would wait until all that is unsent is read
        raise
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
