"""Running the command line's commands: directly, or by the gateway that is running.

Only one process may write to the database (see `store.sqlite.database`). A command therefore takes the
lock itself where no gateway runs, and otherwise asks the running one over a Unix socket in the data
directory. The socket needs no key: whoever may open it owns the data. The answer is one JSON object a line:
`{"progress": [done, of, what]}` as often as there is news, then `{"result": ...}` or
`{"error": "...", "kind": "NotFound"}`. Blank lines are signs of life. The headers go out
before the command begins.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from gateway import errors
from gateway.clock import Clock, SystemClock
from gateway.commands import COMMANDS
from gateway.commands.base import Arguments, Progress
from gateway.errors import GatewayError, InvalidInput, StoreInUse, TooLarge
from gateway.http.unix import SOCKET_NAME as SOCKET_NAME
from gateway.http.unix import UnixListener, short_path
from gateway.services.build import Services, build_services
from gateway.store.local import database_path, open_store
from gateway.store.local import open_read_only as opened_read_only

__all__ = ["ask_running", "has_database", "opened_read_only", "run_command"]

log = logging.getLogger(__name__)

BUSY_WAIT_S = 10.0
"""How long a command waits for a gateway that is just starting or stopping, or for another command."""

BUSY_STEP_S = 0.05

SIGN_S = 3.0
"""A command that runs gives a sign of life so often; without any for `BUSY_WAIT_S` it counts as dead."""

ARGUMENT_BYTES = 32 * 1024 * 1024
"""Of a command's arguments: a file of 20 MB in them."""

KINDS = ("InvalidInput", "NameTaken", "NotFound", "StoreUnavailable", "TooLarge", "UnsupportedMedia")
"""Errors that are the same on both sides of the socket; any other is a `GatewayError`."""


def _no_progress(_done: int, _of: int, _what: str) -> None:
    """Nobody watches."""


async def run_command(
    directory: Path, command: str, /, progress: Progress = _no_progress, **arguments: Any
) -> Any:
    """Run a command on a data directory, whoever has it open; raises `GatewayError` where it fails."""
    _check_text(arguments)
    clock = SystemClock()
    deadline = clock.monotonic() + BUSY_WAIT_S
    while True:
        try:
            async with _opened(directory, clock) as services:
                return await COMMANDS[command](services, arguments, progress)
        except StoreInUse:
            if (directory / SOCKET_NAME).exists():
                try:
                    return await _ask(directory, command, arguments, progress)
                except TimeoutError as error:  # first: aiohttp's own is a connection error as well
                    raise GatewayError("the running gateway does not answer") from error
                except aiohttp.ClientConnectionError:
                    pass  # it is just stopping, or just starting: look again
            if clock.monotonic() > deadline:
                raise
            await clock.sleep(BUSY_STEP_S)


async def ask_running(directory: Path, command: str) -> Any:
    """Have the gateway that runs there do it; `GatewayError` where none answers. Never opens the data."""
    try:
        return await _ask(directory, command, {}, _no_progress)
    except (OSError, aiohttp.ClientError) as error:
        raise GatewayError("nobody answers at its socket") from error


def _check_text(arguments: Arguments) -> None:
    """Refuse bytes of the command line that are not text: the database holds UTF-8."""
    for name, value in arguments.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"the {name} is not UTF-8 text: {value!r}") from error


@asynccontextmanager
async def _opened(directory: Path, clock: Clock) -> AsyncIterator[Services]:
    async with open_store(directory) as store:
        services = build_services(store, directory, clock)
        await services.access.start()
        yield services


def has_database(directory: Path) -> bool:
    """Return whether there is a database in this data directory."""
    return database_path(directory).exists()


async def _ask(directory: Path, command: str, arguments: Arguments, progress: Progress) -> Any:
    """The result; `ClientConnectionError` only while the command has not begun."""
    said = json.dumps(arguments).encode()
    if len(said) > ARGUMENT_BYTES:
        raise TooLarge(f"more than {ARGUMENT_BYTES >> 20} MiB are too much for one command")
    timeout = aiohttp.ClientTimeout(total=None, sock_read=BUSY_WAIT_S)
    with short_path(directory) as path:
        connector = aiohttp.UnixConnector(path=path)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            session.post(f"http://gateway/{command}", data=BytesIO(said)) as response,
        ):
            try:
                return await _follow(response.content, command, progress)
            except TimeoutError:
                raise
            except aiohttp.ClientError as error:
                remedy = "look at what is done before you repeat it"
                raise GatewayError(f"the running gateway ended while {command} ran; {remedy}") from error


async def _follow(answer: aiohttp.StreamReader, command: str, progress: Progress) -> Any:
    """What the last line says; the others go to `progress`."""
    async for line in _lines(answer):
        said = json.loads(line)
        if "progress" in said:
            progress(*said["progress"])
        elif "error" in said:
            kind = said.get("kind")
            raise (getattr(errors, kind) if kind in KINDS else GatewayError)(said["error"])
        else:
            return said["result"]
    raise GatewayError(f"the running gateway failed at {command}; its log says why")


async def _lines(answer: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length, without the blank ones."""
    rest = b""
    async for piece in answer.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        for line in filter(None, lines):
            yield line


class ControlSocket:
    """The running gateway's side."""

    def __init__(self, directory: Path, services: Services, app: web.Application | None = None) -> None:
        self._services = services
        app = web.Application() if app is None else app
        app.router.add_post("/{command}", self._handle)
        listener = UnixListener(app, directory)
        self.start, self.stop = listener.start, listener.stop

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """Run a command and say how it goes; when the asking side goes away, the command is cancelled."""
        name = request.match_info["command"]
        arguments = json.loads(await request.content.read())
        answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await answer.prepare(request)
        news: asyncio.Queue[list[int | str]] = asyncio.Queue(maxsize=1)

        def progress(done: int, of: int, what: str) -> None:
            if news.full():
                news.get_nowait()  # only the latest counts
            news.put_nowait([done, of, what])

        task = asyncio.create_task(
            _outcome(self._services, name, arguments, progress), name=f"command {name}"
        )
        try:
            while not task.done():
                await _report(answer, task, news)
            if not news.empty():
                await _line(answer, {"progress": news.get_nowait()})
            await _line(answer, task.result())
        finally:
            task.cancel()
        return answer


async def _report(
    answer: web.StreamResponse, task: asyncio.Task[Arguments], news: asyncio.Queue[list[int | str]]
) -> None:
    """Pass news on as it comes; without any, a sign of life."""
    getting = asyncio.create_task(news.get())
    try:
        await asyncio.wait([task, getting], timeout=SIGN_S, return_when=asyncio.FIRST_COMPLETED)
        if getting.done():
            await _line(answer, {"progress": getting.result()})
        elif not task.done():
            await answer.write(b"\n")
    finally:
        getting.cancel()


async def _line(answer: web.StreamResponse, said: Arguments) -> None:
    await answer.write(json.dumps(said).encode() + b"\n")


async def _outcome(services: Services, name: str, arguments: Arguments, progress: Progress) -> Arguments:
    """What the last line says."""
    command = COMMANDS.get(name)
    if command is None:
        return {"error": "the running gateway is of another version: restart it"}
    try:
        return {"result": await command(services, arguments, progress)}
    except GatewayError as error:
        return {"error": str(error), "kind": type(error).__name__}
    except Exception:
        log.exception("control: %s failed", name)
        return {"error": f"the running gateway failed at {name}; its log says why"}
