"""The one way in: stored once, or in quarantine, and never an early yes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.payload import Payload
from gateway.drivers import DRIVERS
from gateway.errors import StoreUnavailable
from gateway.events import StoredNotices
from gateway.intake import devices as known
from gateway.intake import intake as intake_module
from gateway.intake.intake import Intake
from gateway.stats import Stats
from gateway.store.sqlite.store import SqliteStore
from tests.clock import FakeClock

SPINDLE: dict[str, Any] = {
    "name": "iSpindel042",
    "ID": 5312877,
    "angle": 52.3,
    "temperature": 19.8,
    "temp_units": "C",
    "battery": 3.96,
    "gravity": 12.48,
    "interval": 900,
    "RSSI": -67,
}


class Bench:
    """An intake on a real store, with a clock that stands still."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.clock = FakeClock()
        self.stats = Stats()
        self.notices = StoredNotices()
        self.intake = Intake(store, self.notices, self.stats, self.clock)

    def payload(self, body: bytes | dict[str, Any], **details: Any) -> Payload:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        defaults: dict[str, Any] = {"channel": "http /ingest", "source": "127.0.0.1"}
        return Payload(raw, self.clock.now(), **(defaults | details))

    async def take(self, body: bytes | dict[str, Any], **details: Any) -> None:
        await self.intake.take(self.payload(body, **details))

    async def lines(self) -> list[dict[str, Any]]:
        found = self.store.readings.json_lines(last=1000, device_id=None, session_id=None)
        return [json.loads(line) async for line in found]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = SqliteStore(tmp_path)
    await store.open()
    bench = Bench(store)
    await bench.intake.start()
    yield bench
    await store.close()


async def test_first_reading_registers_the_device_with_what_it_taught(bench: Bench) -> None:
    await bench.take(SPINDLE)
    (device,) = await bench.store.devices.all()
    assert (device.key, device.name, device.gravity_unit, device.interval_s, device.session_id) == (
        "ispindel:5312877", "iSpindel042", "P", 900, None,
    )  # fmt: skip


async def test_text_stays_as_sent_and_facts_stand_beside_it(bench: Bench) -> None:
    await bench.take(b'{"name":"x","ID":7,"angle":45.10,"temperature":20.50,"gravity":1.0450,"RSSI":-70}')
    (line,) = await bench.lines()
    assert (line["gravity"], line["gravity_unit"], line["temp"], line["temp_unit"]) == (
        "1.0450",
        "G",
        "20.50",
        "C",
    )
    assert (line["device_id"], line["angle"], line["rssi"], line["flags"]) == ("7", 45.1, -70, [])


async def test_the_same_delivery_twice_is_one_reading(bench: Bench) -> None:
    await bench.take(SPINDLE)
    bench.clock.advance(5)
    await bench.take(SPINDLE)
    assert len(await bench.lines()) == 1
    assert (bench.stats.received, bench.stats.stored, bench.stats.duplicates) == (2, 1, 1)


async def test_copies_that_arrive_together_wait_for_the_one_commit(bench: Bench) -> None:
    await asyncio.gather(*(bench.take(SPINDLE) for _ in range(20)))
    assert len(await bench.lines()) == 1


async def test_the_same_values_a_quarter_of_an_hour_later_are_a_new_reading(bench: Bench) -> None:
    await bench.take(SPINDLE)
    bench.clock.advance(900)
    await bench.take(SPINDLE)
    assert len(await bench.lines()) == 2


async def test_a_bridge_that_repeats_after_30_seconds_sends_new_readings(bench: Bench) -> None:
    tilt = {"SG": "1.045", "Temp": "68", "Color": "RED"}
    await bench.take(tilt)
    bench.clock.advance(30)
    await bench.take(tilt)
    assert len(await bench.lines()) == 2


