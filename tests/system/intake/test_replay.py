"""Replay: what was not understood becomes a reading of its own time, once, wherever an attempt ended."""

import json
from dataclasses import asdict
from typing import Any

import pytest

from gateway import drivers
from gateway.domain.payload import Payload
from gateway.domain.progress import Progress, no_progress
from gateway.domain.quarantined import Quarantined
from gateway.errors import NotFound, StoreUnavailable
from gateway.intake import replay as intake_replay
from gateway.intake.replay import Replay, names_of
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from tests.clock import FakeClock
from tests.program.program import ispindel

ARRIVAL = 1_772_616_600
"""2026-03-04T09:30:00Z, where the clock stands."""

LATER_S = 86_400

RED = {"SG": "1.045", "Temp": "68", "Color": "RED"}


async def replay(
    services: Services, *ids: int, device: str | None = None, progress: Progress = no_progress
) -> dict[str, Any]:
    names = None if device is None else await names_of(services.store, device)
    run = Replay(services.store, services.intake, services.notices)
    return asdict(await run.run(progress, numbers=ids, names=names))


async def lines(services: Services) -> list[dict[str, Any]]:
    found = services.store.readings.json_lines(last=1000, device_id=None, session_id=None)
    return [json.loads(line) async for line in found]


async def put(services: Services, body: object, at: float = ARRIVAL, **details: Any) -> None:
    """Into quarantine, as an earlier version would have done."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    defaults: dict[str, Any] = {"channel": "http /ingest", "source": "192.0.2.7"}
    item = Quarantined(raw, "not understood", int(at * 1000), **(defaults | details))
    await services.store.quarantine.add(item)


async def take(services: Services, body: object, at: float = ARRIVAL, **details: Any) -> None:
    raw = (body if isinstance(body, str) else json.dumps(body)).encode()
    await services.intake.take(Payload(raw, at, "http /ingest", **details))


async def test_what_a_later_version_understands_becomes_a_reading_of_its_arrival(
    services: Services, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.delitem(drivers.BY_NAME, "ispindel")
        await services.intake.take(
            Payload(ispindel().encode(), ARRIVAL + 0.123, "http /ingest", source="192.0.2.7")
        )
        assert (await replay(services))["left"] == 1
    assert await lines(services) == []
    clock.advance(LATER_S)
    assert await replay(services) == {"understood": 1, "left": 0, "reasons": {}}
    (line,) = await lines(services)
    assert (line["created_at"], line["ip"], line["gravity"]) == (
        "2026-03-04T09:30:00+00:00",
        "192.0.2.7",
        "12.5",
    )
    assert await services.store.quarantine.count() == 0
    assert (await replay(services))["understood"] == 0


@pytest.mark.parametrize("millisecond", [0, 1, 5, 122, 123, 357, 998, 999])
async def test_a_reading_that_was_stored_before_the_process_ended_is_not_stored_again(
    services: Services, millisecond: int
) -> None:
    await put(services, ispindel(), ARRIVAL + millisecond / 1000)
    for _ in range(2):  # it ends before the payload has left quarantine
        (item,) = await services.store.quarantine.newest(1)
        assert await Replay(services.store, services.intake, services.notices).settle(item) is None
    assert (await replay(services))["understood"] == 1
    assert len(await lines(services)) == 1
    assert await services.store.quarantine.count() == 0


async def test_the_part_that_was_understood_at_once_is_not_doubled(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = f"[{ispindel()}, {json.dumps(RED)}]"
    with monkeypatch.context() as patch:
        patch.delitem(drivers.BY_NAME, "tilt")
        await take(services, both)
        result = await replay(services)
        assert (result["understood"], result["left"]) == (0, 1)
    assert len(await lines(services)) == 1
    assert (await replay(services))["understood"] == 1
    assert sorted(line["source"] for line in await lines(services)) == ["ispindel", "tilt"]


def several(*days: float) -> list[dict[str, str]]:
    return [{**RED, "SG": f"1.0{40 + place}", "Timepoint": str(day)} for place, day in enumerate(days)]


async def test_several_readings_of_a_device_in_one_payload_are_all_stored(services: Services) -> None:
    await put(services, several(46084.5, 46084.75, 46085.0))
    assert (await replay(services))["understood"] == 1
    assert [line["gravity"] for line in await lines(services)] == ["1.040", "1.041", "1.042"]
    moments = [line["created_at"][11:16] for line in await lines(services)]
    assert moments == ["21:30", "03:30", "09:30"]


@pytest.mark.parametrize("stored", [1, 2])
async def test_of_several_readings_of_a_device_those_that_are_missing_are_stored(
    services: Services, monkeypatch: pytest.MonkeyPatch, stored: int
) -> None:
    await put(services, several(46084.5, 46084.75, 46085.0))
    calls, genuine = [0], services.intake.store_report

    async def failing(*arguments: Any, **named: Any) -> None:
        calls[0] += 1
        if calls[0] > stored:
            raise StoreUnavailable
        await genuine(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(services.intake, "store_report", failing)
        with pytest.raises(StoreUnavailable):
            await replay(services)
    assert len(await lines(services)) == stored
    assert await services.store.quarantine.count() == 1
    assert (await replay(services))["understood"] == 1
    assert [line["gravity"] for line in await lines(services)] == ["1.040", "1.041", "1.042"]


async def test_a_delivery_that_came_twice_is_one_reading(services: Services) -> None:
    for at in (0, 5, 900):
        await put(services, ispindel(), ARRIVAL + at)
    assert (await replay(services))["understood"] == 3
    assert len(await lines(services)) == 2


async def test_a_family_that_reports_every_few_seconds_is_thinned_as_it_is_live(services: Services) -> None:
    for at in range(0, 65, 4):
        details = {"driver": "esphome", "label": "cellar", "channel": "mqtt cellar/sensor"}
        await put(services, {"gravity": f"1.0{50 - at // 4}", "temp": "20"}, ARRIVAL + at, **details)
    assert drivers.BY_NAME["esphome"].spacing_s == 30
    assert (await replay(services))["understood"] == 17
    assert [line["gravity"] for line in await lines(services)] == ["1.050", "1.042", "1.034"]


async def test_what_is_older_than_a_devices_last_reading_teaches_it_nothing(services: Services) -> None:
    await take(services, ispindel(name="new", gravity="5.5"), ARRIVAL + 3600)
    await put(services, ispindel(name="old", gravity="12.5"))
    await replay(services)
    assert [line["name"] for line in await lines(services)] == ["old", "new"]
    assert [device.name for device in await services.store.devices.all()] == ["new"]
    await take(services, ispindel(name="new", gravity="5.4"), ARRIVAL + 7200)
    assert [line["flags"] for line in await lines(services)] == [[], [], []]


async def test_a_device_that_was_unknown_registers_itself_as_of_then(
    services: Services, clock: FakeClock
) -> None:
    await put(services, ispindel(name="first"))
    await put(services, ispindel(name="renamed"), ARRIVAL + 900)
    clock.advance(LATER_S)
    await replay(services)
    (device,) = await services.store.devices.all()
    assert (device.name, device.first_seen_at, device.session_id) == ("renamed", ARRIVAL, None)


async def test_a_reading_goes_into_the_brew_session_of_its_device(services: Services) -> None:
    await take(services, ispindel(), ARRIVAL + 900)
    session = await services.brewsessions.add_session(1, SessionChange(batchcode="A"))
    await services.brewsessions.assign("1", session.id, None)
    await put(services, ispindel(gravity="13"))
    await replay(services)
    assert [line["brewevent_id"] for line in await lines(services)] == [session.id, None]


async def test_a_reading_that_was_refused_is_forwarded_again(services: Services) -> None:
    session = await services.brewsessions.add_session(1, SessionChange(batchcode="A", upstream_id=7))
    await take(services, ispindel())
    await services.brewsessions.assign("1", session.id, 0)
    batch = await services.store.outbox.begin("brew", session.id, 10)
    assert batch is not None
    await services.store.outbox.settle(batch)
    await put(services, batch.rows[0], channel="forward brew", source="brew session 1")
    bell = services.notices.listen()
    assert (await replay(services, device="spindle1"))["understood"] == 1
    again = await services.store.outbox.begin("brew", session.id, 10)
    assert again is not None
    assert again.rows == batch.rows
    assert len(await lines(services)) == 1
    assert await services.store.quarantine.count() == 0
    assert bell.is_set()


@pytest.mark.parametrize("body", [b"{}", b"\xff", b"[]", b'{"_id":{"$oid":"zz"}}', b'{"_id":{"$oid":7}}'])
async def test_a_refused_reading_that_is_gone_stays_with_the_reason(services: Services, body: bytes) -> None:
    await put(services, body, channel="forward brew")
    result = await replay(services)
    assert result["reasons"] == {"the reading is gone, or in no brew session": 1}


async def test_a_number_that_is_not_there_is_named_and_nothing_is_done(services: Services) -> None:
    await put(services, ispindel())
    with pytest.raises(NotFound, match="number 2; `quarantine list` shows"):
        await replay(services, 1, 2)
    assert await lines(services) == []


async def test_only_the_numbers_that_are_given_each_once(services: Services) -> None:
    for number in (1, 2, 3):
        await put(services, ispindel(number))
    assert (await replay(services, 3, 1, 3))["understood"] == 2
    assert sorted(line["name"] for line in await lines(services)) == ["spindle1", "spindle3"]


@pytest.mark.parametrize("device", ["spindle1", "ispindel:1", "1"])
async def test_only_the_devices_own(services: Services, device: str) -> None:
    await put(services, ispindel(1))
    await put(services, ispindel(12))
    await put(services, b"spindle12 says nothing")
    result = await replay(services, device=device)
    assert (result["understood"], result["left"]) == (1, 0)
    assert [line["name"] for line in await lines(services)] == ["spindle1"]


async def test_what_nobody_understands_is_of_the_device_whose_name_it_says(services: Services) -> None:
    await put(services, b'{"who":"spindle1"}')
    await put(services, b'{"who":"spindle12"}')
    assert (await replay(services, device="spindle1"))["left"] == 1


async def test_a_known_device_is_found_by_its_number_here(services: Services) -> None:
    await take(services, ispindel(77, name="Keller"))
    await put(services, ispindel(77, name="Keller", gravity="9"), ARRIVAL + 900)
    await put(services, ispindel(1), ARRIVAL + 900)
    assert (await replay(services, device="1"))["understood"] == 1
    assert {line["device_id"] for line in await lines(services)} == {"77"}


async def test_a_mistake_of_ours_keeps_nothing_else_in_quarantine(
    services: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await put(services, ispindel(1))
    await put(services, ispindel(2))
    genuine = services.intake.store_report

    async def failing(payload: Payload, report: Any, **named: Any) -> None:
        if report.stable_id == "1":
            raise ValueError("a mistake")
        await genuine(payload, report, **named)

    with monkeypatch.context() as patch:
        patch.setattr(services.intake, "store_report", failing)
        result = await replay(services)
    assert (result["understood"], result["reasons"]) == (1, {"it cannot be stored as a reading": 1})
    assert "number 1" in caplog.text
    assert (await replay(services))["understood"] == 1


async def test_all_pages_are_looked_at_and_told(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake_replay, "PAGE_ITEMS", 2)
    for number in range(5):
        await put(services, ispindel(number + 1) if number % 2 else b"?", ARRIVAL + number)
    told: list[tuple[int, int]] = []
    result = await replay(services, progress=lambda done, of, _: told.append((done, of)))
    assert (result["understood"], result["left"]) == (2, 3)
    assert told == [(number, 5) for number in range(1, 6)]
    assert [item.id for item in await services.store.quarantine.newest(10)] == [1, 3, 5]
