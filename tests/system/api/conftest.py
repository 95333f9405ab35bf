import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.clock import SystemClock
from gateway.domain.brewsession import BrewSession
from gateway.events import StoredNotices
from gateway.services.access import Access
from gateway.services.build import Services, build_services
from gateway.site import build
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.patience import PATIENCE_S

Client = TestClient[web.Request, web.Application]
AiohttpClient = Callable[[TestServer], Awaitable[Client]]


POLL_S = 0.01


class SetClock(SystemClock):
    """A clock whose wall time stands still."""

    wall = 1_772_616_600.0

    def now(self) -> float:
        return self.wall


@dataclass
class Service:
    """A running service with one brew session, its parts, and short words for what tests do."""

    client: Client
    store: SqliteStore
    services: Services
    access: Access
    notices: StoredNotices
    stats: Stats
    clock: SetClock
    session: BrewSession
    key: str

    @property
    def path(self) -> str:
        return f"/v1/fermentation/{self.session.id}"

    @property
    def headers(self) -> dict[str, str]:
        return {"X-API-KEY": self.key}

    async def session_of(self, account_id: int) -> BrewSession:
        return await self.store.sessions.add(
            brew(account_id=account_id, batchcode="HP002", phase="Conditioning", upstream_id=None, now=2)
        )

    async def send(
        self, body: Any, *, media: str = "application/json", query: str = "", path: str = ""
    ) -> tuple[int, Any]:
        headers = {**self.headers, "Content-Type": media}
        text = body if isinstance(body, bytes | str) else json.dumps(body)
        data = io.BytesIO(text if isinstance(text, bytes) else text.encode())
        url = f"{path or self.path}/import{query}"
        async with self.client.post(url, headers=headers, data=data) as answer:
            return answer.status, await answer.json()

    async def take(self, body: Any, *, media: str = "application/json", query: str = "") -> int:
        """An import that must succeed; how many it took."""
        status, answer = await self.send(body, media=media, query=query)
        assert status == 200, answer
        assert set(answer) == {"message", "imported"}
        assert answer["message"] == "success"
        assert set(answer["imported"]) == {"count"}
        count = answer["imported"]["count"]
        assert type(count) is int
        return count

    async def get(self, query: str = "", path: str = "") -> tuple[int, Any]:
        async with self.client.get(f"{path or self.path}{query}", headers=self.headers) as answer:
            assert answer.content_type == "application/json"
            return answer.status, await answer.json()

    async def readings(self, query: str = "", path: str = "") -> list[dict[str, Any]]:
        status, answer = await self.get(query, path)
        assert status == 200, answer
        assert list(answer) == ["message", "readings"]
        assert answer["message"] == "success"
        readings: list[dict[str, Any]] = answer["readings"]
        return readings


@pytest.fixture
async def service(tmp_path: Path, aiohttp_client: AiohttpClient) -> AsyncIterator[Service]:
    store = SqliteStore(tmp_path)
    await store.open()
    clock = SetClock()
    services = build_services(store, tmp_path, clock)
    access = services.access
    first = await access.start(first_key="test")
    assert first is not None
    session = await store.sessions.add(brew(phase="Primary Fermentation", now=1))
    app = build(services)
    server = TestServer(app)
    await server.start_server(auto_decompress=False)  # as the composition root does
    client = await aiohttp_client(server)
    yield Service(
        client, store, services, access, services.notices, services.stats, clock, session, first.key_text
    )
    await client.close()
    await store.close()


async def wait_for(predicate: Callable[[], bool], limit_s: float = PATIENCE_S) -> None:
    """Return when it is true; fail when it does not become so in time."""
    async with asyncio.timeout(limit_s):
        while not predicate():  # noqa: ASYNC110 - log lines set no event
            await asyncio.sleep(POLL_S)


SPECIFIED: dict[str, type] = {
    "_id": dict,
    "login_id": int,
    "api_key": str,
    "brewevent_id": int,
    "recipe_id": int,
    "ip": str,
    "name": str,
    "gravity": str,
    "gravity_unit": str,
    "temp": str,
    "temp_unit": str,
    "comment": str,
    "beer": str,
    "interval": str,
    "created_at": str,
    "source": str,
}
"""The specification's table of a fermentation reading; its numbers are whole ones here."""


def assert_specified(reading: dict[str, Any], *extras: str) -> None:
    """Exactly the members of the specification, in its order and of its types, and the extras behind them."""
    assert list(reading) == [*SPECIFIED, *extras]
    assert {name: type(reading[name]) for name in SPECIFIED} == SPECIFIED
    assert list(reading["_id"]) == ["$oid"]
    assert len(bytes.fromhex(reading["_id"]["$oid"])) == 12
    assert reading["api_key"] == ""
    assert reading["gravity_unit"] in {"G", "P"}
    assert reading["temp_unit"] in {"C", "F"}
    assert reading["created_at"].endswith("+00:00")
