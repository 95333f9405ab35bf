"""Connections that are read to the last byte, even if the device resets them after sending.

A device that closes with an answer unread resets its connection. asyncio's own reader then raises at once,
and bytes that came before the reset and are not yet read are lost.
"""

import asyncio
from collections.abc import Awaitable, Callable

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class CompleteReader(asyncio.StreamReader):
    """A reader that gives all bytes before a reset, and then ends as if the connection was closed."""

    def set_exception(self, exc: Exception) -> None:
        """End the stream instead of raising: the bytes received so far can still be read."""
        self.feed_eof()


def protocol_factory(connected: Connected) -> Callable[[], asyncio.StreamReaderProtocol]:
    """Return a factory for `loop.create_server` that calls `connected` for each connection."""
    loop = asyncio.get_running_loop()
    return lambda: asyncio.StreamReaderProtocol(CompleteReader(loop=loop), connected, loop=loop)
