"""Send one raw HTTP request on a connection of its own and read the answer (RFC 9112).

Headers are taken as bytes from the wire modules; nothing is added, so that what a test sees is what
the firmware sends.  As ESP8266HTTPClient does (esp8266/Arduino `libraries/ESP8266HTTPClient`,
devices.md section 4.1), the answer must begin with `HTTP/1.` and come within five seconds.
"""

import asyncio
from dataclasses import dataclass

from sample_devices.transports.errors import NotAnswered, reason

ANSWER_DEADLINE_S = 5.0
MAX_ANSWER_BYTES = 64 * 1024

_OK = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer: status number, reason phrase and body bytes."""

    status: int
    reason: str
    body: bytes

    @property
    def ok(self) -> bool:
        """Tell whether the status is exactly 200, the only one GravityMon counts as success."""
        return self.status == _OK


async def send(host: str, port: int, request: bytes, deadline_s: float = ANSWER_DEADLINE_S) -> Answer:
    """Send the request bytes and return the answer, or raise NotAnswered with the reason."""
    try:
        async with asyncio.timeout(deadline_s):
            return await _exchange(host, port, request)
    except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as failure:
        raise NotAnswered(f"{host}:{port}: {reason(failure, deadline_s)}") from failure


async def send_cut(host: str, port: int, beginning: bytes, deadline_s: float = ANSWER_DEADLINE_S) -> None:
    """Send the beginning of a request and close the connection, or raise NotAnswered with the reason."""
    try:
        async with asyncio.timeout(deadline_s):
            _, writer = await asyncio.open_connection(host, port)
            writer.write(beginning)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
    except OSError as failure:
        raise NotAnswered(f"{host}:{port}: {reason(failure, deadline_s)}") from failure


async def _exchange(host: str, port: int, request: bytes) -> Answer:
    reader, writer = await asyncio.open_connection(host, port, limit=MAX_ANSWER_BYTES)
    try:
        writer.write(request)
        await writer.drain()
        return await _read_answer(reader)
    finally:
        writer.close()


async def _read_answer(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status_line, *fields = head.rstrip("\r\n").split("\r\n")
    if not status_line.startswith("HTTP/1."):
        raise ValueError(f"status line {status_line[:40]!r}")
    _, status, phrase = f"{status_line}  ".split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)}
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= MAX_ANSWER_BYTES:
        raise ValueError(f"Content-Length {length}")
    return Answer(int(status), phrase.strip(), await reader.readexactly(length))
