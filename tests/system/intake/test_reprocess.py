"""What the user says of a device holds for its past and its future, changes nothing it sent, and ends."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.calibration import Calibration
from gateway.domain.device import Device, DeviceSettings
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.drivers import decode
from gateway.intake.normalise import normalise
from gateway.intake.reprocess import PAGE_READINGS, reprocess
from gateway.services.build import Services, build_services
from gateway.store.queries import ReadingsQuery
from gateway.store.records import RawReading
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.clock import FakeClock

SPINDLE = {"name": "Red", "ID": 7, "angle": 50.0, "temperature": 20.0, "gravity": 1.5, "interval": 900}
PLATO = DeviceSettings(gravity_unit="P")


async def send(services: Services, clock: FakeClock, minutes: int = 15, **members: Any) -> None:
    clock.advance(60 * minutes)
    body = json.dumps(SPINDLE | members).encode()
    await services.intake.take(Payload(body, clock.now(), "http /ingest"))


async def device(services: Services) -> Device:
    [found] = await services.store.devices.all()
    return found


async def say(services: Services, settings: DeviceSettings) -> tuple[int, int]:
    done = await services.reprocessor.configure(await device(services), settings, lambda _: None)
    return done.readings, done.changed


async def lines(services: Services) -> list[dict[str, Any]]:
    found = services.store.readings.json_lines(last=10_000, device_id=None, session_id=None)
    return [json.loads(line) async for line in found]


async def shown(services: Services, session_id: int) -> list[tuple[str, str, str]]:
    """Gravity, its unit and temperature as the read endpoint gives them."""
    session = await services.store.sessions.get(session_id)
    assert session is not None
    chunks = [chunk async for chunk in services.store.readings.json_chunks(ReadingsQuery(session))]
    readings = json.loads(b"[" + b"".join(chunks) + b"]")
    return [(r["gravity"], r["gravity_unit"], r["temp"]) for r in readings]


async def in_session(services: Services) -> int:
    session = await services.store.sessions.add(brew(upstream_id=4101))
    await services.store.devices.assign((await device(services)).id, session.id, 0)
    return session.id


async def test_every_inference_is_on_the_device_with_its_reason(services: Services, clock: FakeClock) -> None:
    await send(services, clock, gravity=12.5)
    unit, temp = (
        (await device(services)).inferred["gravity_unit"],
        (await device(services)).inferred["temp_unit"],
    )
    assert unit == ("P", "no unit sent; -5 to 45 can only be Plato")
    assert temp[0] == "C"
    await send(services, clock, gravity=1.1)
    assert (await device(services)).inferred["gravity_unit"] == (
        "P",
        "no unit sent, but this device has always sent Plato",
    )


async def test_a_unit_that_the_user_sets_holds_for_past_and_future_and_is_taken_back(
    services: Services, clock: FakeClock
) -> None:
    await send(services, clock, gravity=1.1)  # a beer that finished near 1 °P looks like SG
    before = await lines(services)
    assert before[0]["gravity_unit"] == "G"
    assert await say(services, PLATO) == (1, 1)
    await send(services, clock, gravity=1.05)
    assert [r["gravity_unit"] for r in await lines(services)] == ["P", "P"]
    assert [r["gravity"] for r in await lines(services)] == ["1.1", "1.05"]
    assert await say(services, DeviceSettings()) == (2, 2)
    assert [r["gravity_unit"] for r in await lines(services)] == ["G", "G"]
    assert (await lines(services))[0] == before[0]


SPINDLES = {
    "on a desk first": ([0.9298, 1.0502, 1.0490], "P G G"),
    "on a desk between two brews": ([1.050, 1.049, 1.048, 0.9395, 1.047, 1.046], "G G G G G G"),
    "on a desk where its polynomial gives less still": ([1.050, 0.861, 1.047], "G G G"),
    "in water between two brews": ([1.050, 0.02, 1.047], "G P G"),
    "finishing in Plato": ([12.5, 2.1, 1.24, 1.05, 0.98, 1.1], "P P P P P P"),
    "from SG to Plato": ([1.050, 12.5, 12.4, 1.2], "G P P P"),
    "from SG to Plato, with gaps that say nothing": ([1.050, 12.5, 0, 0.94, 12.4, 1.2], "G P G G P P"),
    "from Plato to SG, by its size beyond doubt": ([12.5, 1.05, 1050.2, 1.049], "P P G G"),
    "a thousandfold": ([1045.6, 10456, 0.93, 1.0456], "G G G G"),
    "beyond all": ([1.05, 700, 1.049, 300, 300], "G G G G G"),
}

THERMOMETERS = {
    "Celsius, once in the sun": ([20.5, 35.1, 46.0, 36.0, 20.0], "C C F C C"),
    "Fahrenheit, cold crash": ([68.5, 41.2, 35.1, 29.0, 28.4, 36.0, 68.0], "F F F F F F F"),
    "Fahrenheit, cold from the start": ([41.2, 68.0, 41.0], "C F F"),
    "Fahrenheit, once frozen": ([68.5, 41.2, 20.1, 41.0], "F F C F"),
    "Celsius after Fahrenheit": ([68.5, 20.5, 20.6, 35.0], "F C C C"),
    "Fahrenheit after Celsius": ([20.5, 68.0, 35.0, 68.5, 41.0], "C F C F F"),
}


async def send_all(
    services: Services, clock: FakeClock, values: list[float], member: str = "gravity", **others: Any
) -> None:
    for place, value in enumerate(values):
        body = SPINDLE | {"angle": 40 + place / 8, member: value} | others
        clock.advance(900)
        payload = Payload(json.dumps(body).encode(), clock.now(), "http /ingest", driver="gravitymon")
        await services.intake.take(payload)


@pytest.mark.parametrize("case", SPINDLES)
async def test_one_odd_value_teaches_nothing_of_gravity(
    services: Services, clock: FakeClock, case: str
) -> None:
    gravities, units = SPINDLES[case]
    await send_all(services, clock, gravities)
    assert [line["gravity_unit"] for line in await lines(services)] == units.split()
    await is_exactly_taken_back(services)


@pytest.mark.parametrize("case", THERMOMETERS)
async def test_one_odd_value_teaches_nothing_of_temperature(
    services: Services, clock: FakeClock, case: str
) -> None:
    temperatures, units = THERMOMETERS[case]
    await send_all(services, clock, temperatures, "temperature", gravity=1.05)
    assert [line["temp_unit"] for line in await lines(services)] == units.split()
    await is_exactly_taken_back(services)


async def is_exactly_taken_back(services: Services) -> None:
    """A label changes no reading, and units that are set and taken back leave nothing behind."""
    before, known = await lines(services), await device(services)
    assert (await say(services, DeviceSettings(label="X")))[1] == 0
    assert await device(services) == replace(known, settings=DeviceSettings(label="X"))
    for settings in (PLATO, DeviceSettings(gravity_unit="G", temp_unit="F"), DeviceSettings(temp_unit="C")):
        await say(services, settings)
        await say(services, DeviceSettings())
        assert await lines(services) == before
        assert await device(services) == known


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 0.2, 0.861, 0.93, 0.96, 1.05, 1.2, 1.28, 1.6, 12.5, 44, 300, 1050, -3]),
            st.sampled_from([18, 24.9, 27, 31, 44.9, 46, 68, 85, 293.15, -127]),
            st.sampled_from([900, 1]),
            st.sampled_from([None, "G", "P"]),
            st.sampled_from([None, "C", "F"]),
        ),
        max_size=12,
    )
)
def test_what_is_read_again_is_what_was_read_live(sent: list[tuple[Any, ...]]) -> None:
    found: Device | None = None
    live: list[tuple[Reading, Payload]] = []
    for place, (gravity, temperature, interval, unit, temp_unit) in enumerate(sent):
        members = {"gravity": gravity, "temperature": temperature, "interval": interval}
        said = {"gravity-unit": unit, "temp_units": temp_unit}
        body = SPINDLE | members | {name: value for name, value in said.items() if value is not None}
        payload = Payload(json.dumps(body).encode(), 1e9 + 900 * place, "http /ingest", driver="gravitymon")
        [report] = decode(payload).reports
        found = found or Device.first_seen(report, int(payload.received_at))
        reading, inferred = normalise(report, found, payload)
        found = found.learned(report, reading, inferred)
        live.append((reading, payload))
    if found is None:
        return
    for settings in (PLATO, DeviceSettings(gravity_unit="G", temp_unit="F"), DeviceSettings(label="X")):
        again, changed = read_again(replace(found, settings=settings), live)
        again, taken_back = read_again(
            replace(again, settings=DeviceSettings()),
            [(reading, payload) for reading, (_, payload) in zip(changed, live, strict=True)],
        )
        assert taken_back == [reading for reading, _ in live]
        assert again == found
    assert changed == taken_back  # of the label


def read_again(found: Device, live: list[tuple[Reading, Payload]]) -> tuple[Device, list[Reading]]:
    found = replace(found, gravity_unit=None, inferred={})
    readings = []
    for seq, (reading, payload) in enumerate(live):
        again, found = reprocess(RawReading(seq, reading, payload.body, payload.channel), found)
        readings.append(again)
    return found, readings


async def test_what_came_while_it_was_read_again_is_read_again_too(
    services: Services, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send_all(services, clock, [12.5, 8.0])
    await say(services, DeviceSettings(gravity_unit="G"))
    save = services.store.devices.save

    async def late(learned: Device) -> Device:
        if learned.gravity_unit == "P" and not arrived:
            arrived.append(True)
            await send_all(services, clock, [1.04])
        return await save(learned)

    arrived: list[bool] = []
    monkeypatch.setattr(services.store.devices, "save", late)
    await say(services, DeviceSettings())
    assert [line["gravity_unit"] for line in await lines(services)] == ["P", "P", "P"]
    assert (await device(services)).gravity_unit == "P"


async def test_a_doubt_survives_a_restart(services: Services, clock: FakeClock, tmp_path: Path) -> None:
    await send_all(services, clock, [1.050, 12.5])
    later = build_services(services.store, tmp_path, clock)
    await later.intake.start()
    await send_all(later, clock, [12.4, 1.2])
    assert [line["gravity_unit"] for line in await lines(services)] == ["G", "P", "P", "P"]


async def test_a_test_send_is_read_as_plato_and_teaches_none(services: Services, clock: FakeClock) -> None:
    await send_all(services, clock, [25.1], interval=1)
    await send_all(services, clock, [1.050])
    assert [line["gravity_unit"] for line in await lines(services)] == ["P", "G"]


async def test_an_earlier_versions_fahrenheit_is_remembered(services: Services, clock: FakeClock) -> None:
    await send_all(services, clock, [68.5], "temperature", gravity=1.05)
    found = await device(services)
    reason = found.inferred["temp_unit"]
    services.intake.devices.put(
        await services.store.devices.save(replace(found, inferred={"temp_unit": reason}))
    )
    await send_all(services, clock, [35.0, 29.0], "temperature", gravity=1.05)
    assert [line["temp_unit"] for line in await lines(services)] == ["F", "F", "F"]


async def test_that_a_battery_is_percent_is_inferred_and_on_the_device(
    services: Services, clock: FakeClock
) -> None:
    await send(services, clock, gravity=1.05, battery=3.9)
    assert "battery" not in (await device(services)).inferred
    await send(services, clock, gravity=1.05, battery=84)
    inferred = (await device(services)).inferred["battery"]
    assert inferred == ("percent", "no unit sent; more than 5.5 can only be percent")


async def test_a_calibration_shows_in_the_unit_that_was_sent_and_leaves_what_was_sent(
    services: Services, clock: FakeClock
) -> None:
    await send(services, clock, gravity=12.5)
    session = await in_session(services)
    offset = Calibration(gravity_offset=-0.002, temp_offset=-0.5)
    await say(services, DeviceSettings(calibration=offset))
    await send(services, clock, gravity=12.5, angle=50.1)
    [first, second] = await shown(services, session)
    assert first == second
    gravity, unit, temp = first
    assert (unit, temp) == ("P", "19.5")
    assert float(gravity) == pytest.approx(12.5 - 0.5, abs=0.05)  # 0.002 SG are about half a degree Plato
    sent = await lines(services)
    assert [(r["gravity"], r["temp"], r["calibrated_gravity"]) for r in sent] == [
        ("12.5", "20.0", gravity),
        ("12.5", "20.0", gravity),
    ]
    await say(services, DeviceSettings())
    assert await shown(services, session) == [("12.5", "P", "20.0")] * 2
    assert (await lines(services))[0]["calibrated_gravity"] is None


async def test_a_curve_gives_a_gravity_to_readings_that_had_none(
    services: Services, clock: FakeClock
) -> None:
    await send(services, clock, gravity=0)
    session = await in_session(services)
    assert await shown(services, session) == [("", "G", "20.0")]
    await say(services, DeviceSettings(calibration=Calibration(curve=(1.0, 0.001))))
    assert await shown(services, session) == [("1.0500", "G", "20.0")]
    milestones = await services.store.sessions.milestones(session)
    assert milestones.last_gravity is not None
    assert (milestones.last_gravity.gravity, milestones.last_gravity.sg) == ("1.0500", 1.05)


async def test_a_curve_gives_its_own_unit_to_a_device_that_never_had_one(
    services: Services, clock: FakeClock
) -> None:
    await send(services, clock, gravity=0)
    session = await in_session(services)
    plato = Calibration(curve=(2.5, 0.2), curve_unit="P")
    await say(services, DeviceSettings(calibration=plato))
    await send(services, clock, gravity=0, angle=40.0)
    assert await shown(services, session) == [("12.50", "P", "20.0"), ("10.50", "P", "20.0")]
    await say(services, DeviceSettings())
    assert await shown(services, session) == [("", "G", "20.0")] * 2


async def test_imported_readings_are_never_calibrated(services: Services, clock: FakeClock) -> None:
    await send(services, clock, gravity=1.050)
    session_id = await in_session(services)
    session = await services.store.sessions.get(session_id)
    assert session is not None
    body = b'[{"gravity": 1.060, "name": "Red", "created_at": "2026-01-01T00:00:00Z"}]'
    await services.importing.run(session, body, "json", "", False)
    await say(services, DeviceSettings(calibration=Calibration(gravity_offset=0.01)))
    assert [gravity for gravity, _, _ in await shown(services, session_id)] == ["1.06", "1.0600"]
    assert [line["calibrated_gravity"] for line in await lines(services)] == [None, "1.0600"]


async def test_what_is_forwarded_is_calibrated_and_what_was_can_be_sent_again(
    services: Services, clock: FakeClock
) -> None:
    await send(services, clock, gravity=1.050)
    session = await in_session(services)
    batch = await services.store.outbox.begin("up", session, 10)
    assert batch is not None
    await services.store.outbox.settle(batch)
    await say(services, DeviceSettings(calibration=Calibration(gravity_offset=0.01)))
    assert await services.store.outbox.begin("up", session, 10) is None
    assert await services.reprocessor.send_again(await device(services), 0) == 1
    again = await services.store.outbox.begin("up", session, 10)
    assert again is not None
    [was], [now] = map(json.loads, batch.rows), map(json.loads, again.rows)
    assert (was["gravity"], now["gravity"]) == ("1.05", "1.0600")
    assert was["_id"] == now["_id"]


async def test_excluded_readings_stay_and_count_in_no_statistics(
    services: Services, clock: FakeClock
) -> None:
    await send(services, clock, gravity=1.050)
    session = await in_session(services)
    await send(services, clock, gravity=1.000, angle=25.0)
    now = int(clock.now())
    await say(services, DeviceSettings(excluded=((now, now),)))
    assert [gravity for gravity, _, _ in await shown(services, session)] == ["1.05", "1.0"]
    assert (await lines(services))[1]["flags"] == ["excluded"]
    milestones = await services.store.sessions.milestones(session)
    assert milestones.last_gravity is not None
    assert milestones.last_gravity.gravity == "1.05"
    await say(services, DeviceSettings())
    assert (await services.store.sessions.milestones(session)).last_gravity != milestones.last_gravity


async def test_a_spike_is_flagged_once_the_next_reading_shows_it(
    services: Services, clock: FakeClock
) -> None:
    gravities = [1.050] * 12 + [1.030] + [1.050] * 2
    for place, gravity in enumerate(gravities):
        await send(services, clock, gravity=gravity, angle=50 + place / 100)
    flags = [line["flags"] for line in await lines(services)]
    outlier = ["gravity_rate", "gravity_spike"]
    assert flags == [outlier if gravity == 1.030 else [] for gravity in gravities]
    await say(services, PLATO)
    await say(services, DeviceSettings())
    assert [line["flags"] for line in await lines(services)] == flags


async def test_flags_go_on_after_a_restart(services: Services, clock: FakeClock, tmp_path: Path) -> None:
    for place in range(12):
        await send(services, clock, gravity=1.050, angle=50 + place / 100)
    await send(services, clock, gravity=1.030)
    later = build_services(services.store, tmp_path, clock)
    await later.intake.start()
    await send(later, clock, gravity=1.050)
    assert [line["flags"] for line in await lines(services)][-2:] == [["gravity_rate", "gravity_spike"], []]


async def test_more_readings_than_a_page_and_the_rest_after_a_restart(
    services: Services, clock: FakeClock, tmp_path: Path
) -> None:
    many = PAGE_READINGS + 3
    for place in range(many):
        await send(services, clock, gravity=1.1, angle=10 + place / 10)
    told: list[int] = []
    done = await services.reprocessor.configure(await device(services), PLATO, told.append)
    assert (done.readings, done.changed, told) == (many, many, [PAGE_READINGS, many])
    assert not (await device(services)).reprocessing
    # As if the process had ended before the first page was written.
    await services.store.devices.configure(
        Device(**{**fields_of(await device(services)), "settings": DeviceSettings(gravity_unit="G")})
    )
    assert {line["gravity_unit"] for line in await lines(services)} == {"P"}
    later = build_services(services.store, tmp_path, clock)
    await later.intake.start()
    await later.reprocessor.resume()
    assert {line["gravity_unit"] for line in await lines(services)} == {"G"}
    assert not (await device(services)).reprocessing


def fields_of(of: Device) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__dataclass_fields__}


async def test_renaming_does_not_split_and_one_name_does_not_merge(
    services: Services, clock: FakeClock
) -> None:
    await send(services, clock, name="Red")
    await send(services, clock, name="Blue")
    await send(services, clock, name="Blue", ID=8)
    first, second = await services.store.devices.all()
    assert (first.key, first.name, second.key) == ("ispindel:7", "Blue", "ispindel:8")
    assert [line["device_id"] for line in await lines(services)] == ["7", "7", "8"]


async def test_what_no_driver_reads_any_more_is_calibrated_by_what_was_stored(
    services: Services, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await send(services, clock, gravity=1.050)
    session = await in_session(services)
    monkeypatch.setattr("gateway.drivers.BY_NAME", {})
    await say(services, DeviceSettings(calibration=Calibration(gravity_offset=0.01)))
    assert await shown(services, session) == [("1.0600", "G", "20.0")]


async def test_settings_survive_the_store(services: Services, tmp_path: Path, clock: FakeClock) -> None:
    await send(services, clock)
    wanted = DeviceSettings(
        label="Fermenter 2",
        gravity_unit="P",
        temp_unit="F",
        interval_s=1800,
        calibration=Calibration(curve=(1.0, 0.001), points=((25.0, 1.0), (50.0, 1.05)), corrected_at_c=20.0),
        excluded=((1, 2), (5, 9)),
    )
    await say(services, wanted)
    store = SqliteStore(tmp_path)
    await store.open_read_only()
    [stored] = await store.devices.all()
    await store.close()
    assert stored.settings == wanted
    assert stored.title == "Fermenter 2"


async def test_that_a_comment_was_repeated_is_not_forgotten(services: Services, clock: FakeClock) -> None:
    for timepoint in ("46084.5", "46084.6"):
        clock.advance(900)
        form = f"Timepoint={timepoint}&Temp=68&SG=1.045&Color=RED&Beer=&Comment=dry%20hop"
        await services.intake.take(Payload(form.encode(), clock.now(), "http /ingest/tilt", driver="tilt"))
    await say(services, DeviceSettings(calibration=Calibration(temp_offset=1.0)))
    flags = [line["flags"] for line in await lines(services)]
    assert sorted(flags) == [[], ["comment_repeated"]]
