"""Connections whose bytes are read to the last, also where the device has reset them after sending.

A device that closes with an answer unread resets its connection: that is TCP's way to say so. asyncio's own
reader then raises at once, and what came before the reset, there and not yet looked at, is gone.
"""

import asyncio
from collections.abc import Awaitable, Callable

Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class ToTheLast(asyncio.StreamReader):
    """Ends, after all that has come, where others raise."""

    def set_exception(self, exc: Exception) -> None:
        """The connection is lost."""
        self.feed_eof()


def protocols(connected: Connected) -> Callable[[], asyncio.StreamReaderProtocol]:
    """For `loop.create_server`: calls `connected` for each connection, as `asyncio.start_server` does."""
    loop = asyncio.get_running_loop()
    return lambda: asyncio.StreamReaderProtocol(ToTheLast(loop=loop), connected, loop=loop)
