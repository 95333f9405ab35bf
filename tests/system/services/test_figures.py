"""The figures of brews: what each is made of, which brews run, and that no year is read for them."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.domain import units
from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.domain.objectid import new_object_id
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.insight.records import Insight
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from gateway.services.figures import Figures, Latest, Original
from gateway.services.timeline import EventContent
from gateway.store.records import Arrival
from gateway.store.sqlite import figures as sql
from gateway.store.sqlite.engine.connections import open_reader
from gateway.store.sqlite.engine.files import DATABASE_NAME
from tests.clock import FakeClock
from tests.system.api.library import content

HOUR, DAY = 3600, 86_400
UTC = ZoneInfo("UTC")


def reading(at: int, sg: float | None, celsius: float | None = 20.0) -> Reading:
    return Reading(
        oid=new_object_id(at), created_at=at, received_at=at * 1000, name="x", gravity=str(sg),
        gravity_unit="G", temp="", temp_unit="C", comment="", beer="", interval="", source="test", ip="",
        sg=sg, celsius=celsius,
    )  # fmt: skip


class Brew:
    """A brew with hydrometers in it."""

    def __init__(self, services: Services, session: BrewSession) -> None:
        self.services, self.session = services, session
        self.begin = session.created_at

    async def device(self, name: str = "1") -> Device:
        report = Report(family="ispindel", stable_id=name, name=name)
        device = await self.services.store.devices.save(Device.first_seen(report, self.begin))
        await self.services.brewsessions.assign(name, self.session.id, None)
        return device

    async def report(self, device: Device, values: Sequence[tuple[int, float | None]]) -> None:
        """Readings so many seconds after the beginning."""
        rows = [
            Arrival(reading(self.begin + at, sg), device.key, b"%d" % place, "http")
            for place, (at, sg) in enumerate(values)
        ]
        await self.services.store.readings.add(rows)

    async def figures(self) -> Figures:
        session = await self.services.store.sessions.get(self.session.id)
        assert session is not None
        return await self.services.figures.of(session, UTC)


@pytest.fixture
async def brew(services: Services) -> Brew:
    session = await services.brewsessions.add_session(1, SessionChange(batchcode="HP001"))
    return Brew(services, session)


def hourly(first: int, last: int, sg: float) -> list[tuple[int, float | None]]:
    return [(hour * HOUR, sg) for hour in range(first, last)]


async def test_a_brew_without_a_reading_has_a_day_and_nothing_else(brew: Brew, clock: FakeClock) -> None:
    empty = dict.fromkeys(Figures.__slots__)
    nothing = {"session_id": brew.session.id, "day": 1, "seems_done": False, "insight": Insight(brew.begin)}
    assert await brew.figures() == Figures(**empty | nothing)  # type: ignore[arg-type]
    clock.jump(3 * DAY)
    assert (await brew.figures()).day == 4


async def test_the_figures_of_a_fermentation(brew: Brew, clock: FakeClock) -> None:
    device = await brew.device()
    falling: list[tuple[int, float | None]] = [
        (hour * HOUR, 1.062 - (hour - 12) * 0.0005) for hour in range(12, 60)
    ]
    await brew.report(device, [(0, 1.070), *hourly(1, 12, 1.062), *falling])
    clock.jump(60 * HOUR)
    figures = await brew.figures()
    last = brew.begin + 59 * HOUR
    assert figures.gravity == Latest(falling[-1][1] or 0, last, device.id)
    assert figures.temp == Latest(20.0, last, device.id)
    assert figures.original == Original(1.062, "readings")
    assert figures.insight.sg == pytest.approx(1.0385, abs=0.0006)
    assert figures.attenuation == pytest.approx(100 * 0.0235 / 0.062, abs=1)
    assert figures.abv == units.abv(1.062, figures.insight.sg or 0)
    assert figures.per_day == pytest.approx(-0.012, abs=0.001)
    assert (figures.day, figures.began_at, figures.last_at) == (3, brew.begin, last)
    assert (figures.still_since, figures.seems_done) == (None, False)
    assert figures.insight.phase == "active"


async def test_without_a_current_gravity_the_last_reading_counts(brew: Brew, clock: FakeClock) -> None:
    await brew.report(await brew.device(), [*hourly(0, 6, 1.05), (30 * HOUR, 1.02)])
    clock.jump(10 * DAY)
    figures = await brew.figures()
    assert figures.insight.sg is None
    assert figures.attenuation == pytest.approx(60)
    assert figures.abv == units.abv(1.05, 1.02)


async def test_an_original_gravity_by_hand_goes_first_and_can_be_taken_back(brew: Brew) -> None:
    await brew.report(await brew.device(), hourly(-20, 0, 1.05))
    assert (await brew.figures()).original == Original(1.05, "readings")
    await brew.services.store.sessions.update(replace(brew.session, og="14.7", og_unit="P"))
    figures = await brew.figures()
    assert figures.original == Original(units.plato_to_sg(14.7), "hand")
    assert figures.abv == pytest.approx(units.abv(units.plato_to_sg(14.7), 1.05))
    await brew.services.store.sessions.update(brew.session)
    assert (await brew.figures()).original == Original(1.05, "readings")


async def test_a_reading_without_gravity_is_news_and_no_gravity(brew: Brew) -> None:
    device = await brew.device()
    await brew.report(device, [(0, 1.05), (HOUR, None)])
    figures = await brew.figures()
    assert figures.gravity == Latest(1.05, brew.begin, device.id)
    assert figures.temp == Latest(20.0, brew.begin + HOUR, device.id)
    assert figures.last_at == brew.begin + HOUR


async def test_flags_leave_a_gravity_out(brew: Brew) -> None:
    device = await brew.device()
    await brew.report(device, [*hourly(0, 5, 1.05), (5 * HOUR, 1.2)])
    assert (await brew.figures()).gravity == Latest(1.2, brew.begin + 5 * HOUR, device.id)
    (spike,) = await brew.services.store.payloads.latest(device.id, 1)
    await brew.services.store.payloads.add_flag(spike.reading.oid, "gravity_spike")
    figures = await brew.figures()
    assert figures.gravity == Latest(1.05, brew.begin + 4 * HOUR, device.id)
    assert figures.temp == Latest(20.0, brew.begin + 5 * HOUR, device.id)


async def test_a_hand_reading_is_the_gravity_and_no_part_of_the_devices_line(brew: Brew) -> None:
    device = await brew.device()
    await brew.report(device, hourly(-30, 0, 1.05))
    typed = EventContent("hand_reading", gravity="1.020")
    await brew.services.timeline.add(brew.session, typed, "key", "")
    figures = await brew.figures()
    assert figures.gravity == Latest(1.02, brew.begin, None, by_hand=True)
    assert figures.per_day == 0


async def test_two_hydrometers_are_never_mixed_in_the_change_per_day(brew: Brew) -> None:
    one, two = await brew.device("1"), await brew.device("2")
    await brew.report(one, [(at, sg and sg + 0.010) for at, sg in hourly(0, 30, 1.05)])
    await brew.report(two, [(at + 60, sg) for at, sg in hourly(18, 36, 1.05)])
    figures = await brew.figures()
    assert figures.gravity is not None
    assert figures.gravity.device_id == two.id
    assert figures.per_day is None  # the second one has been in for half a day


async def test_the_final_gravity_is_that_of_the_recipe(services: Services) -> None:
    for said, final in (("1.013", 1.013), (None, None), ("", None), ("x", None), ("13", None)):
        recipe = await services.library.add(1, content("Porter", fg=said))
        session = await services.brewsessions.add_session(1, SessionChange(recipe_id=recipe.id))
        assert (await services.figures.of(session)).final == final


def fallen(until: int, sg: float) -> list[tuple[int, float | None]]:
    """Two days from 1.050 to a gravity, which stays."""
    return [(hour * HOUR, max(1.05 - hour * (1.05 - sg) / 48, sg)) for hour in range(until)]


STILL: list[tuple[str, list[tuple[int, float | None]], int | None, bool]] = [
    ("moves", fallen(40, 1.012), None, False),
    ("too short", fallen(72, 1.012), None, False),
    (
        "a step of a Tilt",
        [(at, sg and sg + at // HOUR % 2 * 0.001) for at, sg in fallen(130, 1.012)],
        48,
        True,
    ),
    ("stuck", fallen(130, 1.030), 48, False),
    ("done", fallen(130, 1.012), 48, True),
]


@pytest.mark.parametrize(
    ("values", "since", "done"), [row[1:] for row in STILL], ids=[row[0] for row in STILL]
)
async def test_a_brew_that_does_not_move_seems_done_if_it_has_fermented(
    brew: Brew, clock: FakeClock, values: list[tuple[int, float | None]], since: int | None, done: bool
) -> None:
    await brew.report(await brew.device(), values)
    clock.jump(len(values) * HOUR)
    figures = await brew.figures()
    assert figures.seems_done is done
    if since is None:
        assert figures.still_since is None
    else:
        assert figures.still_since is not None
        assert abs(figures.still_since - brew.begin - since * HOUR) <= 9 * HOUR


async def test_a_brew_runs_until_it_is_done_or_nothing_happened_for_long(
    services: Services, brew: Brew, clock: FakeClock
) -> None:
    figures, store = services.figures, services.store
    assert await figures.running(1) == [brew.session.id]
    clock.jump(31 * DAY)
    assert (await figures.running(1), await figures.finished(1)) == ([], [brew.session.id])
    await brew.device()
    assert await figures.running(1) == [brew.session.id]  # silent, but a device is in it
    await services.brewsessions.release("1")
    assert await figures.running(1) == [brew.session.id]  # that it went out is news
    clock.jump(31 * DAY)
    assert await figures.running(1) == []
    other = await services.brewsessions.add_session(1, SessionChange(batchcode="Lantern"))
    assert await figures.running(1) == [other.id]
    assert (await figures.finished(1, " lant "), await figures.finished(1, "hp0")) == ([], [brew.session.id])
    await store.sessions.update(replace(other, ended_at=int(clock.now())))
    assert await figures.running(1) == []
    assert await figures.finished(1) == [other.id, brew.session.id]
    assert await figures.finished(1, " lant ") == [other.id]
    await store.sessions.update(replace(other, phase="All gone"))
    assert await figures.running(1) == []
    assert (await figures.running(2), await figures.finished(2)) == ([], [])


async def test_the_day_of_a_finished_brew_is_its_last_one(brew: Brew, clock: FakeClock) -> None:
    await brew.report(await brew.device(), hourly(0, 48, 1.05))
    clock.jump(90 * DAY)
    assert (await brew.figures()).day == 3  # nothing for long
    await brew.services.store.sessions.update(replace(brew.session, ended_at=brew.begin + 9 * DAY))
    assert (await brew.figures()).day == 10


async def test_days_are_those_of_the_zone(brew: Brew, clock: FakeClock) -> None:
    await brew.report(await brew.device(), [(0, 1.05)])
    clock.jump(8 * HOUR)  # 17:30 UTC
    days = [await brew.services.figures.of(brew.session, ZoneInfo(zone)) for zone in ("UTC", "Asia/Tokyo")]
    assert [figures.day for figures in days] == [1, 2]


async def test_figures_are_kept_until_something_changes(
    services: Services, brew: Brew, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sequence[int]] = []
    facts = services.store.figures.facts

    async def counted(ids: Sequence[int]) -> Any:
        asked.append(ids)
        return await facts(ids)

    monkeypatch.setattr(services.store.figures, "facts", counted)
    device = await brew.device()
    other = await services.brewsessions.add_session(1, SessionChange(batchcode="B"))
    for _ in range(3):
        await services.figures.of_all([brew.session, other])
    assert asked == [[brew.session.id, other.id]]
    await brew.report(device, [(0, 1.05)])
    found = await services.figures.of_all([brew.session, other])
    assert asked[1:] == [[brew.session.id]]
    assert found[brew.session.id].gravity is not None


COVERED = "COVERING INDEX readings_by_session (session_id="
QUERIES = {
    "ends": sql.ENDS,
    "gravity": sql.LAST_GRAVITY,
    "temperature": sql.LAST_TEMP,
    "activity": sql.ACTIVITY.replace("?", ":session"),
}


async def test_figures_read_an_index_alone(services: Services) -> None:
    given = {"session": 1, "since": 0, "until": 0, "device": 1}
    with closing(open_reader(services.directory / DATABASE_NAME)) as connection:
        for name, query in QUERIES.items():
            steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", given)]
            of_readings = [step for step in steps if "readings" in step]
            assert of_readings, name
            assert all("COVERING INDEX readings_by_session (session_id=?" in step for step in of_readings), (
                steps
            )
            if name != "activity":
                assert not any("TEMP B-TREE" in step for step in steps), (name, steps)
