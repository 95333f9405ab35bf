"""Requests to the application: the running gateway's, through its socket, or one in this process.

Only one process may write to the database. So a command that changes something takes the lock itself if no
gateway runs, and else asks the gateway that has the lock. A command that only reads needs no lock: without a
gateway it opens the database read-only.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import aiohttp
from yarl import URL

from gateway.clock import SystemClock
from gateway.domain.progress import Progress, no_progress
from gateway.errors import (
    GatewayError,
    InvalidInput,
    NameTaken,
    NotFound,
    StoreInUse,
    StoreUnavailable,
    TooLarge,
    UnsupportedMedia,
)
from gateway.http.lines import JSON, LINES
from gateway.http.middleware import FIXED_DETAIL, INTERNAL_ERROR
from gateway.http.owner import ACCOUNT_HEADER, NO_SUCH_PATH
from gateway.http.unix import SOCKET_NAME, UnixListener, short_path

BUSY_WAIT_S = 10.0
"""Seconds that a command waits for a gateway that is just starting or stopping, or for another command."""

BUSY_STEP_S = 0.05

KINDS: dict[int, type[GatewayError]] = {
    400: InvalidInput,
    404: NotFound,
    409: NameTaken,
    413: TooLarge,
    415: UnsupportedMedia,
    503: StoreUnavailable,
}
"""The error to raise for each HTTP status; the answer's `detail` becomes the text of the error."""

OTHER_VERSION = "the running gateway is of another version: restart it"

T = TypeVar("T")
Receive = Callable[[bytes], None]


@dataclass
class Request:
    """A request, and its progress.

    `body` is sent as JSON, `data` as it is. `missing` is the error's text for a 404. `receive` takes the
    pieces of an answer that is no JSON. `begun` is set once the gateway has taken the request.
    """

    method: str
    path: str
    query: Mapping[str, object]
    body: Mapping[str, object] | None = None
    data: bytes | None = None
    media: str = JSON
    account: str | None = None
    missing: str = ""
    progress: Progress = no_progress
    receive: Receive | None = None
    begun: bool = False

    @property
    def named(self) -> str:
        """Return the request as messages name it."""
        return f"{self.method} {self.path}"


def get(directory: Path, path: str, **options: Any) -> Any:
    """Send a GET request with the options of `ask`; never create or change a database."""
    return ask(directory, "GET", path, **options)


def ask(directory: Path, method: str, path: str, **options: Any) -> Any:
    """Send a request to the gateway of a data directory and return the gateway's JSON answer.

    The path is percent-encoded already. Options: `query` and `body` (JSON; members that are None are left
    out); `data` with `media` (a file; "" for an unknown kind); `account` (a name; else the owner's account);
    `missing` (the message for a 404); `progress`; `receive` (takes the bytes of an answer that is no JSON).
    `writing` takes the lock also for a GET, for a command that goes on to change something. Raise
    `GatewayError` if the request fails.
    """
    return asyncio.run(ask_async(directory, method, path, **options))


async def ask_async(
    directory: Path,
    method: str,
    path: str,
    *,
    query: Mapping[str, object] | None = None,
    body: Mapping[str, object] | None = None,
    writing: bool = False,
    **options: Any,
) -> Any:
    """Send a request as `ask` does, inside a running event loop."""
    query = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in (query or {}).items()
        if value is not None
    }
    if body is not None:
        body = {name: value for name, value in body.items() if value is not None}
    request = Request(method, path, query, body, **options)
    check_text({**query, **(body or {}), "account": request.account})
    reads = method == "GET" and not writing
    return await (_read(directory, request) if reads else _change(directory, request))


async def ask_running(directory: Path, path: str) -> Any:
    """Read from a directory's running gateway; `GatewayError` if none answers. Never open the database."""
    try:
        return await _send(directory, Request("GET", path, {}), BUSY_WAIT_S)
    except (OSError, aiohttp.ClientError) as error:
        raise GatewayError("nobody answers at its socket") from error


async def _read(directory: Path, request: Request) -> Any:
    if (directory / SOCKET_NAME).exists():
        try:
            return await _send(directory, request, BUSY_WAIT_S)
        except (TimeoutError, aiohttp.ClientConnectionError) as error:
            # Else the gateway hangs, stops or is dead, and the data can be read beside it.
            if request.begun:
                raise GatewayError("the running gateway does not answer") from error
    async with _in_process(directory, read_only=True) as door:
        return await _send(door, request, None)


async def _change(directory: Path, request: Request) -> Any:
    clock = SystemClock()
    deadline = clock.monotonic() + BUSY_WAIT_S
    while True:
        try:
            async with _in_process(directory, read_only=False) as door:
                return await _send(door, request, None)
        except StoreInUse:
            if (directory / SOCKET_NAME).exists():
                try:
                    return await _send(directory, request, BUSY_WAIT_S)
                except TimeoutError as error:  # first, because aiohttp's own is a connection error as well
                    raise GatewayError("the running gateway does not answer") from error
                except aiohttp.ClientConnectionError:
                    pass  # the gateway is just stopping, or just starting
            if clock.monotonic() > deadline:
                raise
            await clock.sleep(BUSY_STEP_S)