async def test_a_delivery_is_still_known_after_a_restart(bench: Bench) -> None:
    await bench.take(SPINDLE)
    bench.clock.advance(5)
    bench.intake = Intake(bench.store, bench.notices, bench.stats, bench.clock)
    await bench.intake.start()
    await bench.take(SPINDLE)
    assert len(await bench.lines()) == 1


async def test_a_redelivery_is_known_by_its_packet_id_however_late(bench: Bench) -> None:
    await bench.take(SPINDLE, delivery="17")
    bench.clock.advance(86_400)
    await bench.take(SPINDLE, delivery="17", redelivered=True)
    assert len(await bench.lines()) == 1
    await bench.take(SPINDLE, delivery="18", redelivered=True)  # first copy never reached us
    assert len(await bench.lines()) == 2


async def test_two_devices_of_one_name_do_not_merge_and_a_new_name_does_not_split(bench: Bench) -> None:
    await bench.take(SPINDLE)
    await bench.take(SPINDLE | {"ID": 99})
    await bench.take(SPINDLE | {"name": "renamed", "angle": 50})
    devices = await bench.store.devices.all()
    assert [(d.stable_id, d.name) for d in devices] == [("5312877", "renamed"), ("99", "iSpindel042")]


async def test_a_plato_device_that_finishes_near_one_is_not_misread_as_sg(bench: Bench) -> None:
    await bench.take(SPINDLE)
    await bench.take(SPINDLE | {"gravity": 1.04})
    assert [line["gravity_unit"] for line in await bench.lines()] == ["P", "P"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\xff\x00garbage", "no known device"),
        (b"", "empty body"),
        (b'{"tilts":[{"color":"Red"}],"tiltbridge_junior":true}', "neither raw_gravity nor raw_temp"),
        (b'{"hello":"world"}', "no known device"),
        (b'{"a":' * 5000, "nested too deeply"),
        (b'{"name":"x","ID":"' + b"9" * 500 + b'","angle":1,"temperature":20}', "device id of more than"),
    ],
)
async def test_what_is_not_understood_goes_to_quarantine(bench: Bench, body: bytes, reason: str) -> None:
    taken = await bench.intake.take(bench.payload(body))
    assert taken.quarantined is not None
    assert reason in taken.quarantined
    assert await bench.store.quarantine.count() == 1
    assert await bench.lines() == []


async def test_a_driver_with_a_mistake_loses_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Payload) -> list[Any]:
        raise ZeroDivisionError

    monkeypatch.setattr(intake_module, "decode", broken)
    await bench.take(SPINDLE)
    assert await bench.store.quarantine.count() == 1


async def test_quarantine_has_one_line_for_each_device_and_reason(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "gateway.intake.intake")
    for source in ("192.168.1.37", "192.168.1.38"):
        for number in range(5):
            await bench.take(b"garbage %d" % number, source=source)
            bench.clock.advance(86_400)
    assert [line.split(" is in ")[0] for line in caplog.messages] == [
        "intake: http /ingest from 192.168.1.37",
        "intake: http /ingest from 192.168.1.38",
    ]
    await bench.take(b'{"name": "x"}', source="192.168.1.37", driver="tilt")
    assert len(caplog.messages) == 3


async def test_devices_beyond_the_bound_go_to_quarantine(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known, "DEVICES_MAX", 1)
    await bench.take(SPINDLE)
    await bench.take(SPINDLE | {"ID": 2})
    await bench.take(SPINDLE | {"angle": 2})
    assert len(await bench.lines()) == 2
    assert await bench.store.quarantine.count() == 1


