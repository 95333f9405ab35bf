"""The demo's network between its two gateways: a relay of TCP connections that can be cut."""

import asyncio
import contextlib
from dataclasses import dataclass, field

PIECE_BYTES = 64 * 1024
LOOPBACK = "127.0.0.1"


@dataclass(slots=True)
class Link:
    """Relays connections to a port of this machine, once mended. While it is cut, nobody listens."""

    to_port: int = 0
    port: int = 0
    is_cut: bool = False
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def mend(self) -> None:
        """Let connections through: at first on a free port, later on the same one."""
        if self._server is None:
            self._server = await asyncio.start_server(self._relay, LOOPBACK, self.port)
            self.port = self._server.sockets[0].getsockname()[1]
            self.is_cut = False

    async def cut(self) -> None:
        """Break off all connections, in the middle of what they say, and refuse new ones."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.transport.abort()
            self._server = None
            self.is_cut = True

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, onward = await asyncio.open_connection(LOOPBACK, self.to_port)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, onward}
        self._writers |= ends
        try:
            await asyncio.gather(_copy(reader, onward), _copy(there, writer))
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until one side ends."""
    with contextlib.suppress(OSError):
        while piece := await reader.read(PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
