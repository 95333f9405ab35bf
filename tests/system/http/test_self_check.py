"""Deadlines rest on private names of aiohttp: a check at the start, and a plain deadline instead."""

import asyncio
import inspect
import logging
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from gateway.clock import SystemClock
from gateway.doctor.finding import Context
from gateway.doctor.machine import deadlines
from gateway.http import guard, hardening, self_check
from gateway.http.connections import Activity, ConnectionLimiter, Phase
from gateway.http.guard import SERVER, GuardedSite, Handler, Refusals
from gateway.http.self_check import PRIVATE_NAMES
from gateway.listening import Listeners
from gateway.network import Admission
from gateway.services.build import build_services
from gateway.settings import Settings
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from tests.cases import each
from tests.patience import PATIENCE_S


async def test_every_phase_shows() -> None:
    assert await self_check.trouble() is None


async def test_the_check_leaves_nothing_behind() -> None:
    before = asyncio.all_tasks()
    await self_check.trouble()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


def stuck(phase: Phase) -> Activity:
    return Activity(phase, 1, 0)


@each("phase", [Phase.FIRST_BYTE, Phase.HANDLING, Phase.IDLE])
async def test_a_phase_that_does_not_show_is_noticed(phase: Phase) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_check, "WAIT_S", 0.1)
        patch.setattr(Handler, "doing", lambda _: stuck(phase))
        reason = await self_check.trouble()
    assert reason is not None
    assert reason.startswith(
        f"aiohttp {aiohttp.__version__} works in another way: FIRST_BYTE, request 0, shows"
    )


async def test_aiohttp_has_the_private_names_that_we_use() -> None:
    """aiohttp may rename them in any version; nothing else would notice before a device does."""

    async def unused(_: web.BaseRequest) -> web.Response:
        raise AssertionError

    handler = RequestHandler(web.Server(unused), loop=asyncio.get_running_loop())
    missing = [name for name in PRIVATE_NAMES if not hasattr(handler, name)]
    missing += [name for name in ("_server",) if name not in web.BaseSite.__slots__]
    missing += [name for name in ("_prepare_headers",) if not hasattr(web.Response, name)]
    missing += [] if RawRequestMessage.__name__ == "RawRequestMessage" else ["RawRequestMessage"]
    remedy = "find their new names in aiohttp's web_protocol.py and base_protocol.py, and change guard.py"
    assert not missing, f"aiohttp {aiohttp.__version__} has no {', '.join(missing)}: {remedy}"


def test_the_list_names_every_private_name_that_the_guard_reads() -> None:
    read = set(re.findall(r"self\.(_[a-z_]+)", inspect.getsource(Handler)))
    assert read - set(Handler.__slots__) - set(dir(Handler)) | set(PRIVATE_NAMES) == set(PRIVATE_NAMES)
    assert set(PRIVATE_NAMES) <= read
    for module in (guard, hardening):
        source = inspect.getsource(module)
        assert not re.search(r"\b(?:request|response|server|runner|message|transport)\._[a-z]", source)


class Plain:
    """A site whose connections have one deadline alone."""

    def __init__(self) -> None:
        self.stats = Stats()
        self.gate = ConnectionLimiter(self.stats)

    async def start(self) -> None:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(body=await request.read())

        app = web.Application()
        app.router.add_post("/ingest", answer)
        self.runner = web.AppRunner(app, **SERVER)
        await self.runner.setup()
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        refusals = Refusals(SystemClock())
        await GuardedSite(self.runner, listener, refusals, self.gate, deadlines=False).start()


@pytest.fixture
async def plain(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Plain]:
    for name in PRIVATE_NAMES:
        monkeypatch.setattr(Handler, name, property(lambda _: 1 / 0), raising=False)
    site = Plain()
    await site.start()
    yield site
    await site.runner.cleanup()


async def test_without_deadlines_requests_are_answered_and_connections_end(
    plain: Plain, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession() as http:
        for body in (b"a", b"b"):
            async with http.post(f"http://127.0.0.1:{plain.port}/ingest", data=body) as answer:
                assert (answer.status, await answer.read()) == (200, body)
    monkeypatch.setattr(guard, "LIFE_S", 0.05)
    for beginning in (b"", b"POST /v1 HTTP/1.1\r\nHo", b"POST /ingest HTTP/1.1\r\nHost: x\r\n\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", plain.port)
        writer.write(beginning)
        async with asyncio.timeout(PATIENCE_S):
            try:
                while await reader.read(1000):
                    pass
            except ConnectionResetError:
                pass
        writer.close()
    assert plain.stats.connections == 0


async def test_a_failed_check_is_logged_shown_and_leaves_http_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def trouble() -> str:
        return "aiohttp 9 works in another way: HEAD shows as IDLE"

    monkeypatch.setattr(self_check, "trouble", trouble)
    store, said = SqliteStore(tmp_path), list[str]()
    await store.open()
    services = build_services(store, tmp_path, SystemClock())
    await services.access.start()
    settings = Settings(data_dir=tmp_path, host="127.0.0.1", port=0, no_tcp=True, no_mqtt=True)
    listeners = Listeners(settings, services, Admission(SystemClock()), said.append, SystemClock())
    listeners.bind()
    async with AsyncExitStack() as inputs:
        inputs.callback(listeners.close)
        await listeners.start_http(inputs)
        assert services.stats.in_trouble == {"deadlines"}
        port = re.search(r"127\.0\.0\.1:(\d+)", said[0])
        assert port is not None
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{port[1]}/healthz") as answer:
                page = await answer.json()
            assert (page["status"], page["parts"]["deadlines"]) == ("trouble", "trouble")
    await store.close()
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().startswith("http: deadlines are off, a connection ends after 30 s: aiohttp 9")


async def test_doctor_is_red_where_deadlines_are_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def parts() -> dict[str, str]:
        return {}

    context = Context(Settings(data_dir=tmp_path), None, SystemClock(), parts)
    [finding] = await deadlines(context)
    assert finding.level == "ok"
    monkeypatch.setattr(self_check, "WAIT_S", 0.05)
    monkeypatch.setattr(Handler, "doing", lambda _: stuck(Phase.HANDLING))
    [finding] = await deadlines(context)
    assert finding.level == "problem"
    assert finding.text.startswith("deadlines are off: aiohttp ")
    assert finding.remedy == "pip install 'aiohttp>=3.14.4,<3.15'"
    pyproject = Path(__file__).parents[3] / "pyproject.toml"
    assert '"aiohttp>=3.14.4,<3.15"' in pyproject.read_text("utf-8")
