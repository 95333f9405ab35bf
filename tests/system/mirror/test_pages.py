"""Lists are read to their end, whatever the service makes of limits, counts and single records."""

from typing import Any

import aiohttp
import pytest

from gateway.mirror import client as client_module
from gateway.mirror.client import NotThere, RemoteService, RemoteUnreadable
from gateway.mirror.pages import Listing, read_pages
from tests.system.mirror.bench import LeapClock
from tests.system.mirror.fake import KEY, Fake, recipe, row, running, session, status

RECIPES = Listing("/v1/recipes", "recipes", 20)
READINGS = Listing("/v1/fermentation/1", "readings", 1000, offset_name="skip")


async def walked(fake: Fake, listing: Listing) -> tuple[list[Any], list[str]]:
    """All records, and what was lost."""
    records: list[Any] = []
    lost: list[str] = []
    async with running(fake), aiohttp.ClientSession() as http:
        service = RemoteService(http, fake.url, KEY, LeapClock(), rate=1e6, draw=lambda: 0.0)
        async for page in read_pages(service, listing, lost.append):
            records += page.records
    return records, lost


@pytest.mark.parametrize("number", [0, 1, 19, 20, 21, 40, 99])
async def test_a_list_with_a_count_needs_no_request_too_many(number: int) -> None:
    fake = Fake(recipes=[recipe(n) for n in range(number)])
    records, lost = await walked(fake, RECIPES)
    assert ([int(record["id"]) for record in records], lost) == (list(range(number)), [])
    assert len(fake.requests) == max(1, -(-number // 20))


@pytest.mark.parametrize("number", [0, 7, 1000, 1001, 2500])
async def test_readings_have_no_count(number: int) -> None:
    fake = Fake(readings={"1": [row(n) for n in range(number)]})
    records, _ = await walked(fake, READINGS)
    assert len(records) == number
    skips = [int(request.query["skip"]) for request in fake.requests]
    assert skips[: number // 1000 + 1] == list(range(0, number + 1, 1000))


@pytest.mark.parametrize("cap", [1, 7, 10, 20, 99, 100, 500, 617])
async def test_a_service_that_cuts_pages_to_its_own_limit_loses_nothing(cap: int) -> None:
    fake = Fake(readings={"1": [row(n) for n in range(1234)]}, cap=cap)
    assert len((await walked(fake, READINGS))[0]) == 1234
    fake = Fake(recipes=[recipe(n) for n in range(123)], cap=min(cap, 15))
    assert len((await walked(fake, RECIPES))[0]) == 123


async def test_a_service_that_ignores_limit_and_offset_is_asked_twice_at_most() -> None:
    fake = Fake(counts=False)
    everything = b'{"message":"success","readings":[' + b",".join([b'{"a":1}'] * 30) + b"]}"
    fake.always["/v1/fermentation/1"] = status(200, everything)
    records, _ = await walked(fake, READINGS)
    assert (len(records), len(fake.requests)) == (30, 2)


@pytest.mark.parametrize("count", ['"-1"', '"many"', "null", "[]", "7e9", '"100000000000000000000"', "3"])
async def test_a_count_that_lies_ends_no_list_early_and_none_never(count: str) -> None:
    fake = Fake(counts=False)
    body = f'{{"message":"success","count":{count},"recipes":[{{"id":"1"}},{{"id":"2"}},{{"id":"3"}}]}}'
    fake.always["/v1/recipes"] = status(200, body.encode())
    records, _ = await walked(fake, RECIPES)
    assert len(records) == 3
    assert len(fake.requests) <= 2


async def test_one_record_that_breaks_its_page_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "JSON_BYTES", 20_000)
    fake = Fake(recipes=[recipe(n, notes="x" * (30_000 if n == 13 else 10)) for n in range(41)])
    records, lost = await walked(fake, RECIPES)
    assert [int(record["id"]) for record in records] == [n for n in range(41) if n != 13]
    assert len(lost) == 1
    assert lost[0].startswith("no. 14 of the list: HTTP 200: an answer of more than 20000 bytes")


async def test_a_list_that_cannot_be_read_at_all_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    for body in (b'{"message":"success"}', b'{"message":"success","brewsessions":{}}', b"[]"):
        fake = Fake(sessions=[session(1)])
        fake.always["/v1/brewsessions"] = status(200, body)
        with pytest.raises(RemoteUnreadable):
            await walked(fake, Listing("/v1/brewsessions", "brewsessions", 100))
        assert len(fake.requests) < 60


async def test_a_list_that_is_not_there_is_asked_once() -> None:
    fake = Fake()
    with pytest.raises(NotThere):
        await walked(fake, READINGS)
    assert len(fake.requests) == 1
