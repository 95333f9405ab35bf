"""Requests to the application: the running gateway's, through its socket, or one in this process.

Only one process may write to the database. So a command that changes something takes the lock itself if no
gateway runs, and else asks the gateway that has the lock. A command that only reads needs no lock: without a
gateway it opens the database read-only.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from gateway.cli.ownership import files_of_owner
from gateway.cli.progress import signs_of_life
from gateway.cli.wire import CONTINUE, Cut, Silent, Wire
from gateway.config import no_right
from gateway.domain.progress import Progress, no_progress
from gateway.errors import (
    GatewayError,
    InvalidInput,
    NameTaken,
    NotFound,
    StoreInUse,
    StoreUnavailable,
    StoreUnusable,
    TooLarge,
    TryAgain,
    UnsupportedMedia,
)
from gateway.http.both_ends import (
    ACCOUNT_HEADER,
    FIXED_DETAIL,
    INTERNAL_ERROR,
    JSON,
    LINES,
    NO_SUCH_PATH,
    SOCKET_NAME,
)

BUSY_WAIT_S = 10.0
"""Seconds that a command waits for a gateway that is just starting or stopping, or for another command."""

QUEUE_WAIT_S = 120.0
"""Seconds that a command waits for its turn in all, while one command after the other has the data."""

BUSY_STEP_S = 0.05

BRIEFLY_S = 0.2
"""Seconds that completion waits for a gateway."""

KINDS: dict[int, type[GatewayError]] = {
    400: InvalidInput,
    404: NotFound,
    409: NameTaken,
    413: TooLarge,
    415: UnsupportedMedia,
    503: StoreUnavailable,
}
"""The error to raise for each HTTP status; the answer's `detail` becomes the text of the error."""

SILENT = "the running gateway does not answer; try again, and look at its log"

OTHER_VERSION = "the running gateway is of another version: restart it"

_changed = threading.Event()
"""Set once this command has changed something, for what Ctrl-C says."""

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
    cancelled: bool = False
    wire: Wire | None = field(default=None, repr=False)

    def cancel(self) -> None:
        """Give the request up, from another thread than the one that waits for the answer."""
        self.cancelled = True
        if self.wire is not None:
            self.wire.hang_up()

    @property
    def is_silent(self) -> bool:
        """Return whether nobody hears of the request before its end."""
        return self.progress is no_progress and self.receive is None

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
    request, reads = _request(method, path, **options)
    try:
        with signs_of_life() if request.is_silent else nullcontext():
            return _read(directory, request) if reads else _change(directory, request)
    except KeyboardInterrupt as stopped:
        untouched = not _changed.is_set() and (reads or not request.begun)
        stopped.add_note(
            "nothing was changed" if untouched else "it may be done in part: look before you repeat it"
        )
        raise
    finally:
        if not reads and request.begun:
            _changed.set()


async def ask_async(directory: Path, method: str, path: str, **options: Any) -> Any:
    """Send a request as `ask` does, from inside an event loop: a thread waits for the answer."""
    request, reads = _request(method, path, **options)
    return await _in_thread(_read if reads else _change, directory, request)


async def ask_running(directory: Path, path: str) -> Any:
    """Read from a directory's running gateway; `GatewayError` if none answers. Never open the database."""
    return await _in_thread(_read_running, directory, Request("GET", path, {}))


def ask_briefly(
    directory: Path, path: str, query: Mapping[str, object] | None = None, *, silence_s: float = BRIEFLY_S
) -> Any:
    """Read from a directory's running gateway, and wait for a moment only; `GatewayError` if none answers."""
    return _read_running(directory, Request("GET", path, query or {}), silence_s)


async def _in_thread(call: Callable[[Path, Request], Any], directory: Path, request: Request) -> Any:
    import asyncio  # not above: a command that finds a running gateway needs no event loop

    try:
        return await asyncio.to_thread(call, directory, request)
    finally:
        request.cancel()


def _request(
    method: str,
    path: str,
    *,
    query: Mapping[str, object] | None = None,
    body: Mapping[str, object] | None = None,
    writing: bool = False,
    **options: Any,
) -> tuple[Request, bool]:
    """Return the request, and whether it only reads."""
    query = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in (query or {}).items()
        if value is not None
    }
    if body is not None:
        body = {name: value for name, value in body.items() if value is not None}
    request = Request(method, path, query, body, **options)
    check_text({**query, **(body or {}), "account": request.account})
    return request, method == "GET" and not writing


def _read_running(directory: Path, request: Request, silence_s: float | None = None) -> Any:
    try:
        return _send(directory, request, silence_s or BUSY_WAIT_S)
    except (Cut, Silent) as error:
        raise GatewayError("nobody answers at its socket") from error


