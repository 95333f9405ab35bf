"""What arrives at the source afterwards with older times is found, and a quiet run asks little."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.mirror.checkpoint import FULL_AFTER_S
from gateway.services.brewsessions import SessionChange
from tests.system.mirror.bench import FIRST, Instance, copy, counts, iso, item, opened, same, two
from tests.system.mirror.fake import Fake, row, running, session

ALL = 2300
"""Readings, a quarter of an hour apart: three pages, 24 days."""


async def brewed(there: Instance, numbers: Any) -> None:
    await there.parts.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
    await there.take(1, [item(number) for number in numbers])


def asked(there: Instance) -> list[int]:
    """Where requests for readings began."""
    return [int(query["skip"]) for path, query in there.seen if path.startswith("/v1/fermentation")]


LATE = {
    "an outage of a week": range(500, 1172),
    "one hand entry": [3],
    "the very first": [0],
    "two at the end of the first page": [999, 1000],
    "the last ones": range(2290, ALL),
    "some of everywhere": [0, 1, 700, 1500, 2210, 2299],
}


@pytest.mark.parametrize("late", LATE.values(), ids=LATE.keys())
async def test_late_readings_come(tmp_path: Path, late: Any) -> None:
    async with two(tmp_path) as (there, here):
        await brewed(there, [number for number in range(ALL) if number not in late])
        await copy(here, there.source)
        there.seen.clear()
        assert counts(await copy(here, there.source))["readings"][0] == 0
        assert len(asked(there)) <= 2
        assert min(asked(there)) > 1400
        await there.take(1, [item(number) for number in late])
        assert counts(await copy(here, there.source))["readings"][0] == len(late)
        await same(there, here)
        there.seen.clear()
        assert counts(await copy(here, there.source))["readings"][0] == 0
        assert len(asked(there)) <= 2


async def test_late_ones_beside_new_ones(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await brewed(there, range(0, ALL, 2))
        await copy(here, there.source)
        await there.take(1, [item(ALL + 1), item(7), item(ALL + 2), item(9)])
        assert counts(await copy(here, there.source))["readings"][0] == 4
        await same(there, here)


async def test_a_late_one_of_the_very_second_where_the_last_day_begins(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await brewed(there, range(ALL))
        await copy(here, there.source)
        there.seen.clear()
        await copy(here, there.source)
        place = min(asked(there))
        oids = ("0" * 24, "f" * 24)
        rows = [
            item(1, _id={"$oid": oid}, created_at=iso(FIRST + place * 900), comment=oid[0]) for oid in oids
        ]
        await there.take(1, rows)
        assert counts(await copy(here, there.source))["readings"][0] == 2
        await same(there, here)


async def test_what_was_deleted_there_stays_and_hides_nothing(tmp_path: Path) -> None:
    async with two(tmp_path) as (there, here):
        await brewed(there, range(ALL))
        await copy(here, there.source)
        await there.take(1, [item(n) for n in range(0, ALL, 3)], "?reset=true")
        await there.take(1, [item(ALL + 5)])
        assert counts(await copy(here, there.source))["readings"][0] == 1
        assert await here.store.readings.count() == ALL + 1
        await there.take(1, [item(ALL + 9, created_at=iso(FIRST - 900))])
        assert counts(await copy(here, there.source))["readings"][0] == 1


async def test_all_are_read_again_after_a_week(tmp_path: Path) -> None:
    """What went and what came may be as many: nothing tells."""
    async with two(tmp_path) as (there, here):
        rows = [item(number) for number in range(ALL)]
        await brewed(there, range(ALL))
        await copy(here, there.source)
        await there.take(
            1, [*rows[:5], *rows[6:], item(5, _id={"$oid": "a" * 24}, gravity="1.234")], "?reset=true"
        )
        assert counts(await copy(here, there.source))["readings"][0] == 0
        await here.clock.sleep(FULL_AFTER_S)
        assert counts(await copy(here, there.source))["readings"][0] == 1
        there.seen.clear()
        await here.clock.sleep(FULL_AFTER_S / 2)
        await copy(here, there.source)
        assert min(asked(there)) > 2000


async def test_one_that_comes_while_the_list_is_read_is_found_by_the_next_run(tmp_path: Path) -> None:
    fake = Fake(sessions=[session(1)], readings={"1": [_row(n) for n in range(1, 2501)]})

    async def insert(request: web.Request) -> web.StreamResponse:
        answer = fake.answer(request)
        fake.always.clear()
        fake.readings["1"].insert(0, _row(0))
        return answer

    fake.always = {"/v1/fermentation/1": insert}
    async with running(fake), opened(tmp_path / "here") as here:
        await copy(here, fake.source)
        assert await here.store.readings.count() == 2500
        assert counts(await copy(here, fake.source))["readings"][0] == 1


def _row(number: int) -> Any:
    return row(number, created_at=iso(FIRST + number * 900))


async def test_a_service_that_says_that_there_is_nothing_behind_the_last(tmp_path: Path) -> None:
    fake = Fake(sessions=[session(1)], readings={"1": [_row(n) for n in range(300)]})

    async def none_is_not_found(request: web.Request) -> web.StreamResponse:
        if int(request.query["skip"]) >= len(fake.readings["1"]):
            return web.json_response({"message": "not-found", "detail": "no records found"}, status=404)
        return fake.answer(request)

    fake.always = {"/v1/fermentation/1": none_is_not_found}
    async with running(fake), opened(tmp_path / "here") as here:
        assert counts(await copy(here, fake.source))["readings"] == (300, 0, 0, 0, 0)
        del fake.readings["1"][20:]
        fake.readings["1"].insert(0, row(777, created_at=iso(FIRST - 5)))
        assert counts(await copy(here, fake.source))["readings"][0] == 1


@pytest.mark.parametrize("how", ["newest first", "ignores skip"])
async def test_a_service_with_an_order_of_its_own_loses_nothing(tmp_path: Path, how: str) -> None:
    rows = [_row(n) for n in range(250)]

    async def behave(request: web.Request) -> web.StreamResponse:
        listed = Fake(readings={"1": rows[::-1] if how == "newest first" else rows})
        if how == "ignores skip":
            return web.json_response({"message": "success", "readings": rows})
        return listed.answer(request)

    fake = Fake(sessions=[session(1)], always={"/v1/fermentation/1": behave})
    async with running(fake), opened(tmp_path / "here") as here:
        assert counts(await copy(here, fake.source))["readings"][0] == 250
        rows[10:10] = [row(999, created_at=iso(FIRST + 9 * 900 + 5))]
        assert counts(await copy(here, fake.source))["readings"][0] == 1
        assert await here.store.readings.count() == 251


@pytest.mark.parametrize("cap", [7, 20, 100])
async def test_a_service_that_cuts_pages_short(tmp_path: Path, cap: int) -> None:
    """All comes in the first run, and what is late and new in the second."""
    fake = Fake(
        sessions=[session(n) for n in range(1, 24)],
        readings={str(n): [_row(m) for m in range(n * 9)] for n in range(1, 24)},
        counts=False,
        cap=cap,
    )
    async with running(fake), opened(tmp_path / "here") as here:
        total = sum(map(len, fake.readings.values()))
        assert counts(await copy(here, fake.source))["readings"][0] == total
        fake.readings["23"][50:50] = [row(9001, created_at=iso(FIRST + 49 * 900 + 1))]
        fake.readings["11"] += [row(9002, created_at=iso(FIRST + 86_400 * 5))]
        assert counts(await copy(here, fake.source))["readings"][0] == 2
        assert await here.store.readings.count() == total + 2