@asynccontextmanager
async def _in_process(directory: Path, *, read_only: bool) -> AsyncIterator[Path]:
    """Serve the data from this process, on a socket in a private directory; yield that directory."""
    from gateway.services.build import build_services  # here, because `--help` need not wait for it
    from gateway.site import build
    from gateway.store.local import open_read_only, open_store

    async with (open_read_only if read_only else open_store)(directory) as store:
        services = build_services(store, directory, SystemClock())
        await (services.access.load() if read_only else services.access.start())
        with tempfile.TemporaryDirectory(prefix="hydrometer-gateway-") as private:
            listener = UnixListener(build(services, door="socket"), Path(private))
            await listener.start()
            try:
                yield Path(private)
            finally:
                await listener.stop()


async def _send(directory: Path, request: Request, silence_s: float | None) -> Any:
    """Send a request through a directory's socket; `ClientConnectionError` only before it has begun."""
    headers = {"Accept": f"{LINES}, */*"}
    if request.account is not None:
        headers[ACCOUNT_HEADER] = quote(request.account, safe="")
    data = request.data
    if request.body is not None:
        data = json.dumps(request.body, ensure_ascii=False).encode()
    if data is not None and request.media:
        headers["Content-Type"] = request.media

    async def body() -> AsyncIterator[bytes]:
        request.begun = True  # asked for only after "100 Continue"
        waiting.reschedule(None)
        yield data or b""

    timeout = aiohttp.ClientTimeout(total=None, sock_read=silence_s)
    with short_path(directory) as path:
        connector = aiohttp.UnixConnector(path=path)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            try:
                # aiohttp's own deadline begins with the last byte that was sent.
                async with asyncio.timeout(None if request.method == "GET" else silence_s) as waiting:
                    response = await session.request(
                        request.method,
                        URL(f"http://gateway{request.path}", encoded=True).with_query(
                            {name: str(value) for name, value in request.query.items()}
                        ),
                        data=None if request.method == "GET" else body(),
                        expect100=request.method != "GET",
                        headers=headers,
                        skip_auto_headers=["Content-Type"],
                    )
                async with response:
                    return await _result(response, request)
            except TimeoutError:
                raise
            except aiohttp.ClientError as error:
                if not request.begun:
                    raise
                remedy = "look at what is done before you repeat it"
                raise GatewayError(
                    f"the running gateway ended while {request.named} ran; {remedy}"
                ) from error


async def _result(response: aiohttp.ClientResponse, request: Request) -> Any:
    request.begun = True
    if response.status != 200:
        members = await _members(response)
        if "parts" in members:
            return members  # the health page, which is an answer also while the store is in trouble
        raise _error(request, response.status, members)
    if request.receive is not None:
        async for piece in response.content.iter_any():
            request.receive(piece)
        return None
    if response.content_type == LINES:
        return await _follow(response.content, request)
    return json.loads(await response.read())


async def _members(response: aiohttp.ClientResponse) -> dict[str, Any]:
    """Return the members of a refusal; none if the answer is not the gateway's."""
    try:
        members = json.loads(await response.read())
    except ValueError:
        return {}
    return members if isinstance(members, dict) else {}


async def _follow(answer: aiohttp.StreamReader, request: Request) -> Any:
    """Pass progress from the answer's lines on; return the result in its last line."""
    async for line in _lines(answer):
        given = json.loads(line)
        if "progress" in given:
            news = given["progress"]
            request.progress(news["done"], news["of"], news["what"])
        elif "error" in given:
            raise _error(request, given["error"]["status"], given["error"])
        else:
            return given["result"]
    raise _failed(request)


async def _lines(answer: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the answer's lines, of any length; skip blank lines, which are signs of life."""
    rest = b""
    async for piece in answer.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        for line in filter(None, lines):
            yield line


def _error(request: Request, status: int, members: Mapping[str, str]) -> GatewayError:
    detail = members.get("detail")
    if detail is None or detail == NO_SUCH_PATH:
        return GatewayError(OTHER_VERSION)
    if status == 404 and detail == FIXED_DETAIL[NotFound]:
        return NotFound(request.missing or detail)
    if status == 500 and detail == INTERNAL_ERROR:
        return _failed(request)
    return KINDS.get(status, GatewayError)(detail)


def _failed(request: Request) -> GatewayError:
    return GatewayError(f"the running gateway failed at {request.named}; its log says why")


def check_text(values: Mapping[str, object]) -> None:
    """Refuse bytes of the command line that are not text: the database holds UTF-8."""
    for name, value in values.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise InvalidInput(f"the {name} is not UTF-8 text: {value!r}") from error
