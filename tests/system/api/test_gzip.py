"""gzip where a client asks for it: the same content in every coding, and never where it is refused."""

import gzip
import threading
import zlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.http import gzipped
from tests.cases import each
from tests.system.api.conftest import Service
from tests.system.api.everything import PATHS, QUERIES, Running, fill, methods_of, running

PAGES = {"?limit=1": "small", "?limit=20": "whole", "": "stream"}

WANTED: dict[str | None, set[str]] = {
    None: set(),
    "": set(),
    "identity": set(),
    "br, deflate": set(),
    "gzip;q=0": set(),
    "*;q=0": set(),
    "gzip;q=0, *": set(),
    "gzip;q=0.2, identity;q=0.3": set(),
    "gzip;q=x": set(),
    "identity;q=0": set(),
    "identity;q=1,chunked;q=0.1,*;q=0": set(),
    "gzip": {"whole", "stream"},
    "GZIP ; Q=0.5, deflate": {"whole", "stream"},
    "x-gzip": {"whole", "stream"},
    "br;q=1, *;q=0.1": {"whole", "stream"},
    "gzip;q=0.3, identity;q=0.3": {"whole", "stream"},
    "gzip, identity;q=0": {"small", "whole", "stream"},
    "gzip, *;q=0": {"small", "whole", "stream"},
}
"""The answers that are compressed, by Accept-Encoding."""

LEFT_OUT = {"Date", "Transfer-Encoding"}
"""Headers that the answer to a HEAD need not have as a GET has them."""

Got = tuple[int, Mapping[str, str], bytes]


async def get(service: Service, query: str, accepted: str | None, method: str = "GET", **more: str) -> Got:
    """An answer as it is sent."""
    headers = {**service.headers, **more, **({} if accepted is None else {"Accept-Encoding": accepted})}
    client = aiohttp.ClientSession(
        auto_decompress=False, skip_auto_headers=["Accept-Encoding"], headers=headers
    )
    async with client, client.request(method, service.client.make_url(service.path + query)) as answer:
        return answer.status, answer.headers, await answer.read()


def plain(headers: Mapping[str, str], body: bytes) -> bytes:
    return gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body


async def many(service: Service) -> None:
    await service.take([{"gravity": 1.05 - n / 10_000, "comment": "é" * 30} for n in range(600)])


async def test_readings_by_accept_encoding(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    await many(service)
    monkeypatch.setattr(gzipped, "STREAM_BYTES", 16 * 1024)
    wrong = []
    for query, size in PAGES.items():
        _, _, expected = await get(service, query, None)
        for accepted, sizes in WANTED.items():
            status, headers, body = await get(service, query, accepted)
            _, of_head, nothing = await get(service, query, accepted, "HEAD")
            same = plain(headers, body) == expected
            is_packed = headers.get("Content-Encoding") == "gzip"
            has_length = headers.get("Content-Length") == str(len(body))
            kept = [{k: v for k, v in each.items() if k not in LEFT_OUT} for each in (headers, of_head)]
            if (
                (status, same, is_packed, has_length) != (200, True, size in sizes, size != "stream")
                or (is_packed and size != "small" and len(body) * 5 > len(expected))
                or headers["Vary"] != "Accept-Encoding"
                or nothing
                or kept[0] != kept[1]
            ):
                wrong.append((query, accepted, status, same, headers, of_head))
    assert wrong == []


async def test_a_stream_is_compressed_in_another_thread(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await many(service)
    threads: list[int] = []
    made = zlib.compressobj

    class Noted:
        def __init__(self, *given: Any, **named: Any) -> None:
            self.packer = made(*given, **named)

        def compress(self, data: bytes) -> bytes:
            threads.append(threading.get_ident())
            return self.packer.compress(data)

        def flush(self) -> bytes:
            return self.packer.flush()

    monkeypatch.setattr(gzipped, "STREAM_BYTES", 16 * 1024)
    monkeypatch.setattr(zlib, "compressobj", Noted)
    await get(service, "", "gzip")
    assert len(threads) > 2
    assert threading.get_ident() not in threads


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as here:
        yield here


CAPTURE = "/manage/devices/{device_id}/capture"

CHANGING = {"/healthz", "/metrics", "/manage/status", "/manage/backup", "/docs", "/openapi.json", CAPTURE}
"""Answers that differ each time, and those that `test_hardening` looks at."""


async def test_every_answer_to_a_get_is_the_same_compressed_and_changes_no_tag(
    whole: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled = await fill(whole.services, "owner", "owner-mark")
    monkeypatch.setattr(gzipped, "COMPRESSED_BYTES", 1)
    readings = filled.path("/v1/fermentation/{brew_session_id}")
    tag = (await whole.ask("HEAD", readings)).headers["ETag"]
    packed: set[str] = set()
    wrong: list[tuple[Any, ...]] = []
    for path in [path for path in PATHS if "GET" in methods_of(path) and path not in CHANGING]:
        target = filled.path(path + QUERIES.get(("GET", path), ""))
        # aiohttp's client decompresses, so that an answer with a wrong header or length fails here.
        once = await whole.ask("GET", target, headers={"Accept-Encoding": "identity"})
        again = await whole.ask("GET", target, headers={"Accept-Encoding": "gzip"})
        if (once.status, once.body) != (again.status, again.body) or "Content-Encoding" in once.headers:
            wrong.append((path, once, again))
        if again.headers.get("Content-Encoding") == "gzip":
            packed.add(path)
            if once.headers.get("Vary") != "Accept-Encoding":
                wrong.append((path, once.headers))
    assert wrong == []
    expected = {
        "/v1/recipes",
        "/v1/brewsessions",
        "/manage/devices",
        "/manage/readings",
        "/manage/recipes.xml",
    }
    assert expected <= packed
    assert not [path for path in packed if "/photo/" in path]
    assert (await whole.ask("HEAD", readings)).headers["ETag"] == tag


@each("method", ["POST", "OPTIONS"])
async def test_other_answers_are_never_compressed(
    service: Service, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(gzipped, "COMPRESSED_BYTES", 1)
    _, headers, _ = await get(service, "/import", "gzip", method)
    assert "Content-Encoding" not in headers
    _, headers, _ = await get(service, "/nothing", "gzip")
    assert "Content-Encoding" not in headers
