"""The TLS server: it goes on accepting, whatever one connection does to it."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

from gateway.tls.server import TlsServer


async def test_a_connection_that_cannot_be_begun_does_not_end_the_listener() -> None:
    asked: list[str] = []
    errors: list[dict[str, Any]] = []

    def admit(address: str, _: Callable[[], object]) -> None:
        asked.append(address)
        if len(asked) == 1:
            raise ValueError("a mistake")

    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    listener = socket.create_server(("127.0.0.1", 0))
    server = TlsServer(listener, lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), admit)
    for _ in range(2):
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        assert await reader.read() == b""
        writer.close()
    server.close()
    assert asked == ["127.0.0.1"] * 2
    assert [str(context["exception"]) for context in errors] == ["a mistake"]
