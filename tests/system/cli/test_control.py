"""Commands by the socket of a running gateway, and without one: news, results, errors, and who goes away."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway import control
from gateway.clock import SystemClock
from gateway.commands import COMMANDS
from gateway.commands.base import Arguments, Progress, as_bytes, as_text
from gateway.control import ARGUMENT_BYTES, SOCKET_NAME, ControlSocket, ask_running, run_command
from gateway.errors import GatewayError, InvalidInput, NotFound, StoreUnavailable, TooLarge
from gateway.services.build import Services, build_services
from gateway.store.sqlite.store import SqliteStore
from tests.patience import PATIENCE_S
from tests.program.program import until

LONG_LINE = 3 * 1024 * 1024


class Commands:
    """Commands that only tests have, and what became of them."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.may_end = asyncio.Event()
        self.runs = 0

    async def count(self, _: Services, arguments: Arguments, progress: Progress) -> int:
        """Has so much news, each when the one before has been passed on."""
        for done in range(1, arguments["to"] + 1):
            progress(done, arguments["to"], f"item {done}")
            await asyncio.sleep(0.01)
        return int(arguments["to"])

    async def hurry(self, _: Services, arguments: Arguments, progress: Progress) -> None:
        """Has its last news in the moment it ends."""
        for done in range(1, arguments["to"] + 1):
            await asyncio.sleep(0)
            progress(done, arguments["to"], "")

    async def fail(self, _: Services, arguments: Arguments, __: Progress) -> None:
        raise {"NotFound": NotFound, "StoreUnavailable": StoreUnavailable}[arguments["how"]]("no such thing")

    async def crash(self, *_: object) -> None:
        raise ZeroDivisionError

    async def echo(self, _: Services, arguments: Arguments, __: Progress) -> object:
        return arguments

    async def hang(self, *_: object) -> str:
        self.runs += 1
        self.begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "ended"

    async def rest(self, _: Services, arguments: Arguments, __: Progress) -> str:
        await asyncio.sleep(arguments["seconds"])
        return "rested"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    made = Commands()
    for name in ("count", "hurry", "fail", "crash", "echo", "hang", "rest"):
        monkeypatch.setitem(COMMANDS, f"test.{name}", getattr(made, name))
    return made


@asynccontextmanager
async def running(data: Path) -> AsyncIterator[ControlSocket]:
    """What a running gateway has of this: the data, locked, and the socket."""
    store = SqliteStore(data)
    await store.open()
    try:
        services = build_services(store, data, SystemClock())
        await services.access.start()
        socket = ControlSocket(data, services)
        await socket.start()
        try:
            yield socket
        finally:
            await socket.stop()
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


@pytest.mark.usefixtures("commands", "quiet")
async def test_news_arrive_in_order_and_then_the_result(data: Path) -> None:
    news: list[tuple[int, int, str]] = []
    result = await run_command(data, "test.count", lambda *said: news.append(said), to=5)
    assert result == 5
    assert news == [(done, 5, f"item {done}") for done in range(1, 6)]


@pytest.mark.usefixtures("commands", "quiet")
async def test_news_that_come_faster_than_they_go_out_are_skipped_but_never_the_last(data: Path) -> None:
    for many in range(1, 100):
        news: list[tuple[int, int, str]] = []
        await run_command(data, "test.hurry", lambda *said: news.append(said), to=many)  # noqa: B023
        assert news[-1] == (many, many, "")
        assert news == sorted(news)


@pytest.mark.usefixtures("commands", "quiet")
async def test_arguments_and_results_may_be_long(data: Path) -> None:
    said: Arguments = {"document": as_text(bytes(LONG_LINE)), "names": ["ä", "b"], "none": None}
    answer = await run_command(data, "test.echo", **said)
    assert answer == said
    assert as_bytes(answer["document"]) == bytes(LONG_LINE)


