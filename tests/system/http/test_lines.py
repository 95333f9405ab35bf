"""Long calls over TCP, with a key: JSON lines or one answer, and an end when the client leaves."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway import endpoints
from gateway.errors import NameTaken
from gateway.http import lines
from gateway.http.endpoint import AnswerModel, Body, Call, Endpoint, Query
from tests.system.api.everything import Running, running

PATIENCE_S = 10.0
LINES = {"Accept": "application/x-ndjson"}


class Order(Body):
    """What a test wants done."""

    to: int = 0


class Result(AnswerModel):
    """How much was done."""

    number: int


class Work:
    """Endpoints that only tests have."""

    def __init__(self) -> None:
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()

    async def count(self, call: Call[Query, Order]) -> Result:
        for done in range(1, call.body.to + 1):
            call.progress(done, call.body.to, "items")
            await asyncio.sleep(0.02)
        return Result(number=call.body.to)

    async def refuse(self, call: Call[Query, Order]) -> Result:
        if call.body.to:
            call.progress(0, call.body.to, "items")
            await asyncio.sleep(0.02)
        raise NameTaken("one is under way")

    async def hang(self, _: Call[Query, Order]) -> Result:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        raise AssertionError


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    made = Work()
    rows = tuple(
        Endpoint("POST", f"/manage/test/{name}", handler, "A test", Query, Result, body=Order, long=True)
        for name, handler in (("count", made.count), ("refuse", made.refuse), ("hang", made.hang))
    )
    monkeypatch.setattr(endpoints, "ENDPOINTS", (*endpoints.ENDPOINTS, *rows))
    return made


@pytest.fixture
async def service(work: Work, tmp_path: Path) -> AsyncIterator[Running]:
    assert not work.begun.is_set()
    async with running(tmp_path) as service:
        yield service


async def test_progress_comes_as_lines_and_the_result_last(service: Running) -> None:
    answer = await service.ask("POST", "/manage/test/count", json={"to": 3}, headers=LINES)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/x-ndjson")
    found = [json.loads(line) for line in answer.body.split(b"\n") if line]
    news = [{"progress": {"done": done, "of": 3, "what": "items"}} for done in (1, 2, 3)]
    assert found == [*news, {"result": {"number": 3}}]


async def test_who_wants_no_lines_gets_one_answer(service: Running) -> None:
    answer = await service.ask("POST", "/manage/test/count", json={"to": 3})
    assert (answer.status, json.loads(answer.body)) == (200, {"number": 3})
    assert answer.headers["Content-Type"].startswith("application/json")


async def test_a_refusal_keeps_its_status_until_the_first_line(service: Running) -> None:
    refusal = {"message": "failure", "detail": "one is under way"}
    for headers in (LINES, {}):
        answer = await service.ask("POST", "/manage/test/refuse", json={}, headers=headers)
        assert (answer.status, json.loads(answer.body)) == (409, refusal)
    answer = await service.ask("POST", "/manage/test/refuse", json={"to": 1}, headers=LINES)
    assert answer.status == 200
    assert json.loads(answer.body.split(b"\n")[-2]) == {"error": {"status": 409, **refusal}}
    for body, key, status in (({"too": 1}, None, 400), ({}, "hg_unknown", 401)):
        answer = await service.ask("POST", "/manage/test/hang", key, json=body, headers=LINES)
        assert answer.status == status


@pytest.mark.parametrize("headers", [LINES, {}])
async def test_work_ends_when_the_client_leaves(
    service: Running, work: Work, headers: dict[str, str]
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        asking = asyncio.create_task(
            service.ask("POST", "/manage/test/hang", json={}, headers=headers), name="asking"
        )
        await work.begun.wait()
        asking.cancel()
        await asyncio.wait([asking])
        await work.cancelled.wait()


async def test_a_silent_call_gives_signs_of_life(
    service: Running, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "SIGN_S", 0.05)
    headers = {**LINES, "X-API-KEY": service.key}
    async with asyncio.timeout(PATIENCE_S):
        async with service.client.post("/manage/test/hang", json={}, headers=headers) as answer:
            assert await answer.content.readexactly(2) == b"\n\n"
        await work.cancelled.wait()
