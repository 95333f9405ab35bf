"""The command line's client: by the socket of a running gateway, and without one."""

import asyncio
import json
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import Field

from gateway import endpoints, site
from gateway.cli import client
from gateway.cli.client import ask, ask_async, ask_running
from gateway.clock import SystemClock
from gateway.domain.progress import no_progress
from gateway.errors import (
    GatewayError,
    InvalidInput,
    NameTaken,
    NotFound,
    StoreUnavailable,
    TooLarge,
    TryAgain,
)
from gateway.http import lines
from gateway.http.both_ends import SOCKET_NAME
from gateway.http.endpoint import AnswerModel, Body, Call, Endpoint, Query
from gateway.http.unix import UnixListener
from gateway.services.build import build_services
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.program.program import until

PATIENCE_S = 10.0
LONG_TEXT = 1024 * 1024


class Order(Body):
    """What a test wants done."""

    to: int = 0
    how: str = ""
    seconds: float = 0.0
    text: str = ""
    after_news: bool = False


class Result(AnswerModel):
    """What came of it."""

    number: int = 0
    text: str = Field(default="")


class Work:
    """Endpoints that only tests have, and what became of them."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.runs = 0
        names = ("count", "hurry", "fail", "crash", "echo", "hang", "rest")
        self.endpoints = tuple(
            Endpoint(
                "POST",
                f"/manage/test/{name}",
                getattr(self, name),
                "A test",
                Query,
                Result,
                body=Order,
                long=True,
            )
            for name in names
        )

    async def count(self, call: Call[Query, Order]) -> Result:
        """Has so much news, each when the one before has been passed on."""
        for done in range(1, call.body.to + 1):
            call.progress(done, call.body.to, f"item {done}")
            await asyncio.sleep(0.02)
        return Result(number=call.body.to)

    async def hurry(self, call: Call[Query, Order]) -> Result:
        """Has its last news in the moment it ends."""
        for done in range(1, call.body.to + 1):
            await asyncio.sleep(0)
            call.progress(done, call.body.to, "")
        return Result()

    async def fail(self, call: Call[Query, Order]) -> Result:
        if call.body.after_news:
            call.progress(1, 2, "")
            await asyncio.sleep(0.02)
        raise {"NotFound": NotFound, "StoreUnavailable": StoreUnavailable, "NameTaken": NameTaken}[
            call.body.how
        ]("no such thing")

    async def crash(self, _: Call[Query, Order]) -> Result:
        raise ZeroDivisionError

    async def echo(self, call: Call[Query, Order]) -> Result:
        return Result(text=call.body.text)

    async def hang(self, _: Call[Query, Order]) -> Result:
        self.runs += 1
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        raise AssertionError

    async def rest(self, call: Call[Query, Order]) -> Result:
        await asyncio.sleep(call.body.seconds)
        return Result(text="rested")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    made = Work()
    monkeypatch.setattr(endpoints, "ENDPOINTS", (*endpoints.ENDPOINTS, *made.endpoints))
    return made


@asynccontextmanager
async def running(data: Path) -> AsyncIterator[UnixListener]:
    """What a running gateway has of this: the data, locked, and the socket."""
    store = SqliteStore(data)
    await store.open()
    try:
        services = build_services(store, data, SystemClock())
        await services.access.start()
        listener = UnixListener(site.build(services, door="socket"), data)
        await listener.start()
        try:
            yield listener
        finally:
            await listener.stop()
    finally:
        await store.close()
    await until(lambda: len(asyncio.all_tasks()) == 1)  # nothing is left behind


@pytest.fixture(params=["running", "at rest"])
async def data(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Path]:
    if request.param == "at rest":
        yield tmp_path
        return
    async with running(tmp_path):
        assert (tmp_path / SOCKET_NAME).stat().st_mode & 0o777 == 0o600
        yield tmp_path


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing goes wrong behind the caller's back."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


async def post(data: Path, name: str, **body: Any) -> Any:
    progress = body.pop("progress", no_progress)
    return await ask_async(data, "POST", f"/manage/test/{name}", body=body, progress=progress)


@pytest.mark.usefixtures("work", "quiet")
async def test_news_arrive_in_order_and_then_the_result(data: Path) -> None:
    news: list[tuple[int, int, str]] = []
    result = await post(data, "count", to=5, progress=lambda *given: news.append(given))
    assert result == {"number": 5, "text": ""}
    assert news == [(done, 5, f"item {done}") for done in range(1, 6)]


@pytest.mark.usefixtures("work", "quiet")
async def test_news_that_come_faster_than_they_go_out_are_skipped_but_never_the_last(tmp_path: Path) -> None:
    async with running(tmp_path):
        for many in range(1, 100):
            news: list[tuple[int, int, str]] = []
            await post(tmp_path, "hurry", to=many, progress=lambda *given: news.append(given))  # noqa: B023
            assert news[-1] == (many, many, "")
            assert news == sorted(news)


@pytest.mark.usefixtures("work", "quiet")
async def test_bodies_and_results_may_be_long(data: Path) -> None:
    text = "ä" * (LONG_TEXT // 2)
    assert (await post(data, "echo", text=text))["text"] == text


@pytest.mark.usefixtures("work", "quiet")
@pytest.mark.parametrize("after_news", [False, True])
@pytest.mark.parametrize("kind", [StoreUnavailable, NameTaken])
async def test_a_failure_is_of_the_same_kind_on_both_sides(
    data: Path, kind: type[GatewayError], after_news: bool
) -> None:
    with pytest.raises(GatewayError, match=r"^no such thing$") as failed:
        await post(data, "fail", how=kind.__name__, after_news=after_news)
    assert type(failed.value) is kind


@pytest.mark.usefixtures("work", "quiet")
@pytest.mark.parametrize("after_news", [False, True])
async def test_the_client_has_words_of_its_own_for_what_is_not_there(data: Path, after_news: bool) -> None:
    with pytest.raises(NotFound, match=r"^no hop 7$"):
        await ask_async(
            data,
            "POST",
            "/manage/test/fail",
            body={"how": "NotFound", "after_news": after_news},
            missing="no hop 7",
        )


@pytest.mark.usefixtures("work")
async def test_a_bug_is_one_line_for_the_caller_and_a_traceback_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path):
        with pytest.raises(GatewayError, match=r"failed at POST /manage/test/crash; its log says why"):
            await post(tmp_path, "crash")
        assert await post(tmp_path, "hurry", to=1) == {"number": 0, "text": ""}
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("method", "path"), [("POST", "/manage/hops"), ("GET", "/manage/hops")])
async def test_a_gateway_of_another_version_says_so(tmp_path: Path, method: str, path: str) -> None:
    async with running(tmp_path):
        with pytest.raises(GatewayError, match="of another version: restart it"):
            await ask_async(tmp_path, method, path)


async def test_a_gateway_before_the_one_door_says_so(tmp_path: Path) -> None:
    """Its socket knew POST of a command's name, and nothing else."""

    async def command(_: web.Request) -> web.Response:
        raise AssertionError

    app = web.Application()
    app.router.add_post("/{command}", command)
    listener, store = UnixListener(app, tmp_path), SqliteStore(tmp_path)
    await store.open()
    await listener.start()
    try:
        for method, path in (("GET", "/manage/keys"), ("POST", "/manage/keys"), ("GET", "/healthz")):
            with pytest.raises(GatewayError, match="of another version: restart it"):
                await ask_async(tmp_path, method, path)
    finally:
        await listener.stop()
        await store.close()