async def test_no_yes_where_the_disk_takes_nothing_and_the_next_attempt_is_no_duplicate(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.take(SPINDLE)
    second = SPINDLE | {"angle": 51}
    with monkeypatch.context() as failing:
        failing.setattr(bench.store, "take", _refuse)
        with pytest.raises(StoreUnavailable):
            await bench.take(second)
    await bench.take(second)
    assert len(await bench.lines()) == 2


async def test_a_flag_that_cannot_be_stored_is_no_no_to_the_reading_that_was(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A spike is known as one when the next reading has come; that one is stored before the flag is."""
    monkeypatch.setattr(bench.store.payloads, "add_flag", _refuse)
    for number, gravity in enumerate([12.5] * 8 + [25.0, 12.4, 12.4]):
        await bench.take(SPINDLE | {"gravity": gravity, "angle": 52 + number})
        bench.clock.advance(900)
    assert "a flag of an earlier reading is not stored" in caplog.text
    assert len(await bench.lines()) == 11


async def _refuse(*_: Any) -> None:
    raise StoreUnavailable


async def test_lone_surrogates_and_nul_in_a_name_are_stored_as_replacement(bench: Bench) -> None:
    await bench.take(b'{"name":"a\\ud800b\\u0000c","ID":7,"angle":45,"temperature":20}')
    (line,) = await bench.lines()
    assert line["name"] == "a?b\ufffdc"


def test_every_driver_is_reachable_by_its_name() -> None:
    assert len({driver.name for driver in DRIVERS}) == len(DRIVERS)


def history(count: int, first: int = 0) -> list[dict[str, Any]]:
    """What pytilt has while nobody answers it, in local time."""
    return [
        {
            "color": "Red",
            "temp": 20.5,
            "gravity": 1050,
            "timestamp": f"2025-03-14T10:{n // 60:02}:{n % 60:02}",
        }
        for n in range(first, first + count)
    ]


async def test_a_list_that_comes_again_after_any_time_brings_its_news_only(bench: Bench) -> None:
    await bench.take(json.dumps(history(300)).encode(), hint="tilt")
    bench.clock.advance(3600)
    await bench.take(json.dumps(history(301)).encode(), hint="tilt")
    assert (bench.stats.stored, bench.stats.duplicates) == (301, 300)


async def test_a_list_without_times_is_news_after_the_window(bench: Bench) -> None:
    body = json.dumps([{"color": "Red", "temp": 20.5, "gravity": n} for n in (1050, 1049)]).encode()
    for _ in range(2):
        await bench.take(body, hint="tilt")
    bench.clock.advance(900)
    await bench.take(body, hint="tilt")
    assert (bench.stats.stored, bench.stats.duplicates) == (4, 2)


async def test_a_list_that_needs_repair_is_kept_part_by_part(bench: Bench) -> None:
    parts = [json.dumps(one)[:-1] + ', "x": nan,}' for one in history(100)]
    await bench.take(f"[{', '.join(parts)},]".encode(), hint="tilt")
    assert bench.stats.stored == 100
    [device] = await bench.store.devices.all()
    page = await bench.store.payloads.page(device.id, (0, 0), 100)
    assert [sent.raw for sent in page] == [f"[{part}]".encode() for part in parts]


async def test_of_a_list_only_what_is_not_understood_is_in_quarantine(bench: Bench) -> None:
    good, bad = SPINDLE, {"hello": "world"}
    await bench.take(json.dumps([good, bad]).encode())
    [item] = await bench.store.quarantine.newest(10)
    assert json.loads(item.body) == [bad]
    assert bench.stats.stored == 1


async def test_a_new_devices_list_is_judged_by_its_first_reading(bench: Bench) -> None:
    gravities = [12.1, *(1.1 + n / 1000 for n in range(20))]
    body = json.dumps([SPINDLE | {"gravity": one} for one in gravities]).encode()
    await bench.take(body)
    assert {line["gravity_unit"] for line in await bench.lines()} == {"P"}


async def test_counters_add_up_when_the_store_fails_amid_a_list(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, calls = bench.store.take, 0

    async def failing(*arrival: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 300:
            raise StoreUnavailable
        return await take(*arrival)

    monkeypatch.setattr(bench.store, "take", failing)
    with pytest.raises(StoreUnavailable):
        await bench.take(json.dumps(history(1000)).encode(), hint="tilt")
    stats = bench.stats
    assert stats.stored == 300
    assert stats.accepted == 1000 == stats.stored + stats.not_stored + stats.duplicates