@pytest.mark.usefixtures("commands", "quiet")
@pytest.mark.parametrize(("how", "kind"), [("NotFound", NotFound), ("StoreUnavailable", StoreUnavailable)])
async def test_a_failure_is_of_the_same_kind_on_both_sides(
    data: Path, how: str, kind: type[GatewayError]
) -> None:
    with pytest.raises(GatewayError, match=r"^no such thing$") as failed:
        await run_command(data, "test.fail", how=how)
    assert type(failed.value) is kind


@pytest.mark.usefixtures("commands")
async def test_a_bug_is_one_line_for_the_caller_and_a_traceback_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path):
        with pytest.raises(GatewayError, match=r"failed at test\.crash; its log says why"):
            await run_command(tmp_path, "test.crash")
        assert await run_command(tmp_path, "test.hurry", to=1) is None
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


@pytest.mark.usefixtures("quiet")
async def test_a_command_of_another_version_says_so(
    tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path):
        monkeypatch.delitem(COMMANDS, "test.hang")
        with pytest.raises(GatewayError, match="of another version: restart it"):
            await run_command(tmp_path, "test.hang")
    assert commands.runs == 0


@pytest.mark.usefixtures("quiet")
async def test_a_command_is_cancelled_at_once_when_its_caller_goes_away(
    tmp_path: Path, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "SIGN_S", 60.0)
    async with running(tmp_path), asyncio.timeout(PATIENCE_S):
        calling = asyncio.create_task(run_command(tmp_path, "test.hang"))
        await commands.begun.wait()
        assert not commands.cancelled.is_set()
        calling.cancel()
        await commands.cancelled.wait()
        assert await run_command(tmp_path, "test.echo", still="here") == {"still": "here"}


@pytest.mark.usefixtures("quiet")
async def test_a_gateway_that_ends_in_the_middle_is_an_error_and_nothing_is_run_twice(
    tmp_path: Path, commands: Commands
) -> None:
    async with running(tmp_path) as socket, asyncio.timeout(PATIENCE_S):
        calling = asyncio.create_task(run_command(tmp_path, "test.hang"))
        await commands.begun.wait()
        await socket.stop()
        with pytest.raises(GatewayError, match=r"ended while test\.hang ran; look at what is done"):
            await calling
    assert commands.cancelled.is_set()
    assert commands.runs == 1


@pytest.mark.usefixtures("commands", "quiet")
async def test_signs_of_life_keep_a_caller_waiting_who_else_would_give_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "BUSY_WAIT_S", 0.3)
    async with running(tmp_path):
        monkeypatch.setattr(control, "SIGN_S", 0.05)
        assert await run_command(tmp_path, "test.rest", seconds=1.0) == "rested"
        monkeypatch.setattr(control, "SIGN_S", 60.0)
        with pytest.raises(GatewayError, match="the running gateway does not answer"):
            await run_command(tmp_path, "test.rest", seconds=60.0)


@pytest.mark.usefixtures("commands", "quiet")
async def test_arguments_beyond_the_limit_are_told_so(tmp_path: Path) -> None:
    async with running(tmp_path):
        with pytest.raises(TooLarge, match="more than 32 MiB are too much for one command"):
            await run_command(tmp_path, "test.echo", text="x" * (ARGUMENT_BYTES + 1))
        assert await run_command(tmp_path, "test.echo", text="x") == {"text": "x"}


@pytest.mark.usefixtures("commands", "quiet")
@pytest.mark.parametrize("value", ["\udcff", ["fine", "\udcff"], {"fine": "\udcff"}, {"\udcff": "fine"}])
async def test_what_is_no_text_is_refused_wherever_it_stands(data: Path, value: object) -> None:
    with pytest.raises(InvalidInput, match="the value is not UTF-8 text"):
        await run_command(data, "test.echo", value=value)


def test_who_asks_the_running_gateway_opens_nothing_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="nobody answers"):
        asyncio.run(ask_running(tmp_path, "health.parts"))
    assert list(tmp_path.iterdir()) == []