def _read(directory: Path, request: Request) -> Any:
    try:
        has_socket = (directory / SOCKET_NAME).exists()
    except PermissionError as error:
        raise StoreUnusable(no_right(directory)) from error
    if has_socket:
        try:
            return _send(directory, request, BUSY_WAIT_S)
        except (Cut, Silent) as error:
            # Else the gateway hangs, stops or is dead, and the data can be read beside it.
            if request.begun:
                raise TryAgain(SILENT) from error
    return _in_process(directory, request, read_only=True)


def _change(directory: Path, request: Request) -> Any:
    began = time.monotonic()
    holder, deadline = "", began
    while True:
        # The socket first, because opening the data takes ten times as long, and fails beside a gateway.
        try:
            return _send(directory, request, BUSY_WAIT_S)
        except Silent as error:
            raise TryAgain(SILENT) from error
        except Cut:
            pass  # no gateway runs, or it is just stopping or starting
        try:
            return _in_process(directory, request, read_only=False)
        except StoreInUse as error:
            if str(error) != holder:  # it names the process: commands take their turns
                holder = str(error)
                deadline = min(time.monotonic() + BUSY_WAIT_S, began + QUEUE_WAIT_S)
            if time.monotonic() > deadline or request.cancelled:
                raise TryAgain(f"{error}, and does not answer; try again") from error
            time.sleep(BUSY_STEP_S)


def _in_process(directory: Path, request: Request, *, read_only: bool) -> Any:
    """Send a request to the application in this process, which opens the data directory for it."""
    import asyncio

    from gateway.cli.in_process import serving  # here, because it imports the whole application

    async def served() -> Any:
        async with serving(directory, read_only=read_only) as door:
            try:
                return await asyncio.to_thread(_send, door, request, None)
            finally:
                request.cancel()

    with files_of_owner(directory):
        return asyncio.run(served())


def _send(directory: Path, request: Request, silence_s: float | None) -> Any:
    """Send a request through a directory's socket; `Cut` only before it has begun."""
    data = request.data
    if request.body is not None:
        data = json.dumps(request.body, ensure_ascii=False).encode()
    headers = {"Accept": f"{LINES}, */*"}
    if request.account is not None:
        headers[ACCOUNT_HEADER] = quote(request.account, safe="")
    if data is not None and request.media:
        headers["Content-Type"] = request.media
    sends = request.method != "GET"
    if sends:
        headers |= {"Content-Length": str(len(data or b"")), "Expect": "100-continue"}
    query = urlencode({name: str(value) for name, value in request.query.items()})
    try:
        with Wire(directory, silence_s) as request.wire:
            if request.cancelled:
                request.wire.hang_up()
            request.wire.begin(request.method, f"{request.path}?{query}" if query else request.path, headers)
            status, told = request.wire.head()
            request.begun = True  # asked for the body, or answered
            while status == CONTINUE:
                request.wire.send_body(data or b"")
                status, told = request.wire.head()
            return _result(status, told, request.wire.pieces(told), request)
    except Cut as error:
        if not request.begun:
            raise
        remedy = "look at what is done before you repeat it"
        raise GatewayError(f"the running gateway ended while {request.named} ran; {remedy}") from error


def _result(status: int, headers: Mapping[str, str], pieces: Iterable[bytes], request: Request) -> Any:
    if status != 200:
        members = _members(b"".join(pieces))
        if "parts" in members:
            return members  # the health page, which is an answer also while the store is in trouble
        raise _error(request, status, members)
    if request.receive is not None:
        for piece in pieces:
            request.receive(piece)
        return None
    if headers.get("content-type", "").partition(";")[0].strip().lower() == LINES:
        return _follow(pieces, request)
    return json.loads(b"".join(pieces))


def _members(body: bytes) -> dict[str, Any]:
    """Return the members of a refusal; none if the answer is not the gateway's."""
    try:
        members = json.loads(body)
    except ValueError:
        return {}
    return members if isinstance(members, dict) else {}


def _follow(pieces: Iterable[bytes], request: Request) -> Any:
    """Pass progress from the answer's lines on; return the result in its last line."""
    for line in _lines(pieces):
        given = json.loads(line)
        if "progress" in given:
            news = given["progress"]
            request.progress(news["done"], news["of"], news["what"])
        elif "error" in given:
            raise _error(request, given["error"]["status"], given["error"])
        else:
            return given["result"]
    raise _failed(request)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the answer's lines, of any length; skip blank lines, which are signs of life."""
    rest: list[bytes] = []
    for piece in pieces:
        *lines, last = piece.split(b"\n")
        for line in lines:
            whole = b"".join([*rest, line])
            rest.clear()
            if whole:
                yield whole
        rest.append(last)


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
