"""One client for all services: the key goes nowhere else, not even into texts; nothing compressed is read."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.doctor import examine
from gateway.domain.delivery import Batch
from gateway.errors import GatewayError
from gateway.forward.client import USER_AGENT, open_session
from gateway.forward.kinds.service import ImportTarget
from gateway.forward.probe import reached
from gateway.mirror.client import RemoteService
from gateway.settings import Settings
from tests.clock import FakeClock
from tests.system.mirror.bench import LeapClock

KEY = "hg_secret"
BATCH = Batch("t", 1, 77, seqs=(1,), rows=('{"name":"x"}',))

Answer = Callable[[web.Request], web.Response]
Ask = Callable[[str, Path], Awaitable[str]]
"""Sends a request to a base URL with the key and returns the words for how it ended."""


async def import_once(url: str, _: Path) -> str:
    async with open_session() as session:
        return (await ImportTarget(session, url, KEY, FakeClock()).send(BATCH)).reason


async def probe_once(url: str, _: Path) -> str:
    async with open_session() as session:
        return (await reached(ImportTarget(session, url, KEY, FakeClock()))).words


async def mirror_once(url: str, _: Path) -> str:
    async with open_session() as session:
        try:
            await RemoteService(session, url, KEY, LeapClock(), rate=1e6).json("/v1/recipes")
        except GatewayError as error:
            return str(error)
    return ""


async def examine_once(url: str, folder: Path) -> str:
    async def parts() -> dict[str, str]:
        return {}

    key_file = folder / "key"
    key_file.write_text(KEY)
    key_file.chmod(0o600)
    settings = Settings(
        data_dir=folder / "data", host="127.0.0.1", port=0, tcp_port=0, no_mqtt=True,
        upstream_url=url, upstream_key_file=key_file,
    )  # fmt: skip
    findings = await examine(settings, None, parts)
    return " ".join(finding.text for finding in findings if finding.check == "upstream")


CALLERS = {
    "forwarder": import_once,
    "probe": probe_once,
    "mirror": mirror_once,
    "doctor": examine_once,
}


@pytest.fixture(params=CALLERS)
def ask(request: pytest.FixtureRequest) -> Ask:
    return CALLERS[request.param]


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[tuple[str, list[web.Request]]]:
    """A service that answers every request alike, and the requests that came."""
    requests: list[web.Request] = []

    async def handle(request: web.Request) -> web.Response:
        requests.append(request)
        return answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/"), requests


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_named_and_the_key_does_not_go_there(ask: Ask, code: int, tmp_path: Path) -> None:
    async with answering(lambda _: web.Response()) as (elsewhere, strangers):
        location = f"{elsewhere}/login?key={KEY}".replace("://", f"://{KEY}@")
        async with answering(lambda _: web.Response(status=code, headers={"Location": location})) as (
            url,
            seen,
        ):
            words = await ask(url, tmp_path)
    assert strangers == []
    assert [request.headers["X-API-KEY"] for request in seen] == [KEY]
    assert f"redirects to {elsewhere.removeprefix('http://')}, which is not followed" in words
    assert KEY not in words


async def test_no_caller_asks_for_a_compressed_answer_or_reads_one(ask: Ask, tmp_path: Path) -> None:
    """Not even where the bytes would be a success if they were read as they are."""
    success = b'{"message":"success","imported":{"count":1},"recipes":[],"detail":"it was read"}'

    def compressed(_: web.Request) -> web.Response:
        return web.Response(status=500, body=success, headers={"Content-Encoding": "gzip"})

    async with answering(compressed) as (url, requests):
        words = await ask(url, tmp_path)
    assert {request.headers["Accept-Encoding"] for request in requests} == {"identity"}
    assert {request.headers["User-Agent"] for request in requests} == {USER_AGENT}
    assert "a compressed answer, which was not asked for" in words
    assert "it was read" not in words


async def test_an_answer_that_repeats_the_key_is_not_quoted(ask: Ask, tmp_path: Path) -> None:
    def repeat(request: web.Request) -> web.Response:
        text = json.dumps({"message": "error", "detail": f"who is {request.headers['X-API-KEY']}?"})
        return web.Response(status=400, text=text)

    async with answering(repeat) as (url, _):
        words = await ask(url, tmp_path)
    assert "who is <key>?" in words
    assert KEY not in words
