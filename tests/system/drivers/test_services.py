"""Answers that devices of services read: the real server's status, body and the device's name."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.events import StoredNotices
from gateway.intake.intake import Intake
from gateway.intake.ordinary import Taken
from gateway.network import Admission
from gateway.services.access import Access
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from gateway.transports.http import HttpIngest
from tests.pure.drivers.test_services import LINE

BRICKS = b'{"apikey":"k","type":"ispindel","chipid":"aa","s_number_wort_0":12.4,"s_number_temp_0":19.8}'

INDEX_BYTES = 255
"""The iSpindel looks for the number with an index of eight bits, up to the first closing bracket."""


class Bench:
    """The device paths on a real server; `interval_s` is what the user has set for the device."""

    interval_s: int | None = None

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.intake = Intake(store, StoredNotices(), Stats(), SystemClock())

    async def take(self, payload: Payload) -> Taken:
        return replace(await self.intake.take(payload), interval_s=self.interval_s)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = SqliteStore(tmp_path)
    await store.open()
    bench = Bench(store)
    await bench.intake.start()
    yield bench
    await store.close()


@pytest.fixture
async def client(bench: Bench) -> AsyncIterator[TestClient[web.Request, web.Application]]:
    access = Access(bench.store, SystemClock())
    await access.start()
    ingest = HttpIngest(bench, access, SystemClock(), Admission(SystemClock()))  # type: ignore[arg-type]  # an Intake but for the interval
    app = web.Application()
    app.add_routes(ingest.alias_routes())
    client = TestClient(TestServer(app))
    await client.start_server()
    yield client
    await client.close()


@pytest.mark.parametrize(("interval_s", "pause_ms"), [(None, 900_000), (1800, 1_800_000)])
async def test_bricks_are_told_when_to_come_again(
    bench: Bench,
    client: TestClient[web.Request, web.Application],
    interval_s: int | None,
    pause_ms: int,
) -> None:
    bench.interval_s = interval_s
    answer = await client.post("/api/iot/v1", data=BRICKS)
    text = await answer.text()
    assert json.loads(text)["error"] == 0
    start = text.index("next_request_ms") + len("next_request_ms") + 2
    end = text.index("}", start)
    assert end <= INDEX_BYTES
    assert int(text[start:end].split(",")[0]) == pause_ms


@pytest.mark.parametrize(
    ("path", "body", "status", "name"),
    [
        ("/write?db=x", LINE, 204, "a"),
        ("/api/v2/write?org=o&bucket=b", LINE, 204, "a"),
        ("/metrics/job/ispindel/instance/000", b"temperature 20\ngravity 1.05\n", 202, "ispindel/000"),
    ],
)
async def test_status_and_name_of_a_path(
    bench: Bench,
    client: TestClient[web.Request, web.Application],
    path: str,
    body: bytes,
    status: int,
    name: str,
) -> None:
    answer = await client.post(path, data=body)
    assert answer.status == status
    lines = bench.store.readings.json_lines(last=9, device_id=None, session_id=None)
    assert [json.loads(line)["name"] async for line in lines] == [name]
