"""A running gateway answers the pages that its options name."""

import asyncio
from pathlib import Path

from tests.program.program import HTTP_ONLY, serving
from tests.system.api.test_cors import NAMED, OTHER


async def test_the_running_program_answers_the_pages_that_it_was_told_of(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, *HTTP_ONLY, "--allowed-origin", NAMED, "--cors-origin", OTHER) as server:
        for origin in (NAMED, OTHER):
            lines = ("OPTIONS /v1/recipes HTTP/1.1", "Host: localhost", f"Origin: {origin}")
            head = await head_of(server.port, *lines, "Access-Control-Request-Method: GET")
            assert head.startswith("HTTP/1.1 204")
            assert f"Access-Control-Allow-Origin: {origin}\r\n" in head


async def head_of(port: int, *lines: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write("\r\n".join([*lines, "", ""]).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return head.decode()
