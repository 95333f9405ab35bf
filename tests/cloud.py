"""A scripted Brewing Data Service on 127.0.0.1: endpoints 1 and 2, and every way in which they can go wrong.

It is told what to do with the next requests and keeps what it was sent. Two kinds: one keeps the `_id` of
a reading and replaces what has that id already, the other gives every reading an id of its own.
"""

import asyncio
import itertools
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from aiohttp import web
from multidict import CIMultiDict

from tests.patience import PATIENCE_S

KEY = "cloud-key"
BODY_BYTES = 64 * 1024 * 1024
STOP_S = 0.05
"""What a hanging request gets when the server stops."""

Row = dict[str, Any]
IMPORT = "/v1/fermentation/{session}/import"
READ = "/v1/fermentation/{session}"
SESSIONS, SESSION = "/v1/brewsessions", "/v1/brewsessions/{session}"
NOT_FOUND = {"message": "not-found", "detail": "no records found"}


@dataclass(frozen=True)
class Seen:
    """A request as it came; `readings` is 0 for a read."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    readings: int
    rows: tuple[Row, ...] = ()


@dataclass
class Visit:
    """An import or read that a behaviour answers."""

    cloud: "ScriptedCloud"
    request: web.Request
    session: int
    rows: list[Row]

    def cut(self) -> web.StreamResponse:
        """Cut the connection; what is returned never leaves."""
        assert self.request.transport is not None
        self.request.transport.abort()
        return web.Response()


Behaviour = Callable[[Visit], Awaitable[web.StreamResponse]]


def receipt(count: int, code: int = 200) -> web.Response:
    return web.json_response({"message": "success", "imported": {"count": count}}, status=code)


async def accept(visit: Visit) -> web.StreamResponse:
    visit.cloud.commit(visit.session, visit.rows)
    return receipt(len(visit.rows))


async def accept_then_reset(visit: Visit) -> web.StreamResponse:
    """Everything is kept, and nobody hears of it."""
    visit.cloud.commit(visit.session, visit.rows)
    return visit.cut()


async def reset_before(visit: Visit) -> web.StreamResponse:
    """The body is read and forgotten."""
    return visit.cut()


async def hang(visit: Visit) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def accept_then_hang(visit: Visit) -> web.StreamResponse:
    visit.cloud.commit(visit.session, visit.rows)
    return await hang(visit)


def accept_first(number: int) -> Behaviour:
    """Only the first so many are kept, and the connection is cut."""

    async def behave(visit: Visit) -> web.StreamResponse:
        visit.cloud.commit(visit.session, visit.rows[:number])
        return visit.cut()

    return behave


def status(
    code: int,
    *,
    headers: Mapping[str, str] | None = None,
    body: str | bytes | None = None,
    keep: bool = False,
) -> Behaviour:
    """Answer so; the readings are kept only with `keep`."""
    text = json.dumps({"message": "failure", "detail": f"scripted {code}"}) if body is None else body

    async def behave(visit: Visit) -> web.StreamResponse:
        if keep:
            visit.cloud.commit(visit.session, visit.rows)
        raw = text.encode() if isinstance(text, str) else text
        return web.Response(
            status=code, body=raw, headers={"Content-Type": "application/json", **(headers or {})}
        )

    return behave


def html_200(keep: bool = False) -> Behaviour:
    """The login page of a hotspot."""
    return status(200, body="<html>Log in</html>", headers={"Content-Type": "text/html"}, keep=keep)


def wrong_count(count: int, *, keep: int | None = None) -> Behaviour:
    """Keep the first `keep` readings (all by default) and claim another number."""

    async def behave(visit: Visit) -> web.StreamResponse:
        visit.cloud.commit(visit.session, visit.rows[:keep])
        return receipt(count)

    return behave


def redirect(location: str, code: int = 307) -> Behaviour:
    return status(code, headers={"Location": location})


@dataclass
class ScriptedCloud:
    """Behaviours for the next imports and reads are taken from `script` and `reads`; then it accepts."""

    keeps_ids: bool = True
    key: str = KEY
    script: deque[Behaviour] = field(default_factory=deque)
    reads: deque[Behaviour] = field(default_factory=deque)
    refuse: Callable[[Row], bool] | None = None
    """While set, an import with such a reading is refused whole with 400, as the specification asks."""
    skip: Callable[[Row], bool] | None = None
    """While set, such readings are left out in silence and not counted."""
    listed: list[Row] = field(default_factory=list)
    """What endpoint 8 lists."""
    unknown: set[int] = field(default_factory=set)
    """Brew sessions that answer 404."""
    requests: list[Seen] = field(default_factory=list)
    sessions: dict[int, list[Row]] = field(default_factory=dict)
    port: int = 0

    def __post_init__(self) -> None:
        self._ids = itertools.count(1)
        self._runner: web.AppRunner | None = None
        self._changed = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def imports(self) -> list[Seen]:
        return [seen for seen in self.requests if seen.method == "POST"]

    @property
    def read_backs(self) -> list[Seen]:
        return [seen for seen in self.requests if seen.method == "GET"]

    def kept(self, session: int) -> list[Row]:
        """What it holds of the brew session, in order of arrival."""
        return self.sessions.get(session, [])

    async def start(self) -> None:
        """Listen; on the port of the last time, so that it can go away and come back."""
        app = web.Application(client_max_size=BODY_BYTES)
        app.router.add_post(IMPORT, self._import)
        app.router.add_get(READ, self._read)
        app.router.add_get(SESSIONS, self._read)
        app.router.add_get(SESSION, self._read)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until it is so; looked at whenever a request comes, is kept or is answered."""
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                self._changed.clear()
                await self._changed.wait()

    def commit(self, session: int, rows: list[Row]) -> None:
        """Keep them, each under an id as this kind of cloud gives it."""
        kept = self.sessions.setdefault(session, [])
        for row in rows:
            oid = str(row.get("_id", {}).get("$oid", "")) if self.keeps_ids else ""
            oid = oid or f"{next(self._ids):024x}"
            kept[:] = [other for other in kept if other["_id"]["$oid"] != oid]
            kept.append({**row, "_id": {"$oid": oid}, "brewevent_id": session})
        self._changed.set()

    async def _import(self, request: web.Request) -> web.StreamResponse:
        document = json.loads(await request.read())
        rows: list[Row] = document if isinstance(document, list) else [document]
        visit = Visit(self, request, int(request.match_info["session"]), rows)
        return await self._see(visit, self.script, self._take)

    async def _read(self, request: web.Request) -> web.StreamResponse:
        visit = Visit(self, request, int(request.match_info.get("session", "0")), [])
        return await self._see(visit, self.reads, _give)

    async def _see(self, visit: Visit, script: deque[Behaviour], ordinary: Behaviour) -> web.StreamResponse:
        request, rows = visit.request, tuple(visit.rows)
        seen = Seen(
            request.method, request.path, dict(request.query), CIMultiDict(request.headers), len(rows), rows
        )
        self.requests.append(seen)
        self._changed.set()
        try:
            if script:
                return await script.popleft()(visit)
            if request.headers.get("X-API-KEY") != self.key:
                return web.json_response({"message": "unauthorized", "detail": "invalid api key"}, status=401)
            if visit.session in self.unknown:
                return web.json_response(NOT_FOUND, status=404)
            return await ordinary(visit)
        finally:
            self._changed.set()

    async def _take(self, visit: Visit) -> web.StreamResponse:
        for number, row in enumerate(visit.rows, start=1):
            if self.refuse is not None and self.refuse(row):
                detail = f"row {number}: refused by the script"
                return web.json_response({"message": "failure", "detail": detail}, status=400)
        visit.rows = [row for row in visit.rows if self.skip is None or not self.skip(row)]
        return await accept(visit)


async def _give(visit: Visit) -> web.StreamResponse:
    """Endpoint 1 with from and to, both inclusive UTC days; 8 and 9 tell that there is a session."""
    query = visit.request.query
    if visit.request.path.startswith(SESSIONS):
        listed, place = visit.cloud.listed, int(query.get("offset", "0"))
        page = listed[place : place + int(query.get("limit", "20"))]
        return web.json_response({"message": "success", "count": f"{len(listed)}", "brewsessions": page})
    first, last = query.get("from", "0001-01-01"), query.get("to", "9999-12-31")
    days = date.fromisoformat(first), date.fromisoformat(last)
    rows = [row for row in visit.cloud.kept(visit.session) if days[0] <= _day(row) <= days[1]]
    skip, limit = int(query.get("skip", "0")), int(query.get("limit", "1000000"))
    return web.json_response({"message": "success", "readings": rows[skip : skip + limit]})


def _day(row: Row) -> date:
    return datetime.fromisoformat(row["created_at"]).astimezone(UTC).date()


@asynccontextmanager
async def running(cloud: ScriptedCloud) -> AsyncIterator[ScriptedCloud]:
    """Start it, and stop it in the end."""
    await cloud.start()
    try:
        yield cloud
    finally:
        await cloud.stop()
