"""The insight service: any order, changes of all kinds, swaps, restarts, and a store that fails."""

import asyncio
import json
import random
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace

import pytest

from gateway.domain.brewsession import BrewSession
from gateway.domain.calibration import Calibration
from gateway.domain.device import Device, DeviceSettings
from gateway.domain.objectid import new_object_id
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.errors import StoreUnavailable
from gateway.events import Topic
from gateway.insight.records import Insight
from gateway.services import insight as module
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from gateway.services.insight import InsightService
from gateway.services.insight_series import Background, BrewLines, BrewSeries, Lead, Stopped, leads
from gateway.services.timeline import EventContent
from gateway.store.records import Arrival, Expected
from gateway.store.sqlite.engine.files import DATABASE_NAME
from tests.brew import brew
from tests.clock import FakeClock
from tests.patience import PATIENCE_S
from tests.system.api.library import content

HOUR, DAY = 3600, 86_400
QUARTER = 900

Values = Sequence[tuple[int, float]]


class Brewery:
    """A brewery with brews and hydrometers. Times of readings are seconds since the beginning."""

    def __init__(self, services: Services, clock: FakeClock) -> None:
        self.services, self.clock = services, clock
        self.begin = int(clock.now())

    async def brew(self, name: str, **said: object) -> BrewSession:
        return await self.services.brewsessions.add_session(
            1,
            SessionChange(batchcode=name, **said),  # type: ignore[arg-type]
        )

    async def device(self, name: str, session: BrewSession | None = None) -> Device:
        report = Report(family="ispindel", stable_id=name, name=name)
        device = await self.services.store.devices.save(Device.first_seen(report, self.begin))
        if session is not None:
            await self.services.brewsessions.assign(name, session.id, None)
        return device

    async def report(
        self, device: Device, values: Values, celsius: float = 20.0, flags: str | None = None
    ) -> None:
        """Readings, and the notice that intake gives."""
        rows = []
        for at, sg in values:
            when = self.begin + at
            reading = Reading(
                oid=new_object_id(when), created_at=when, received_at=when * 1000, name="x", gravity=str(sg),
                gravity_unit="G", temp="", temp_unit="C", comment="", beer="", interval="", source="test",
                ip="", sg=sg, celsius=celsius, flags=flags,
            )  # fmt: skip
            rows.append(Arrival(reading, device.key, b"%d" % at, "http"))
        await self.services.store.readings.add(rows)
        self.services.notices.notify("reading", device=device.id)

    async def fresh(self, session: BrewSession) -> BrewSession:
        found = await self.services.store.sessions.get(session.id)
        assert found is not None
        return found

    async def insight(self, session: BrewSession) -> Insight:
        return await self.services.insight.of(await self.fresh(session))

    async def anew(self, session: BrewSession) -> Insight:
        """What a new process makes of the store."""
        again = InsightService(self.services.store, self.services.notices, self.clock)
        return await again.of(await self.fresh(session))

    async def same(self, session: BrewSession) -> Insight:
        """The figures, which must be those of a new process."""
        found = await self.insight(session)
        assert found == await self.anew(session)
        return found


@pytest.fixture
async def brewery(services: Services, clock: FakeClock) -> AsyncIterator[Brewery]:
    """A brewery whose service follows the notices."""
    async with following(services.insight):
        yield Brewery(services, clock)


@asynccontextmanager
async def following(service: InsightService) -> AsyncIterator[None]:
    task = asyncio.create_task(service.run())
    await asyncio.sleep(0)  # it follows at once
    assert service._listener is not None
    yield
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


def beer(hours: int, per_hour: float = 0.0005) -> list[tuple[int, float]]:
    """A beer that lags for ten hours and falls then from 1.050 to 1.010, each quarter of an hour."""
    return [
        (at, max(1.050 - max(at / HOUR - 10, 0) * per_hour, 1.010)) for at in range(0, hours * HOUR, QUARTER)
    ]


