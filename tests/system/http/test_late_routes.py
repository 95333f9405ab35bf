"""Routes that are made at the first request for one: once, in a thread, and not out of another version."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway import late, site
from gateway.endpoints import ENDPOINTS
from gateway.http.late_routes import LateRoutes
from gateway.http.middleware import errors_middleware
from gateway.http.request_head import OURS
from gateway.manage import watch

Client = TestClient[web.Request, web.Application]


class Made:
    """The late routes of an application, and how often they were made."""

    times = 0

    def routes(self) -> list[web.RouteDef]:
        self.times += 1

        async def answer(request: web.Request) -> web.Response:
            return web.Response(text=request.match_info["name"])

        return [web.get("/late/{name}", answer), web.post("/late/{name}", answer)]


@pytest.fixture
async def made() -> Made:
    return Made()


@pytest.fixture
async def client(made: Made) -> AsyncIterator[Client]:
    async def early(_: web.Request) -> web.Response:
        return web.Response(text="early")

    app = web.Application(middlewares=[errors_middleware])
    app.router.register_resource(LateRoutes(("late",), made.routes))
    app.add_routes([web.get("/early", early), web.get("/{label}", early)])
    async with TestClient(TestServer(app)) as client:
        yield client


async def test_the_first_requests_make_the_routes_once(client: Client, made: Made) -> None:
    for path in ("/early", "/anything", "/other/late/one"):
        async with client.get(path) as answer:
            assert (answer.status, made.times) == (404 if "/late/" in path else 200, 0)

    async def text_of(name: str) -> str:
        async with client.get(f"/late/{name}") as answer:
            return await answer.text()

    assert await asyncio.gather(*map(text_of, "abc")) == ["a", "b", "c"]
    assert made.times == 1
    async with client.put("/late/one") as answer:
        assert (answer.status, set(answer.headers["Allow"].split(","))) == (405, {"GET", "HEAD", "POST"})
    async with client.get("/late") as answer:
        assert await answer.text() == "early"  # no late route matches
    async with client.get("/late/one/two") as answer:
        assert (answer.status, await answer.json()) == (
            404,
            {"message": "not-found", "detail": "no records found"},
        )


async def test_after_an_upgrade_in_place_the_routes_are_refused(
    client: Client, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the old program and half of the new one would do anything."""
    found = late.PACKAGE.stat()
    replaced = SimpleNamespace(stat=lambda: SimpleNamespace(st_dev=1, st_ino=2, st_mtime_ns=3))
    gone = late.PACKAGE.with_name("gone.py")
    with monkeypatch.context() as patched:
        for package in (replaced, gone):
            patched.setattr(late, "PACKAGE", package)
            async with client.get("/late/one") as answer:
                assert (answer.status, (await answer.json())["message"]) == (503, "failure")
                assert "restart the gateway" in (await answer.json())["detail"]
            async with client.get("/early") as answer:
                assert answer.status == 200
    assert (made.times, late.PACKAGE.stat()) == (0, found)
    async with client.get("/late/one") as answer:
        assert answer.status == 200
    monkeypatch.setattr(late, "PACKAGE", gone)  # all is loaded by now
    async with client.get("/late/two") as answer:
        assert await answer.text() == "two"


def test_every_endpoint_has_a_late_segment() -> None:
    segments = {endpoint.path.split("/")[1] for endpoint in (*ENDPOINTS, *watch.endpoints(0))}
    assert segments | {"docs", "openapi.json"} == {"healthz", *site.LATE_SEGMENTS}
    assert {segment.encode() for segment in site.LATE_SEGMENTS} < OURS
