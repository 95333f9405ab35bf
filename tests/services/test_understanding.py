"""What the user says of a device holds for its past and its future, changes nothing it sent, and ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.calibration import Calibration
from gateway.domain.device import Device, DeviceSettings
from gateway.domain.payload import Payload
from gateway.services.parts import Parts, put_together
from gateway.services.understanding import PAGE_READINGS
from gateway.store.queries import ReadingsQuery
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.clock import FakeClock

SPINDLE = {"name": "Red", "ID": 7, "angle": 50.0, "temperature": 20.0, "gravity": 1.5, "interval": 900}
PLATO = DeviceSettings(gravity_unit="P")


async def send(parts: Parts, clock: FakeClock, minutes: int = 15, **members: Any) -> None:
    clock.advance(60 * minutes)
    body = json.dumps(SPINDLE | members).encode()
    await parts.intake.take(Payload(body, clock.now(), "http /ingest"))


async def device(parts: Parts) -> Device:
    [found] = await parts.store.devices.all()
    return found


async def say(parts: Parts, settings: DeviceSettings) -> tuple[int, int]:
    done = await parts.understanding.configure(await device(parts), settings, lambda _: None)
    return done.readings, done.changed


async def lines(parts: Parts) -> list[dict[str, Any]]:
    found = parts.store.readings.json_lines(last=10_000, device_id=None, session_id=None)
    return [json.loads(line) async for line in found]


async def shown(parts: Parts, session_id: int) -> list[tuple[str, str, str]]:
    """Gravity, its unit and temperature as the read endpoint gives them."""
    session = await parts.store.sessions.get(session_id)
    assert session is not None
    chunks = [chunk async for chunk in parts.store.readings.json_chunks(ReadingsQuery(session))]
    readings = json.loads(b"[" + b"".join(chunks) + b"]")
    return [(r["gravity"], r["gravity_unit"], r["temp"]) for r in readings]


async def in_session(parts: Parts) -> int:
    session = await parts.store.sessions.add(brew(upstream_id=4101))
    await parts.store.devices.assign((await device(parts)).id, session.id, 0)
    return session.id


async def test_every_inference_is_on_the_device_with_its_reason(parts: Parts, clock: FakeClock) -> None:
    await send(parts, clock, gravity=12.5)
    unit, temp = (await device(parts)).inferred["gravity_unit"], (await device(parts)).inferred["temp_unit"]
    assert unit == ("P", "no unit sent; -5 to 45 can only be Plato")
    assert temp[0] == "C"
    await send(parts, clock, gravity=1.1)
    assert (await device(parts)).inferred["gravity_unit"] == (
        "P",
        "no unit sent, but this device has always sent Plato",
    )


async def test_a_unit_that_the_user_sets_holds_for_past_and_future_and_is_taken_back(
    parts: Parts, clock: FakeClock
) -> None:
    await send(parts, clock, gravity=1.1)  # a beer that finished near 1 °P looks like SG
    before = await lines(parts)
    assert before[0]["gravity_unit"] == "G"
    assert await say(parts, PLATO) == (1, 1)
    await send(parts, clock, gravity=1.05)
    assert [r["gravity_unit"] for r in await lines(parts)] == ["P", "P"]
    assert [r["gravity"] for r in await lines(parts)] == ["1.1", "1.05"]
    assert await say(parts, DeviceSettings()) == (2, 2)
    assert [r["gravity_unit"] for r in await lines(parts)] == ["G", "G"]
    assert (await lines(parts))[0] == before[0]


async def test_taking_a_unit_back_forgets_what_the_device_sent_before(parts: Parts, clock: FakeClock) -> None:
    await send(parts, clock, gravity=12.5)
    await send(parts, clock, gravity=1.05)
    assert [r["gravity_unit"] for r in await lines(parts)] == ["P", "P"]
    await say(parts, DeviceSettings(gravity_unit="G"))
    await say(parts, DeviceSettings())
    assert [r["gravity_unit"] for r in await lines(parts)] == ["P", "G"]


async def test_a_calibration_shows_in_the_unit_that_was_sent_and_leaves_what_was_sent(
    parts: Parts, clock: FakeClock
) -> None:
    await send(parts, clock, gravity=12.5)
    session = await in_session(parts)
    offset = Calibration(gravity_offset=-0.002, temp_offset=-0.5)
    await say(parts, DeviceSettings(calibration=offset))
    await send(parts, clock, gravity=12.5, angle=50.1)
    [first, second] = await shown(parts, session)
    assert first == second
    gravity, unit, temp = first
    assert (unit, temp) == ("P", "19.5")
    assert float(gravity) == pytest.approx(12.5 - 0.5, abs=0.05)  # 0.002 SG are about half a degree Plato
    sent = await lines(parts)
    assert [(r["gravity"], r["temp"], r["calibrated_gravity"]) for r in sent] == [
        ("12.5", "20.0", gravity),
        ("12.5", "20.0", gravity),
    ]
    await say(parts, DeviceSettings())
    assert await shown(parts, session) == [("12.5", "P", "20.0")] * 2
    assert (await lines(parts))[0]["calibrated_gravity"] is None


async def test_a_curve_gives_a_gravity_to_readings_that_had_none(parts: Parts, clock: FakeClock) -> None:
    await send(parts, clock, gravity=0)
    session = await in_session(parts)
    assert await shown(parts, session) == [("", "G", "20.0")]
    await say(parts, DeviceSettings(calibration=Calibration(curve=(1.0, 0.001))))
    assert await shown(parts, session) == [("1.0500", "G", "20.0")]
    milestones = await parts.store.sessions.milestones(session)
    assert milestones.last_gravity is not None
    assert (milestones.last_gravity.gravity, milestones.last_gravity.sg) == ("1.0500", 1.05)


async def test_imported_readings_are_never_calibrated(parts: Parts, clock: FakeClock) -> None:
    await send(parts, clock, gravity=1.050)
    session_id = await in_session(parts)
    session = await parts.store.sessions.get(session_id)
    assert session is not None
    body = b'[{"gravity": 1.060, "name": "Red", "created_at": "2026-01-01T00:00:00Z"}]'
    await parts.importing.run(session, body, "json", "", False)
    await say(parts, DeviceSettings(calibration=Calibration(gravity_offset=0.01)))
    assert [gravity for gravity, _, _ in await shown(parts, session_id)] == ["1.06", "1.0600"]
    assert [line["calibrated_gravity"] for line in await lines(parts)] == [None, "1.0600"]


async def test_what_is_forwarded_is_calibrated_and_what_was_can_be_sent_again(
    parts: Parts, clock: FakeClock
) -> None:
    await send(parts, clock, gravity=1.050)
    session = await in_session(parts)
    batch = await parts.store.outbox.begin("up", session, 10)
    assert batch is not None
    await parts.store.outbox.settle(batch)
    await say(parts, DeviceSettings(calibration=Calibration(gravity_offset=0.01)))
    assert await parts.store.outbox.begin("up", session, 10) is None
    assert await parts.understanding.send_again(await device(parts), 0) == 1
    again = await parts.store.outbox.begin("up", session, 10)
    assert again is not None
    [was], [now] = map(json.loads, batch.rows), map(json.loads, again.rows)
    assert (was["gravity"], now["gravity"]) == ("1.05", "1.0600")
    assert was["_id"] == now["_id"]


async def test_excluded_readings_stay_and_count_in_no_statistics(parts: Parts, clock: FakeClock) -> None:
    await send(parts, clock, gravity=1.050)
    session = await in_session(parts)
    await send(parts, clock, gravity=1.000, angle=25.0)
    now = int(clock.now())
    await say(parts, DeviceSettings(excluded=((now, now),)))
    assert [gravity for gravity, _, _ in await shown(parts, session)] == ["1.05", "1.0"]
    assert (await lines(parts))[1]["flags"] == ["excluded"]
    milestones = await parts.store.sessions.milestones(session)
    assert milestones.last_gravity is not None
    assert milestones.last_gravity.gravity == "1.05"
    await say(parts, DeviceSettings())
    assert (await parts.store.sessions.milestones(session)).last_gravity != milestones.last_gravity


async def test_a_spike_is_flagged_once_the_next_reading_shows_it(parts: Parts, clock: FakeClock) -> None:
    gravities = [1.050] * 12 + [1.030] + [1.050] * 2
    for place, gravity in enumerate(gravities):
        await send(parts, clock, gravity=gravity, angle=50 + place / 100)
    flags = [line["flags"] for line in await lines(parts)]
    outlier = ["gravity_rate", "gravity_spike"]
    assert flags == [outlier if gravity == 1.030 else [] for gravity in gravities]
    await say(parts, PLATO)
    await say(parts, DeviceSettings())
    assert [line["flags"] for line in await lines(parts)] == flags


async def test_flags_go_on_after_a_restart(parts: Parts, clock: FakeClock, tmp_path: Path) -> None:
    for place in range(12):
        await send(parts, clock, gravity=1.050, angle=50 + place / 100)
    await send(parts, clock, gravity=1.030)
    later = put_together(parts.store, tmp_path, clock)
    await later.intake.start()
    await send(later, clock, gravity=1.050)
    assert [line["flags"] for line in await lines(parts)][-2:] == [["gravity_rate", "gravity_spike"], []]


async def test_more_readings_than_a_page_and_the_rest_after_a_restart(
    parts: Parts, clock: FakeClock, tmp_path: Path
) -> None:
    many = PAGE_READINGS + 3
    for place in range(many):
        await send(parts, clock, gravity=1.1, angle=10 + place / 10)
    told: list[int] = []
    done = await parts.understanding.configure(await device(parts), PLATO, told.append)
    assert (done.readings, done.changed, told) == (many, many, [PAGE_READINGS, many])
    assert not (await device(parts)).rereading
    # As if the process had ended before the first page was written.
    await parts.store.devices.configure(
        Device(**{**fields_of(await device(parts)), "settings": DeviceSettings(gravity_unit="G")})
    )
    assert {line["gravity_unit"] for line in await lines(parts)} == {"P"}
    later = put_together(parts.store, tmp_path, clock)
    await later.intake.start()
    await later.understanding.resume()
    assert {line["gravity_unit"] for line in await lines(parts)} == {"G"}
    assert not (await device(parts)).rereading


def fields_of(of: Device) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__dataclass_fields__}


async def test_renaming_does_not_split_and_one_name_does_not_merge(parts: Parts, clock: FakeClock) -> None:
    await send(parts, clock, name="Red")
    await send(parts, clock, name="Blue")
    await send(parts, clock, name="Blue", ID=8)
    first, second = await parts.store.devices.all()
    assert (first.key, first.name, second.key) == ("ispindel:7", "Blue", "ispindel:8")
    assert [line["device_id"] for line in await lines(parts)] == ["7", "7", "8"]


async def test_what_no_driver_reads_any_more_is_calibrated_by_what_was_stored(
    parts: Parts, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(parts, clock, gravity=1.050)
    session = await in_session(parts)
    monkeypatch.setattr("gateway.drivers.BY_NAME", {})
    await say(parts, DeviceSettings(calibration=Calibration(gravity_offset=0.01)))
    assert await shown(parts, session) == [("1.0600", "G", "20.0")]


async def test_settings_survive_the_store(parts: Parts, tmp_path: Path, clock: FakeClock) -> None:
    await send(parts, clock)
    wanted = DeviceSettings(
        label="Fermenter 2",
        gravity_unit="P",
        temp_unit="F",
        interval_s=1800,
        calibration=Calibration(curve=(1.0, 0.001), points=((25.0, 1.0), (50.0, 1.05)), corrected_at_c=20.0),
        excluded=((1, 2), (5, 9)),
    )
    await say(parts, wanted)
    store = SqliteStore(tmp_path)
    await store.open_read_only()
    [stored] = await store.devices.all()
    await store.close()
    assert stored.settings == wanted
    assert stored.title == "Fermenter 2"
