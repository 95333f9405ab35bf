"""A Brewing Data Service of plain lists: what a test puts into them is what it answers."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.mirror.run import MirrorSource
from tests.system.mirror.bench import FAST

Json = Any
Behaviour = Callable[[web.Request], Awaitable[web.StreamResponse]]
KEY = "fake-key"
NOT_FOUND = {"message": "not-found", "detail": "no records found"}


def recipe(number: int, **more: Json) -> Json:
    return {
        "id": str(number), "recipetoken": f"{number:013x}", "title": f"Recipe {number}", "snapshot": "0",
        "copy_parent_id": None, "folder_name": None, "created_at": "2026-02-20 08:00:00",
        "updated_at": "2026-02-27 19:30:00", "notes": "", "fermentables": [], "hops": [], "yeasts": [],
        "mashsteps": [], "others": [], **more,
    }  # fmt: skip


def session(number: int, **more: Json) -> Json:
    return {
        "id": str(number), "recipeid": "0", "batchcode": f"B{number}", "phase": "Conditioning",
        "userdate": "2026-03-01", "created_at": "2026-03-01 18:05:12", "updated_at": "2026-03-01 21:40:00",
        "folder_name": None, "session_notes": None, **more,
    }  # fmt: skip


def row(number: int, **more: Json) -> Json:
    return {
        "_id": {"$oid": f"{number:024x}"}, "name": "GREEN", "gravity": "1.050", "gravity_unit": "G",
        "temp": "66.5", "temp_unit": "F", "comment": f"no. {number}", "beer": "", "interval": "46085.4",
        "created_at": f"2026-03-01T{number // 60 % 24:02d}:{number % 60:02d}:00+00:00", "source": "meter",
        **more,
    }  # fmt: skip


@dataclass
class Fake:
    """The lists; `cap` is what pages are cut to, `script` answers the next requests, `always` a path's."""

    recipes: list[Json] = field(default_factory=list)
    sessions: list[Json] = field(default_factory=list)
    readings: dict[str, list[Json]] = field(default_factory=dict)
    photos: dict[str, list[Json]] = field(default_factory=dict)
    xml: dict[str, bytes] = field(default_factory=dict)
    counts: bool = True
    cap: int = 1_000_000
    script: list[Behaviour] = field(default_factory=list)
    always: dict[str, Behaviour] = field(default_factory=dict)
    requests: list[web.Request] = field(default_factory=list)
    url: str = ""

    @property
    def source(self) -> MirrorSource:
        return MirrorSource(self.url, KEY, photos=bool(self.photos), rate=FAST)

    @property
    def paths(self) -> list[str]:
        return [request.path_qs for request in self.requests]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        if self.script:
            return await self.script.pop(0)(request)
        if request.path in self.always:
            return await self.always[request.path](request)
        if request.headers.get("X-API-KEY") != KEY:
            return web.json_response({"message": "unauthorized", "detail": "invalid api key"}, status=401)
        return self.answer(request)

    def answer(self, request: web.Request) -> web.StreamResponse:
        match request.path.split("/")[2:]:
            case ["recipes"]:
                return self._list(request, "recipes", self.recipes, "offset")
            case ["brewsessions"]:
                return self._list(request, "brewsessions", self.sessions, "offset")
            case ["fermentation", number] if number in self.readings:
                return self._list(request, "readings", self.readings[number], "skip")
            case ["recipes", number, "photos"] if number in self.photos:
                return _json({"message": "success", "photos": self.photos[number]})
            case ["recipes", name] if name.removesuffix(".xml") in self.xml and name.endswith(".xml"):
                return web.Response(body=self.xml[name.removesuffix(".xml")], content_type="application/xml")
            case ["recipes" | "brewsessions" as kind, number]:
                records = self.recipes if kind == "recipes" else self.sessions
                found = [
                    record for record in records if isinstance(record, dict) and record.get("id") == number
                ]
                if found:
                    return _json({"message": "success", "count": "1", kind: found})
        return _json(NOT_FOUND, 404)

    def _list(self, request: web.Request, member: str, records: list[Json], place: str) -> web.StreamResponse:
        first = int(request.query.get(place, "0"))
        size = min(int(request.query.get("limit", self.cap)), self.cap)
        body: Json = {"message": "success", member: records[first : first + size]}
        if self.counts and member != "readings":
            body["count"] = str(len(records))
        return _json(body)


def _json(body: Json, status: int = 200) -> web.Response:
    return web.Response(
        body=json.dumps(body).encode("utf-8", "surrogatepass"), status=status, content_type="application/json"
    )


def status(
    code: int, body: bytes = b'{"message":"failure","detail":"scripted"}', **headers: str
) -> Behaviour:
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def behave(_: web.Request) -> web.StreamResponse:
        return web.Response(status=code, body=body, headers={"Content-Type": "application/json", **named})

    return behave


async def cut(request: web.Request) -> web.StreamResponse:
    """The connection ends in the middle of the body."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"message":"success","recipes":[')
    assert request.transport is not None
    request.transport.abort()
    return response


async def refuse(request: web.Request) -> web.StreamResponse:
    """The connection ends without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@asynccontextmanager
async def running(fake: Fake) -> AsyncIterator[Fake]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.handle)
    server = TestServer(app)
    await server.start_server()
    fake.url = str(server.make_url("/")).rstrip("/")
    try:
        yield fake
    finally:
        await server.close()