@pytest.mark.usefixtures("quiet")
async def test_work_is_cancelled_at_once_when_its_caller_goes_away(
    tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "SIGN_S", 60.0)
    async with running(tmp_path), asyncio.timeout(PATIENCE_S):
        calling = asyncio.create_task(post(tmp_path, "hang"))
        await work.begun.wait()
        assert not work.cancelled.is_set()
        calling.cancel()
        await work.cancelled.wait()
        assert (await post(tmp_path, "echo", text="still here"))["text"] == "still here"


@pytest.mark.usefixtures("quiet")
async def test_a_gateway_that_ends_in_the_middle_is_an_error_and_nothing_is_run_twice(
    tmp_path: Path, work: Work
) -> None:
    async with running(tmp_path) as listener, asyncio.timeout(PATIENCE_S):
        calling = asyncio.create_task(post(tmp_path, "hang"))
        await work.begun.wait()
        await listener.stop()
        with pytest.raises(GatewayError, match=r"ended while POST /manage/test/hang ran; look at"):
            await calling
    assert work.cancelled.is_set()
    assert work.runs == 1


@pytest.mark.usefixtures("work", "quiet")
async def test_signs_of_life_keep_a_caller_waiting_who_else_would_give_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "BUSY_WAIT_S", 0.5)
    async with running(tmp_path):
        monkeypatch.setattr(lines, "SIGN_S", 0.05)
        assert (await post(tmp_path, "rest", seconds=1.5))["text"] == "rested"
        monkeypatch.setattr(lines, "SIGN_S", 60.0)
        with pytest.raises(GatewayError, match="the running gateway does not answer"):
            await post(tmp_path, "rest", seconds=60.0)


@pytest.mark.usefixtures("work", "quiet")
async def test_a_body_beyond_the_limit_is_refused_with_its_reason(data: Path) -> None:
    with pytest.raises(TooLarge, match="the body is larger than 2097152 bytes"):
        await post(data, "echo", text="x" * 2 * 1024 * 1024)


@pytest.mark.usefixtures("work", "quiet")
@pytest.mark.parametrize("value", ["\udcff", ["fine", "\udcff"], {"fine": "\udcff"}, {"\udcff": "fine"}])
async def test_what_is_no_text_is_refused_wherever_it_stands(data: Path, value: object) -> None:
    with pytest.raises(InvalidInput, match="the text is not UTF-8 text"):
        await post(data, "echo", text=value)


