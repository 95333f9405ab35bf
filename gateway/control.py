"""What the command line changes: one table of commands, run directly or by the gateway that is running.

Only one process may write to the database (see `store.sqlite.database`). A command therefore takes the
lock itself where no gateway runs, and otherwise asks the running one over a Unix socket in the data
directory. The socket needs no key: whoever may open it owns the data.
"""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from gateway.clock import Clock, SystemClock
from gateway.domain.key import ALL_SCOPES
from gateway.errors import GatewayError, InvalidInput, StoreInUse
from gateway.events import StoredNotices
from gateway.services.access import Access
from gateway.services.brewing import Brewing
from gateway.store.protocol import Store
from gateway.store.sqlite.store import SqliteStore

log = logging.getLogger(__name__)

SOCKET_NAME = "control.sock"

BUSY_WAIT_S = 10.0
"""How long a command waits for a gateway that is just starting or stopping, or for another command."""

BUSY_STEP_S = 0.05

Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Services:
    """What commands work on."""

    access: Access
    brewing: Brewing


async def _keys_add(services: Services, arguments: Arguments) -> str:
    return await services.access.add(arguments["name"], frozenset(arguments["scopes"] or ALL_SCOPES))


async def _keys_revoke(services: Services, arguments: Arguments) -> None:
    await services.access.revoke(arguments["name"])


async def _sessions_add(services: Services, arguments: Arguments) -> int:
    return (await services.brewing.add_session(**arguments)).id


async def _devices_assign(services: Services, arguments: Arguments) -> int:
    return await services.brewing.assign(**arguments)


async def _devices_release(services: Services, arguments: Arguments) -> None:
    await services.brewing.release(**arguments)


COMMANDS: dict[str, Callable[[Services, Arguments], Awaitable[Any]]] = {
    "keys.add": _keys_add,
    "keys.revoke": _keys_revoke,
    "sessions.add": _sessions_add,
    "devices.assign": _devices_assign,
    "devices.release": _devices_release,
}


async def run_command(directory: Path, command: str, /, **arguments: Any) -> Any:
    """Run a command on a data directory, whoever has it open; raises `GatewayError` where it fails."""
    _check_text(arguments)
    clock = SystemClock()
    deadline = clock.monotonic() + BUSY_WAIT_S
    while True:
        try:
            async with _opened(directory, clock) as services:
                return await COMMANDS[command](services, arguments)
        except StoreInUse:
            if (directory / SOCKET_NAME).exists():
                try:
                    return await _ask(directory, command, arguments)
                except aiohttp.ClientConnectionError:
                    pass  # it is just stopping, or just starting: look again
                except TimeoutError as error:
                    raise GatewayError("the running gateway does not answer") from error
            if clock.monotonic() > deadline:
                raise
            await clock.sleep(BUSY_STEP_S)


def _check_text(arguments: Arguments) -> None:
    """Refuse bytes of the command line that are not text: the database holds UTF-8."""
    for name, value in arguments.items():
        try:
            str(value).encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"the {name} is not UTF-8 text: {value!r}") from error


@asynccontextmanager
async def _opened(directory: Path, clock: Clock) -> AsyncIterator[Services]:
    store = SqliteStore(directory)
    await store.open()
    try:
        access = Access(store, clock)
        await access.start()
        yield Services(access, Brewing(store, access, StoredNotices(), clock))
    finally:
        await store.close()


@asynccontextmanager
async def opened_read_only(directory: Path) -> AsyncIterator[Store]:
    """The store for looking only, beside a running gateway or without one."""
    store = SqliteStore(directory)
    try:
        await store.open_read_only()
        yield store
    finally:
        await store.close()


async def _ask(directory: Path, command: str, arguments: Arguments) -> Any:
    with _short_path(directory) as path:
        connector = aiohttp.UnixConnector(path=path)
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=aiohttp.ClientTimeout(total=BUSY_WAIT_S)
            ) as session,
            session.post(f"http://gateway/{command}", json=arguments) as response,
        ):
            if response.status != 200:
                raise GatewayError(f"the running gateway failed at {command}; its log says why")
            answer = await response.json()
    if "error" in answer:
        raise GatewayError(answer["error"])
    return answer["result"]


class ControlSocket:
    """The running gateway's side."""

    def __init__(self, directory: Path, services: Services) -> None:
        self._directory = directory
        self._services = services
        self._held = ExitStack()
        app = web.Application()
        app.router.add_post("/{command}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    async def start(self) -> None:
        """Listen; the socket is the owner's alone."""
        await self._runner.setup()
        # Held until `stop`: since Python 3.13 asyncio removes the socket itself, by the path it was given.
        path = self._held.enter_context(_short_path(self._directory))
        await web.UnixSite(self._runner, path).start()
        (self._directory / SOCKET_NAME).chmod(0o600)

    async def stop(self) -> None:
        """Stop listening and remove the socket."""
        await self._runner.cleanup()
        self._held.close()
        (self._directory / SOCKET_NAME).unlink(missing_ok=True)

    async def _handle(self, request: web.Request) -> web.Response:
        command = COMMANDS.get(request.match_info["command"])
        if command is None:
            return web.json_response({"error": "the running gateway is of another version: restart it"})
        try:
            result = await command(self._services, await request.json())
        except GatewayError as error:
            return web.json_response({"error": str(error)})
        return web.json_response({"result": result})


@contextmanager
def _short_path(directory: Path) -> Iterator[str]:
    """The socket's path by way of a descriptor: a Unix socket path may have 107 bytes, a directory more."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{SOCKET_NAME}"
    finally:
        os.close(fd)