async def test_readings_that_arrive_are_in_the_figures_at_once(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    assert (await brewery.same(session)).sg is None
    values = beer(72)
    for first in range(0, len(values), 48):
        brewery.clock.jump(12 * HOUR)
        await brewery.report(device, values[first : first + 48])
        found = await brewery.same(session)
    assert found.og is not None
    assert found.og.origin == "readings"
    assert found.sg == pytest.approx(values[-1][1], abs=0.0006)
    assert (found.phase, found.day) == ("active", 3)


async def test_any_order_of_arrival_gives_the_same_figures(brewery: Brewery) -> None:
    values, made = beer(96), []
    brewery.clock.jump(4 * DAY)
    for number, order in enumerate(("sorted", "backwards", "shuffled")):
        session = await brewery.brew(order)
        device = await brewery.device(f"spindle{number}", session)
        ordered = list(values)
        if order == "backwards":
            ordered.reverse()
        elif order == "shuffled":
            random.Random(3).shuffle(ordered)  # noqa: S311
        for first in range(0, len(ordered), 40):
            await brewery.report(device, ordered[first : first + 40])
            await brewery.insight(session)
        made.append(await brewery.same(session))
    assert made[0] == made[1] == made[2]
    assert made[0].phase == "active"


async def deliver(brewery: Brewery, values: Values) -> None:
    """Bytes of an iSpindel, which can be read again."""
    for at, sg in values:
        body = {
            "name": "spindle",
            "ID": 77,
            "angle": 40.0,
            "temperature": 20.0,
            "temp_units": "C",
            "gravity": sg,
        }
        payload = Payload(json.dumps(body).encode(), brewery.begin + at, "http /ingest")
        assert (await brewery.services.intake.take(payload)).quarantined is None


async def test_what_is_left_out_or_calibrated_is_made_anew(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    values = beer(36)
    await deliver(brewery, values[:1])
    (device,) = await brewery.services.store.devices.all()
    await brewery.services.brewsessions.assign(device.key, session.id, 0)
    await deliver(brewery, values[1:])
    brewery.clock.jump(36 * HOUR)
    before = await brewery.same(session)
    assert before.sg == pytest.approx(values[-1][1], abs=0.0006)
    reprocessor = brewery.services.reprocessor
    first = brewery.begin + 30 * HOUR
    await reprocessor.configure(device, DeviceSettings(excluded=((first, first + DAY),)), lambda _: None)
    excluded = await brewery.same(session)
    assert (excluded.last_at, before.last_at) == (first - QUARTER, brewery.begin + values[-1][0])
    calibration = Calibration(gravity_offset=0.004)
    await reprocessor.configure(device, DeviceSettings(calibration=calibration), lambda _: None)
    calibrated = await brewery.same(session)
    assert before.sg is not None
    assert calibrated.sg == pytest.approx(before.sg + 0.004, abs=0.0001)


async def test_times_that_are_put_right_move_the_readings(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    brewery.clock.jump(DAY)
    await brewery.report(device, [(at * QUARTER, 1.05) for at in range(8)])
    before = await brewery.same(session)
    with closing(sqlite3.connect(brewery.services.directory / DATABASE_NAME)) as connection:
        connection.execute("UPDATE readings SET created_at = created_at + 3600")
        connection.commit()
    brewery.services.notices.notify()  # as `Retiming` has it
    assert before.last_at is not None
    after = await brewery.insight(session)
    assert after.last_at == before.last_at + HOUR


async def test_a_flag_that_comes_late_takes_a_reading_out(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    brewery.clock.jump(10 * HOUR)
    await brewery.report(device, [(at * QUARTER, 1.050) for at in range(37)])
    await brewery.report(device, [((37 + at) * QUARTER, 1.090) for at in range(3)])
    assert (await brewery.insight(session)).last_at == brewery.begin + 39 * QUARTER
    for each in await brewery.services.store.payloads.latest(device.id, 3):
        await brewery.services.store.payloads.add_flag(each.reading.oid, "gravity_spike")
    brewery.services.notices.publish("device", device=device.id)
    found = await brewery.same(session)
    assert found.sg == pytest.approx(1.05)


@pytest.mark.parametrize("flag", ["gravity_rate", "krausen_bump", "gravity_stale", "test_send"])
async def test_flagged_readings_do_not_count(brewery: Brewery, flag: str) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    brewery.clock.jump(10 * HOUR)
    await brewery.report(device, [(at * QUARTER, 1.050) for at in range(20)])
    await brewery.report(device, [((20 + at) * QUARTER, 1.090) for at in range(20)], 30.0, f'["{flag}"]')
    found = await brewery.same(session)
    assert found.sg == pytest.approx(1.05)
    assert found.temp_c == (20.0 if flag == "test_send" else 30.0)


async def test_hand_readings_are_in_no_series_and_set_the_original_gravity(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    timeline = brewery.services.timeline
    await timeline.add(session, EventContent("hand_reading", gravity="1.055"), "key", "")
    brewery.clock.jump(6 * HOUR)
    await brewery.report(device, [(at * QUARTER, 1.050) for at in range(24)])
    await timeline.add(session, EventContent("hand_reading", gravity="1.040"), "key", "")
    found = await brewery.same(session)
    assert found.og is not None
    assert (found.og.sg, found.og.origin) == (1.055, "measured")
    assert found.sg == pytest.approx(1.05)
    assert found.last_at == brewery.begin + 23 * QUARTER


async def test_events_and_the_recipe_are_facts(brewery: Brewery) -> None:
    recipe = await brewery.services.library.add(1, content("Lager", og="1.048", fg="1.011"))
    session = await brewery.brew("A", recipe_id=recipe.id)
    found = await brewery.same(session)
    assert found.og is not None
    assert (found.og.sg, found.og.is_estimate) == (1.048, True)
    device = await brewery.device("1", session)
    await brewery.report(device, beer(24))
    brewery.clock.jump(1 * DAY)
    assert (await brewery.same(session)).day == 1
    pitched = EventContent("pitched", at=brewery.begin + 12 * HOUR)
    await brewery.services.timeline.add(session, pitched, "key", "")
    assert (await brewery.same(session)).day == 0.5
    await brewery.services.brewsessions.update_session(
        await brewery.fresh(session), SessionChange(og="1.060", og_unit="G")
    )
    found = await brewery.same(session)
    assert found.og is not None
    assert (found.og.sg, found.og.origin) == (1.06, "hand")


async def test_a_swap_of_the_device_begins_anew_and_keeps_the_original_gravity(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    one = await brewery.device("1", session)
    values = beer(96)
    brewery.clock.jump(2 * DAY)
    await brewery.report(one, values[:192])
    before = await brewery.same(session)
    await brewery.services.brewsessions.release("1")
    two = await brewery.device("2", session)
    assert await brewery.services.insight.leading_device(session.id) == one.id
    brewery.clock.jump(6 * HOUR)
    # The second one reads four points lower.
    await brewery.report(two, [(at, sg - 0.004) for at, sg in values[193:216]])
    found = await brewery.same(session)
    assert await brewery.services.insight.leading_device(session.id) == two.id
    assert found.og == before.og
    assert found.sg == pytest.approx(values[215][1] - 0.004, abs=0.0015)
    assert found.rate is None
    assert found.phase == "active"


async def test_of_two_devices_the_chosen_one_leads(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    one, two = await brewery.device("1", session), await brewery.device("2", session)
    brewery.clock.jump(2 * DAY)
    values = beer(48)
    await brewery.report(one, values)
    await brewery.report(two, [(at + 60, sg + 0.003) for at, sg in values[::3]])
    service = brewery.services.insight
    assert await service.leading_device(session.id) == one.id
    first = await brewery.same(session)
    await brewery.services.brewsessions.update_session(
        await brewery.fresh(session), SessionChange(lead_device=two.id)
    )
    assert await service.leading_device(session.id) == two.id
    second = await brewery.same(session)
    assert first.sg is not None
    assert second.sg == pytest.approx(first.sg + 0.003, abs=0.0006)
    await brewery.services.brewsessions.update_session(
        await brewery.fresh(session), SessionChange(lead_device=0)
    )
    assert await service.leading_device(session.id) == one.id


def test_the_device_with_most_readings_leads_and_equal_ones_never_take_turns() -> None:
    one, two, four = dict.fromkeys(range(48), 1), dict.fromkeys(range(48), 2), dict.fromkeys(range(24, 48), 4)
    assert leads({}, {}) == []
    assert leads({1: one}, {}) == [Lead(0, 1)]
    assert leads({1: one, 2: two}, {}) == [Lead(0, 2)]
    assert leads({1: one, 2: dict.fromkeys(range(48), 1)}, {}) == [Lead(0, 1)]
    assert [lead.device for lead in leads({2: two, 3: four}, {})] == [2, 3]
    # Gone at hour 24: the other one leads as soon as it has a reading.
    gone, came = dict.fromkeys(range(24), 4), dict.fromkeys(range(25, 30), 1)
    assert leads({1: gone, 2: came}, {1: 24 * HOUR}) == [Lead(0, 1), Lead(24 * HOUR, 2)]
    assert [lead.device for lead in leads({1: gone, 2: came}, {})] == [1]
    alternating: dict[int | None, dict[int, int]] = {
        1: {hour: 4 - hour % 2 for hour in range(200)},
        2: {hour: 3 + hour % 2 for hour in range(200)},
    }
    assert len(leads(alternating, {})) == 1


async def test_a_restart_makes_the_same_figures(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    values = beer(14 * 24)
    for day in range(14):
        brewery.clock.jump(DAY)
        await brewery.report(device, values[day * 96 : (day + 1) * 96])
        await brewery.insight(session)
    before = await brewery.insight(session)
    assert [change.phase for change in before.changes][-1] == "finished"
    assert before == await brewery.anew(session)
    again = InsightService(brewery.services.store, brewery.services.notices, brewery.clock)
    async with following(again):
        assert await again.of(await brewery.fresh(session)) == before


async def test_a_backfill_is_put_in_its_place(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    values = beer(96)
    brewery.clock.jump(4 * DAY)
    await brewery.report(device, values[:100] + values[250:])
    with_gap = await brewery.same(session)
    await brewery.report(device, values[100:250])
    assert with_gap != await brewery.same(session)


async def test_a_brew_that_ended_is_shown_at_its_last_reading(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    values = beer(7 * 24)
    brewery.clock.jump(7 * DAY)
    await brewery.report(device, values)
    running = await brewery.same(session)
    await brewery.services.brewsessions.update_session(
        await brewery.fresh(session), SessionChange(ended=True)
    )
    brewery.clock.jump(60 * DAY)
    ended = await brewery.same(session)
    assert ended.now == brewery.begin + values[-1][0]
    assert (ended.sg, ended.og, ended.phase) == (running.sg, running.og, "finished")
    assert session.id not in brewery.services.insight._brews


async def test_the_figures_at_a_time_are_of_what_had_come_by_then(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    brewery.clock.jump(4 * DAY)
    values = beer(96)
    await brewery.report(device, values)
    service, middle = brewery.services.insight, brewery.begin + 2 * DAY
    then = await service.at(session, middle)
    assert then.last_at == middle
    assert then.sg == pytest.approx(values[192][1], abs=0.0006)
    early = await service.at(session, middle, arrived_by=middle - 6 * HOUR)
    assert early.last_at == middle - 6 * HOUR


async def test_news_of_figures_are_told_with_the_brew(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    with brewery.services.notices.follow() as listener:
        await brewery.report(device, [(0, 1.05), (60, 1.05), (120, 1.05)])
        brewery.clock.jump(200)
        told: set[tuple[str, int | None]] = set()
        async with asyncio.timeout(PATIENCE_S):
            while ("insight", session.id) not in told:
                brewery.clock.advance(module.PAUSE_S)
                await listener.wait(0.01)
                told |= {(topic.kind, topic.brew) for topic in listener.take()}


async def test_a_burst_of_imports_is_one_look(brewery: Brewery, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    await brewery.report(device, [(at, 1.05) for at in range(0, 1000, 60)])
    await brewery.insight(session)
    reads = 0
    samples = brewery.services.store.figures.samples

    async def counted(*args: object, **more: object) -> object:
        nonlocal reads
        reads += 1
        return await samples(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(brewery.services.store.figures, "samples", counted)
    for _ in range(100):
        brewery.services.notices.notify("reading", brew=session.id)
        brewery.clock.advance(module.PAUSE_S / 100)
        await asyncio.sleep(0.001)
    assert reads <= 4  # each reading of a brew asks for a page and for the one behind it


async def test_a_store_that_fails_costs_no_figures(brewery: Brewery, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    brewery.clock.jump(3 * HOUR)
    await brewery.report(device, [(at * QUARTER, 1.05) for at in range(12)])
    before = await brewery.insight(session)
    figures = brewery.services.store.figures

    async def fails(*args: object, **more: object) -> object:
        raise StoreUnavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(figures, "arrivals", fails)
        patch.setattr(figures, "samples", fails)
        brewery.clock.jump(10)
        await brewery.report(device, [(3 * HOUR, 1.06)])
        assert await brewery.insight(session) == before
    assert (await brewery.same(session)).last_at == brewery.begin + 3 * HOUR


async def test_a_brew_with_a_damaged_row_stops_no_other_one(
    brewery: Brewery, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged, well = await brewery.brew("A"), await brewery.brew("B")
    devices = [await brewery.device(name, each) for name, each in (("1", damaged), ("2", well))]
    brewery.clock.jump(DAY)
    before = await brewery.insight(damaged)
    events = brewery.services.store.events
    of_session = events.of_session

    async def of_session_or_not(session_id: int) -> object:
        if session_id == damaged.id:
            raise ValueError("damaged")
        return await of_session(session_id)

    with monkeypatch.context() as patch:
        patch.setattr(events, "of_session", of_session_or_not)
        for device in devices:
            await brewery.report(device, [(at * QUARTER, 1.05) for at in range(12)])
        brewery.services.notices.publish("brew", brew=damaged.id)
        found = await brewery.services.insight.of_all([damaged, well])
        assert found[damaged.id] == before
        assert found[well.id].last_at == brewery.begin + 11 * QUARTER
    brewery.services.notices.publish("brew", brew=damaged.id)
    assert (await brewery.same(damaged)).last_at == brewery.begin + 11 * QUARTER


async def test_readings_behind_deleted_ones_are_found(brewery: Brewery) -> None:
    """An import with a reset takes places in the queue that a later reading gets."""
    one, two = await brewery.brew("A"), await brewery.brew("B")
    device = await brewery.device("1", two)
    brewery.clock.jump(DAY)
    store = brewery.services.store
    rows = [
        Reading(
            oid=new_object_id(at), created_at=brewery.begin + at, received_at=0, name="", gravity="1.05",
            gravity_unit="G", temp="", temp_unit="C", comment="", beer="", interval="", source="", ip="",
            sg=1.05, celsius=None,
        )
        for at in range(20)
    ]  # fmt: skip
    await store.readings.import_readings(one, rows, reset=False)
    brewery.services.notices.notify("reading", brew=one.id)
    await brewery.insight(one)
    await store.readings.import_readings(one, rows[:2], reset=True)
    await brewery.report(device, [(60, 1.05)])
    assert (await brewery.same(two)).last_at == brewery.begin + 60


async def test_a_brew_without_a_service_that_runs_is_made_when_asked_for(
    services: Services, clock: FakeClock
) -> None:
    brewery = Brewery(services, clock)
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    clock.jump(3 * HOUR)
    await brewery.report(device, [(at * QUARTER, 1.05) for at in range(8)])
    first = await brewery.insight(session)
    assert first.sg == pytest.approx(1.05)
    assert await brewery.insight(session) is first
    await brewery.report(device, [(8 * QUARTER, 1.05)])
    assert (await brewery.insight(session)).last_at == brewery.begin + 8 * QUARTER
    assert await services.insight.leading_device(session.id) == device.id


async def test_an_answer_about_sugar_is_an_event_that_can_be_deleted(brewery: Brewery) -> None:
    session = await brewery.brew("A")
    device = await brewery.device("1", session)
    brewery.clock.jump(5 * DAY)
    risen = [(at, sg + (0.006 if at >= 60 * HOUR else 0)) for at, sg in beer(120, per_hour=0.0004)]
    flat = [(at, sg if at < 50 * HOUR else 1.034 + (0.006 if at >= 70 * HOUR else 0)) for at, sg in risen]
    await brewery.report(device, flat)
    found = await brewery.same(session)
    assert found.rise is not None
    assert found.abv is not None
    timeline = brewery.services.timeline
    event = await timeline.answer_rise(session, found.rise, sugar=True, author="key")
    assert (event.kind, event.facts["sugar"]) == ("addition", pytest.approx(found.rise.sg, abs=1e-5))
    after = await brewery.same(session)
    assert (after.rise, after.og) == (None, found.og)
    assert after.abv == pytest.approx(found.abv + found.rise.sg * 131.25, abs=0.01)
    await timeline.change(session, event.id, {"text": "300 g of honey"})
    assert (await brewery.same(session)).abv == after.abv
    await timeline.remove(session, event.id)
    again = await brewery.same(session)
    assert (again.abv, again.rise) == (found.abv, found.rise)
    await timeline.answer_rise(session, found.rise, sugar=False, author="key")
    other = await brewery.same(session)
    assert (other.abv, other.rise) == (found.abv, None)
    assert replace(other, rise=found.rise) == found


def test_work_on_weeks_ends_with_the_gateway() -> None:
    lines = BrewLines()
    for at, sg in beer(10 * 24):
        lines.add(1, at, sg, 20.0)
    series = BrewSeries(Background(brew(), (), Expected()), lines)
    looks = iter((False, False, True))
    with pytest.raises(Stopped):
        series.insight(10 * DAY, lambda: next(looks))
    made = series.insight(10 * DAY)
    assert made == BrewSeries(Background(brew(), (), Expected()), lines).insight(10 * DAY)


async def test_a_late_flag_of_intake_is_told(services: Services, clock: FakeClock) -> None:
    brewery = Brewery(services, clock)
    hours = [(at, 1.050) for at in range(0, 5 * HOUR, QUARTER)]
    with services.notices.follow() as listener:
        await deliver(brewery, [*hours, (5 * HOUR, 1.090), (5 * HOUR + QUARTER, 1.050), (6 * HOUR, 1.050)])
        topics = listener.take()
    (device,) = await services.store.devices.all()
    flagged = [each.reading.flags for each in await services.store.payloads.latest(device.id, 3)]
    assert any("gravity_spike" in (flags or "") for flags in flagged)
    assert Topic("device", None, device.id) in topics