async def test_a_directory_may_have_a_long_path(tmp_path: Path, work: Work) -> None:
    data = tmp_path.joinpath(*["a long name of a directory"] * 6)
    data.mkdir(parents=True)
    assert len(os.fspath(data)) > 107
    async with running(data):
        assert (await post(data, "echo", text="far away"))["text"] == "far away"
    assert work.runs == 0


@pytest.mark.usefixtures("work")
async def test_who_finds_the_data_busy_waits_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path)
    await store.open()  # as a gateway that is just starting: locked, and no socket yet
    calling = asyncio.create_task(post(tmp_path, "echo", text="at last"))
    await asyncio.sleep(0.3)
    assert not calling.done()
    await store.close()
    assert (await calling)["text"] == "at last"
    await store.open()
    monkeypatch.setattr(client, "BUSY_WAIT_S", 0.1)
    with pytest.raises(TryAgain, match=f"has {tmp_path} open .process {os.getpid()}, since .*try again"):
        await post(tmp_path, "echo", text="never")
    await store.close()


@pytest.mark.usefixtures("work")
async def test_the_socket_of_a_dead_gateway_is_no_obstacle(tmp_path: Path) -> None:
    async with running(tmp_path):
        os.link(tmp_path / SOCKET_NAME, tmp_path / "kept")
    (tmp_path / "kept").rename(tmp_path / SOCKET_NAME)
    assert (await post(tmp_path, "echo", text="alive"))["text"] == "alive"
    assert (await ask_async(tmp_path, "GET", "/manage/accounts"))["count"] == "1"


async def test_reading_neither_creates_nor_migrates_a_database(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="there is no database in"):
        await ask_async(tmp_path, "GET", "/manage/accounts")
    assert not (tmp_path / DATABASE_NAME).exists()
    async with running(tmp_path):
        pass
    path = tmp_path / DATABASE_NAME
    with sqlite3.connect(path) as connection:
        [[version]] = connection.execute("PRAGMA user_version")
        connection.execute(f"PRAGMA user_version = {version - 1}")
    connection.close()
    with pytest.raises(GatewayError):
        await ask_async(tmp_path, "GET", "/manage/accounts")
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version - 1,)
    connection.close()


@pytest.mark.usefixtures("quiet")
async def test_an_account_is_chosen_by_its_name(data: Path) -> None:
    await ask_async(data, "POST", "/manage/accounts", body={"name": "Jürgen & Söhne, 100 %"})
    folder = {"kind": "recipe", "name": "Stouts"}
    await ask_async(data, "POST", "/manage/folders", body=folder, account="Jürgen & Söhne, 100 %")
    assert (await ask_async(data, "GET", "/manage/folders"))["count"] == "0"
    theirs = await ask_async(data, "GET", "/manage/folders", account="Jürgen & Söhne, 100 %")
    assert [one["name"] for one in theirs["folders"]] == ["Stouts"]
    for method in ("GET", "POST"):
        with pytest.raises(NotFound, match=r"^no account named 'Jurgen'.*; `accounts list` shows them$"):
            await ask_async(
                data, method, "/manage/folders", body=folder if method == "POST" else None, account="Jurgen"
            )


@pytest.mark.usefixtures("work")
async def test_a_hanging_gateway_does_not_keep_anybody_from_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "BUSY_WAIT_S", 0.2)

    async def hang(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    app = web.Application()
    app.router.add_get("/{path:.*}", hang)
    listener = UnixListener(app, tmp_path)
    async with running(tmp_path) as real:
        await real.stop()
        await listener.start()
        try:
            assert (await ask_async(tmp_path, "GET", "/manage/accounts"))["count"] == "1"
        finally:
            await listener.stop()


def test_who_asks_the_running_gateway_opens_nothing_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="nobody answers"):
        asyncio.run(ask_running(tmp_path, "/healthz"))
    assert list(tmp_path.iterdir()) == []


def test_the_client_works_without_a_loop(tmp_path: Path) -> None:
    made = ask(tmp_path, "POST", "/manage/accounts", body={"name": "anna", "nothing": None})
    assert json.dumps(made)
    assert [one["name"] for one in client.get(tmp_path, "/manage/accounts")["accounts"]][-1] == "anna"


async def test_the_owner_is_never_recognised_over_tcp(tmp_path: Path, aiohttp_client: Any) -> None:
    """Neither the header nor an unknown address makes an owner."""
    async with running(tmp_path):
        pass
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, SystemClock())
    await services.access.start()
    http = await aiohttp_client(site.build(services))
    try:
        for headers in ({}, {"X-Account": "owner"}, {"X-API-KEY": "", "X-Account": "owner"}):
            async with http.get("/manage/accounts", headers=headers) as answer:
                assert answer.status == 401
    finally:
        await http.close()
        await store.close()
