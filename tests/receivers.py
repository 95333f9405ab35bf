"""Receivers on loopback that do what a script says: answer, hang, cut off, redirect."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Request(NamedTuple):
    """A request as it came; header names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """What a receiver does with a request.

    `hang`: nothing, for ever; `cut`: end the connection without an answer; `raw`: send exactly this.
    """

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False
    raw: bytes | None = None

    def bytes(self) -> bytes:
        if self.raw is not None:
            return self.raw
        headers = {"Content-Length": str(len(self.body)), **self.headers}
        head = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
        return f"HTTP/1.1 {self.status} Whatever\r\n{head}\r\n".encode() + self.body


class Receiver:
    """An HTTP server of one request a connection. Replies come from `script`, then from `reply`."""

    def __init__(self, reply: Callable[[Request], Reply | None] = lambda _: None) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.reply = reply
        self.script: list[Reply] = []
        self.port = 0
        self.name = "http://127.0.0.1"
        self._tasks: set[asyncio.Task[None]] = set()
        self._came = asyncio.Event()

    @property
    def url(self) -> str:
        return f"{self.name}:{self.port}"

    async def came(self, count: int) -> None:
        """Wait until that many requests have come."""
        while len(self.requests) < count:
            self._came.clear()
            await self._came.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.split("\r\n")
            method, path, _ = first.split(" ")
            headers = {}
            for line in filter(None, lines):
                name, _, text = line.partition(": ")
                headers[name.lower()] = text
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            request = Request(method, path, headers, body)
            self.requests.append(request)
            self._came.set()
            reply = self.script.pop(0) if self.script else self.reply(request) or Reply()
            if reply.hang:
                await asyncio.Event().wait()
            if not reply.cut:
                writer.write(reply.bytes())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    @asynccontextmanager
    async def listening(
        self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0
    ) -> AsyncIterator["Receiver"]:
        server = await asyncio.start_server(self._serve, host, port, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in list(self._tasks):
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
