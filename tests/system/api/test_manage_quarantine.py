"""`/manage/quarantine` over HTTP: the list, one payload, its bytes, and the replay."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.quarantined import Quarantined
from gateway.intake.replay import Replay
from tests.program.program import ispindel, until
from tests.system.api.everything import Running, running

QUARANTINE = "/manage/quarantine"
ARRIVAL_MS = 1_772_616_600_123
LINES = {"Accept": "application/x-ndjson"}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as service:
        yield service


async def put(service: Running, *bodies: bytes, **details: Any) -> None:
    for place, body in enumerate(bodies):
        item = Quarantined(body, "not understood", ARRIVAL_MS + place, "http /ingest", "192.0.2.7", **details)
        await service.services.store.quarantine.add(item)


async def ask(service: Running, method: str, path: str = "", *, status: int = 200, **more: Any) -> Any:
    answer = await service.ask(method, f"{QUARANTINE}{path}", **more)
    assert answer.status == status, answer.body
    return json.loads(answer.body)


async def test_the_list_has_the_newest_and_how_full_it_is(service: Running) -> None:
    await put(service, b"first", b"", b"\xff" * 60, query="a=1", hint="tilt", label="red")
    found = await ask(service, "GET", "?last=2")
    assert found["count"] == "3"
    assert found["items"][0] == {
        "number": 2, "received_at": "2026-03-04T09:30:00+00:00", "channel": "http /ingest",
        "source": "192.0.2.7", "reason": "not understood", "kind": "other", "bytes": 3, "driver": None,
        "hint": "tilt", "label": "red", "query": "a=1", "begins": "a=1",
    }  # fmt: skip
    assert found["items"][1]["begins"] == "\\xff" * 48
    assert found["state"] == {
        "items": 3, "bytes": found["state"]["bytes"], "pushed_out": 0, "items_max": 10_000,
        "bytes_max": 64 * 1024 * 1024,
    }  # fmt: skip
    await ask(service, "GET", "?last=x", status=400)


async def test_one_payload_says_what_would_become_of_it_and_gives_its_bytes(service: Running) -> None:
    await put(service, ispindel().encode(), b"\x00\xff")
    [item] = (await ask(service, "GET", "/1"))["items"]
    assert item["today"].startswith("a reading of ispindel:1 'spindle1': gravity 12.5")
    assert item["body_bytes"] == item["bytes"] == len(ispindel())
    raw = await service.ask("GET", f"{QUARANTINE}/2/raw")
    assert (raw.status, raw.body) == (200, b"\x00\xff")
    assert raw.headers["Content-Type"] == "application/octet-stream"
    assert raw.headers["X-Content-Type-Options"] == "nosniff"
    assert raw.headers["Content-Disposition"].startswith("attachment")
    for path in ("/3", "/3/raw", "/x", "/1/x"):
        await ask(service, "GET", path, status=404)


async def test_a_replay_stores_what_is_understood_and_counts_the_rest(service: Running) -> None:
    await put(service, ispindel().encode(), b"?", b"!")
    done = await ask(service, "POST", "/replay", json={})
    assert (done["understood"], done["left"]) == (1, 2)
    assert sum(done["reasons"].values()) == 2
    assert await service.services.store.readings.count() == 1
    assert [item["number"] for item in (await ask(service, "GET"))["items"]] == [2, 3]


async def test_a_replay_takes_numbers_or_a_device(service: Running) -> None:
    await put(service, ispindel(1).encode(), ispindel(2).encode(), ispindel(3).encode())
    assert (await ask(service, "POST", "/replay", json={"device": "spindle3"}))["understood"] == 1
    assert (await ask(service, "POST", "/replay", json={"numbers": [1]}))["understood"] == 1
    assert [item["number"] for item in (await ask(service, "GET"))["items"]] == [2]
    await ask(service, "POST", "/replay", status=404, json={"numbers": [2, 9]})
    await ask(service, "POST", "/replay", status=400, json={"numbers": [2], "device": "spindle2"})
    await ask(service, "POST", "/replay", status=400, json={"number": [2]})
    await ask(service, "POST", "/replay", status=400, json={"numbers": None})
    assert await service.services.store.readings.count() == 2


async def test_a_replay_says_how_far_it_is(service: Running) -> None:
    await put(service, *(ispindel(number).encode() for number in range(1, 4)))
    answer = await service.ask("POST", f"{QUARANTINE}/replay", json={}, headers=LINES)
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.body.splitlines() if line]
    assert lines[-2] == {"progress": {"done": 3, "of": 3, "what": "payloads looked at"}}
    assert lines[-1]["result"]["understood"] == 3


async def test_a_caller_who_leaves_ends_the_replay_and_what_is_stored_stays(
    service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(service, *(ispindel(number).encode() for number in range(1, 4)))
    genuine, ended, waiting = Replay.settle, asyncio.Event(), asyncio.Event()

    async def settle(self: Replay, item: Quarantined) -> str | None:
        if item.id == 1:
            return await genuine(self, item)
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    monkeypatch.setattr(Replay, "settle", settle)
    asking = asyncio.create_task(service.ask("POST", f"{QUARANTINE}/replay", json={}))
    async with asyncio.timeout(20):
        await waiting.wait()
        asking.cancel()
        await ended.wait()
    assert await service.services.store.readings.count() == 1

    async def left() -> bool:
        return [item.id for item in await service.services.store.quarantine.newest(9)] == [2, 3]

    await until(left)
