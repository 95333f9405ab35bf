"""A wrong clock loses no reading, forwards none with a wrong date, and is made up for once time is known."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.clock import Machine
from gateway.domain.device import DeviceSettings
from gateway.domain.payload import Payload
from gateway.domain.target import Target
from gateway.errors import StoreUnavailable
from gateway.events import StoredNotices
from gateway.forward.forwarder import Forwarder
from gateway.intake import retiming as retiming_module
from gateway.intake.clock_check import BEHIND_WAIT_S, BOOT_WAIT_S, JUMP_WAIT_S, ClockMonitor
from gateway.intake.intake import Intake
from gateway.intake.replay import Replay
from gateway.intake.reprocess import Reprocessor
from gateway.intake.retiming import BETWEEN_BOOTS_MS, Base, Retiming, bases
from gateway.services.access import Access
from gateway.services.importing import Importing
from gateway.services.logins import Logins
from gateway.services.upkeep import Retention, Upkeep
from gateway.stats import Stats
from gateway.store.records import Boot
from gateway.store.sqlite.store import SqliteStore
from tests.brew import brew
from tests.clock import FakeClock
from tests.system.forward.bench import bench as forward_bench

NOW = 1_795_248_000.0
"""2026-11-21T08:00:00Z."""

HOUR_S, DAY_S, YEAR_S = 3_600, 86_400, 31_557_600
URL = "http://upstream.test"
UPSTREAM_ID = 77

JUNIOR = (
    b'{"tiltbridge_junior":true,"tilts":[{"color":"Red","temp_format":"C",'
    b'"smoothed_gravity":"1.04%d","smoothed_temp":"20.5"}]}'
)
"""Of a bridge that posts every few seconds."""

Line = dict[str, Any]


def spindle(number: int) -> bytes:
    """Readings that differ from one another."""
    said = {"name": "red", "ID": 7, "angle": 45, "temperature": 20.5, "temp_units": "C", "interval": 900}
    return json.dumps(said | {"gravity": 12 + number / 100, "comment": f"no. {number}"}).encode()


class Bench:
    """A gateway's parts on one data directory, on a machine whose boots and clock are in the test's hand."""

    def __init__(self, directory: Path) -> None:
        self.machine_files = directory / "machine"
        (self.machine_files / "etc").mkdir(parents=True)
        self.store = SqliteStore(directory)
        self.boots = 0
        self.numbers = 0

    async def boot(self, wall: float) -> None:
        """The machine starts with this wall time, and the gateway on it."""
        self.boots += 1
        (self.machine_files / "boot_id").write_text(f"boot {self.boots}\n")
        self.clock = FakeClock(wall)
        await self.start()

    async def start(self) -> None:
        """The gateway starts, the machine has been running."""
        machine = Machine(self.machine_files / "boot_id", self.machine_files / "timesync")
        self.stats, self.notices = Stats(), StoredNotices()
        self.time = ClockMonitor(self.store, self.notices, self.stats, self.clock, machine)
        self.intake = Intake(self.store, self.notices, self.stats, self.clock, self.time)
        self.reprocessor = Reprocessor(self.store, self.intake, self.notices)
        self.retiming = Retiming(self.store, self.reprocessor.turn)
        await self.time.start()
        await self.intake.start()
        await self.refresh()

    async def refresh(self) -> None:
        await self.time.step(self.retiming.settle)

    async def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        await self.refresh()

    async def set_clock(self, wall: float) -> None:
        self.clock.jump(wall - self.clock.now())
        await self.refresh()

    def network_time(self, *, came: bool) -> None:
        """A time service is at work; and whether it has set the clock just now."""
        folder = self.machine_files / "timesync"
        folder.mkdir(exist_ok=True)
        if came:
            (folder / "synchronized").touch()
            os.utime(folder / "synchronized", (self.clock.now(), self.clock.now()))

    def payload(self, body: bytes, **details: Any) -> Payload:
        return Payload(body, self.clock.now(), "http /ingest", source="127.0.0.1", **details)

    async def take(self, body: bytes | None = None, **details: Any) -> None:
        """A reading, different from all before it unless one is given."""
        self.numbers += 1
        await self.intake.take(self.payload(spindle(self.numbers) if body is None else body, **details))

    async def lines(self) -> list[Line]:
        found = self.store.readings.json_lines(last=1000, device_id=None, session_id=None)
        return [json.loads(line) async for line in found]

    async def times(self) -> list[tuple[float, list[str]]]:
        """Seconds from NOW and flags of every reading, in the order that the API gives them."""
        return [(seconds_of(line) - NOW, line["flags"]) for line in await self.lines()]

    async def forwarded_session(self) -> int:
        """A brew session that is forwarded, with the spindle in it."""
        await self.take()
        (device,) = await self.store.devices.all()
        session = await self.store.sessions.add(brew(upstream_id=UPSTREAM_ID))
        await self.store.devices.assign(device.id, session.id, 0)
        await self.store.targets.take_options([Target("upstream", URL, "/key", unnamed=True)])
        return session.id

    async def sent(self, session_id: int) -> list[Line]:
        """What a forwarder would be given if it asked now, whatever it was told; that has arrived then."""
        batch = await self.store.outbox.begin(URL, session_id, 500)
        if batch is None:
            return []
        await self.store.outbox.settle(batch)
        return [json.loads(row) for row in batch.rows]


def seconds_of(line: Line) -> float:
    return datetime.fromisoformat(line["created_at"]).timestamp()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path)
    await bench.store.open()
    await bench.store.keys.owner(int(NOW))
    yield bench
    await bench.store.close()


async def test_a_good_clock_leaves_no_trace(bench: Bench) -> None:
    await bench.boot(NOW)
    await bench.take()
    assert await bench.times() == [(0, [])]
    assert bench.time.held_back() is None
    assert "clock" not in bench.stats.parts


async def test_c2_readings_of_1970_are_taken_and_put_right_when_the_clock_is_set(bench: Bench) -> None:
    await bench.boot(5)
    await bench.take()
    await bench.wait(60)
    await bench.take()
    (first, second) = await bench.lines()
    assert first["created_at"] == "1970-01-01T00:00:05+00:00"
    assert first["flags"] == second["flags"] == ["clock_suspect"]
    assert "1970-01-01" in (bench.time.held_back() or "")
    assert "timedatectl" in bench.stats.parts["clock"]
    assert bench.stats.in_trouble == {"clock"}
    await bench.set_clock(NOW + 60)
    assert await bench.times() == [(0, ["clock_corrected"]), (60, ["clock_corrected"])]
    await bench.wait(900)
    await bench.take()
    assert (await bench.times())[2] == (960, [])
    assert bench.time.held_back() is None
    assert bench.stats.parts["clock"] == "ok"
    assert bench.stats.in_trouble == set()


async def test_c2_everything_that_says_a_time_says_the_right_one(bench: Bench) -> None:
    await bench.boot(5)
    await bench.take()
    await bench.set_clock(NOW)
    (line,) = await bench.lines()
    assert int(line["_id"]["$oid"][:8], 16) == NOW
    assert float(line["interval"]) == pytest.approx(NOW / DAY_S + 25_569)
    (device,) = await bench.store.devices.all()
    assert device.first_seen_at == NOW
    assert await bench.store.payloads.holds(device.key, spindle(1), int(NOW * 1000))


async def test_c2_a_clock_of_1970_is_never_trusted_for_having_waited(bench: Bench) -> None:
    await bench.boot(5)
    session = await bench.forwarded_session()
    await bench.wait(400 * DAY_S)
    assert bench.time.held_back() is not None
    assert await bench.sent(session) == []


async def test_nothing_is_sent_from_the_first_suspect_reading_on_and_all_of_it_afterwards(
    bench: Bench,
) -> None:
    await bench.boot(NOW)
    session = await bench.forwarded_session()
    bench.clock.jump(10 * YEAR_S)
    bench.clock.advance(900)
    await bench.take()
    assert [row["comment"] for row in await bench.sent(session)] == ["no. 1"]
    await bench.set_clock(NOW + 900)
    assert [(row["comment"], seconds_of(row) - NOW) for row in await bench.sent(session)] == [("no. 2", 900)]


@pytest.mark.parametrize("jump", [HOUR_S, -2 * HOUR_S, 10 * YEAR_S, -10 * YEAR_S])
async def test_c1_a_jump_is_noticed_at_the_next_reading_and_is_undone_by_the_jump_back(
    bench: Bench, jump: float
) -> None:
    await bench.boot(NOW)
    await bench.take()
    bench.clock.jump(jump)
    bench.clock.advance(900)
    await bench.take()
    assert sorted(await bench.times()) == sorted([(0, []), (900 + jump, ["clock_suspect"])])
    assert (bench.time.held_back() or "").startswith("waits for the clock: it says")
    bench.clock.advance(900)
    await bench.set_clock(NOW + 1800)
    await bench.take()
    assert await bench.times() == [(0, []), (900, ["clock_corrected"]), (1800, [])]
    assert bench.time.held_back() is None


@pytest.mark.parametrize("jump", [HOUR_S, -2 * HOUR_S, 10 * YEAR_S, -10 * YEAR_S])
async def test_c1_copies_are_known_as_copies_and_news_as_news_across_a_jump(
    bench: Bench, jump: float
) -> None:
    await bench.boot(NOW)
    await bench.take(spindle(1))
    bench.clock.jump(jump)
    bench.clock.advance(5)
    await bench.take(spindle(1))
    assert (bench.stats.stored, bench.stats.duplicates) == (1, 1)
    bench.clock.jump(60 - jump)  # 60 s that did not pass
    await bench.take(spindle(1))
    assert bench.stats.duplicates == 2
    bench.clock.advance(60)
    await bench.take(spindle(1))
    assert bench.stats.stored == 2


@pytest.mark.parametrize("jump", [HOUR_S, -2 * HOUR_S])
async def test_c1_what_is_thinned_to_one_a_minute_stays_so_across_a_jump(bench: Bench, jump: float) -> None:
    await bench.boot(NOW)
    for number, seconds in enumerate((0, 30, 29)):
        bench.clock.advance(seconds)
        bench.clock.jump(jump)
        await bench.take(JUNIOR % number, driver="tiltbridge_junior")
    assert (bench.stats.stored, bench.stats.thinned) == (1, 2)
    bench.clock.advance(1)
    await bench.take(JUNIOR % 9, driver="tiltbridge_junior")
    assert (bench.stats.stored, bench.stats.thinned) == (2, 2)


async def test_a_forward_jump_is_believed_after_an_hour_and_its_readings_stay_as_they_are(
    bench: Bench,
) -> None:
    await bench.boot(NOW)
    await bench.set_clock(NOW + DAY_S)
    await bench.take()
    (before,) = await bench.lines()
    await bench.wait(JUMP_WAIT_S - 1)
    assert bench.time.held_back() is not None
    await bench.wait(1)
    assert bench.time.held_back() is None
    assert await bench.lines() == [before | {"flags": []}]


async def test_a_clock_behind_what_is_stored_is_suspect_for_a_day(bench: Bench) -> None:
    await bench.boot(NOW)
    await bench.take()
    await bench.boot(NOW - 3 * DAY_S)
    assert "2026-11-21 08:00 UTC already" in (bench.time.held_back() or "")
    await bench.take()
    await bench.wait(BEHIND_WAIT_S - 1)
    assert bench.time.held_back() is not None
    await bench.wait(1)
    assert bench.time.held_back() is None
    assert [flags for _, flags in await bench.times()] == [[], []]


async def test_two_minutes_behind_are_no_reason(bench: Bench) -> None:
    await bench.boot(NOW)
    await bench.take()
    await bench.boot(NOW - 119)
    assert bench.time.held_back() is None


async def test_network_time_that_is_switched_on_is_waited_for_and_what_was_right_stays(bench: Bench) -> None:
    bench.clock = FakeClock(NOW)
    bench.network_time(came=False)
    await bench.boot(NOW)
    await bench.take()
    (before,) = await bench.lines()
    assert before["flags"] == ["clock_suspect"]
    assert "network time" in (bench.time.held_back() or "")
    bench.clock.advance(40)
    bench.network_time(came=True)
    await bench.refresh()
    assert bench.time.held_back() is None
    assert await bench.lines() == [before | {"flags": []}]


async def test_a_stale_clock_at_the_start_is_put_right_by_network_time(bench: Bench) -> None:
    bench.clock = FakeClock(NOW)
    bench.network_time(came=False)
    await bench.boot(NOW - 3 * DAY_S)
    await bench.take()
    bench.clock.advance(HOUR_S - 1500)
    bench.clock.jump(3 * DAY_S)
    bench.network_time(came=True)
    await bench.refresh()
    assert await bench.times() == [(0, ["clock_corrected"])]


async def test_network_time_that_never_comes_is_waited_for_an_hour_after_the_boot(bench: Bench) -> None:
    bench.clock = FakeClock(NOW)
    bench.network_time(came=False)
    await bench.boot(NOW)
    await bench.wait(BOOT_WAIT_S - bench.clock.monotonic() - 1)
    assert bench.time.held_back() is not None
    await bench.wait(1)
    assert bench.time.held_back() is None


async def test_a_jump_that_network_time_explains_is_no_suspicion(bench: Bench) -> None:
    await bench.boot(NOW)
    bench.network_time(came=True)
    await bench.refresh()
    bench.clock.jump(HOUR_S)
    bench.network_time(came=True)
    await bench.take()
    assert await bench.times() == [(HOUR_S, [])]


async def test_a_jump_by_hand_is_not_explained_by_an_earlier_synchronisation(bench: Bench) -> None:
    await bench.boot(NOW)
    bench.network_time(came=True)
    await bench.refresh()
    await bench.wait(600)
    bench.clock.jump(20 * 60)
    await bench.take()
    assert await bench.times() == [(1800, ["clock_suspect"])]


async def test_c4_leap_seconds_and_slewing_are_no_jumps(bench: Bench) -> None:
    await bench.boot(NOW)
    for _ in range(200):
        bench.clock.jump(-1)
        await bench.wait(60)
    await bench.take()
    assert await bench.times() == [(200 * 59, [])]


async def test_c3_readings_of_two_boots_without_time_keep_order_and_spacing(bench: Bench) -> None:
    await bench.boot(NOW)
    await bench.take()
    for started in (5, 5, 7):  # the last of them is the boot that learns the time
        await bench.boot(started)
        for _ in range(3):
            await bench.wait(300)
            await bench.take()
    await bench.set_clock(NOW + DAY_S)
    lines = await bench.lines()
    assert [line["comment"] for line in lines] == [f"no. {number}" for number in range(1, 11)]
    assert [line["flags"] for line in lines] == [
        [],
        *[["clock_estimated"]] * 6,
        *[["clock_corrected"]] * 3,
    ]
    times = [seconds_of(line) - NOW for line in lines]
    assert [times[place] - times[place - 1] for place in (2, 3, 5, 6, 8, 9)] == [300] * 6
    assert times[9] == DAY_S
    booted = DAY_S - 900 - 1000  # FakeClock starts 1000 s after the boot
    assert 0 < times[1] < times[3] < times[4] < times[6] < booted <= times[7]


async def test_c3_boots_follow_one_another_back_from_the_known_one() -> None:
    boots = [Boot(4, None, 5_000), Boot(3, None, 70_000), Boot(2, 400_000, 9_000), Boot(1, None, 30_000)]
    assert list(bases(boots, 4, 1_000_000)) == [
        Base(4, 1_000_000, False),
        Base(3, 1_000_000 - 70_000 - BETWEEN_BOOTS_MS, True),
        Base(2, 400_000, False),
        Base(1, 400_000 - 30_000 - BETWEEN_BOOTS_MS, True),
    ]


async def test_a_boot_that_ended_just_after_its_clock_was_known_is_put_right_exactly(bench: Bench) -> None:
    await bench.boot(5)
    await bench.take()
    bench.clock.jump(NOW - 5)

    async def power_cut(*_: object) -> int:
        raise ConnectionAbortedError

    with pytest.raises(ConnectionAbortedError):
        await bench.time.step(power_cut)
    await bench.boot(NOW + DAY_S)
    assert await bench.times() == [(0, ["clock_corrected"])]


async def test_a_restart_of_the_gateway_alone_changes_nothing(bench: Bench) -> None:
    await bench.boot(5)
    await bench.take()
    await bench.wait(60)
    await bench.start()
    assert bench.time.held_back() is not None
    await bench.take()
    await bench.set_clock(NOW + 60)
    assert await bench.times() == [(0, ["clock_corrected"]), (60, ["clock_corrected"])]


async def test_a_delivery_in_1970_is_known_again_after_a_restart_and_none_of_another_boot(
    bench: Bench,
) -> None:
    await bench.boot(5)
    await bench.take(spindle(1))
    bench.clock.advance(5)
    await bench.start()
    await bench.take(spindle(1))
    assert bench.stats.duplicates == 1
    await bench.boot(5)
    await bench.take(spindle(1))
    assert (bench.stats.stored, bench.stats.duplicates) == (1, 0)


async def test_a_jump_while_the_gateway_was_down_is_noticed(bench: Bench) -> None:
    await bench.boot(NOW)
    bench.clock.jump(HOUR_S)
    bench.clock.advance(60)
    await bench.start()
    await bench.take()
    assert await bench.times() == [(HOUR_S + 60, ["clock_suspect"])]
    await bench.set_clock(NOW + 60)
    assert await bench.times() == [(60, ["clock_corrected"])]


async def test_what_was_stamped_before_a_jump_and_stored_after_it_keeps_its_time(bench: Bench) -> None:
    await bench.boot(NOW)
    payload = bench.payload(spindle(1))
    bench.clock.advance(3)
    bench.clock.jump(-2 * HOUR_S)
    await bench.intake.take(payload)
    assert await bench.times() == [(0, ["clock_suspect"])]
    await bench.set_clock(NOW + 3)
    assert await bench.times() == [(0, [])]


@pytest.mark.parametrize("off", [-YEAR_S, YEAR_S, 95 * YEAR_S])
async def test_a_clock_that_is_read_wrong_once_dates_no_reading(bench: Bench, off: float) -> None:
    """Timers of some small boards do that; what is read before and after says nothing of it."""
    await bench.boot(NOW)
    session = await bench.forwarded_session()
    payload = bench.payload(spindle(90))
    await bench.intake.take(replace(payload, received_at=payload.received_at + off))
    assert len(await bench.sent(session)) == 1
    await bench.refresh()
    (sent,) = await bench.sent(session)
    assert seconds_of(sent) == NOW
    assert await bench.times() == [(0, []), (0, ["clock_corrected"])]


async def test_what_waited_for_the_store_for_an_hour_keeps_its_time(bench: Bench) -> None:
    await bench.boot(NOW)
    payload = bench.payload(spindle(90))
    await bench.wait(HOUR_S)
    await bench.intake.take(payload)
    assert await bench.times() == [(0, [])]


async def test_what_was_stamped_in_1970_and_stored_when_the_clock_was_known_is_put_right(
    bench: Bench,
) -> None:
    await bench.boot(5)
    payload = bench.payload(spindle(1))
    bench.clock.advance(3)
    bench.clock.jump(NOW - 5)
    await bench.intake.take(payload)
    assert bench.time.held_back() is not None
    await bench.refresh()
    assert await bench.times() == [(0, ["clock_corrected"])]


async def test_a_reading_whose_commit_comes_after_the_others_were_put_right_is_put_right_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.boot(5)
    take, may_go_on = bench.store.take, asyncio.Event()

    async def slow(*arrival: Any) -> Any:
        await may_go_on.wait()
        return await take(*arrival)

    monkeypatch.setattr(bench.store, "take", slow)
    taking = asyncio.create_task(bench.take())
    await asyncio.sleep(0)
    await bench.set_clock(NOW)
    may_go_on.set()
    await taking
    assert bench.time.held_back() is not None
    await bench.refresh()
    assert await bench.times() == [(0, ["clock_corrected"])]


async def test_a_device_that_knows_the_time_is_believed_once_we_know_it(bench: Bench) -> None:
    told = [int(NOW) - 5000, int(NOW) - 4000]
    lines = "\n".join(f"measurement,device=a1 gravity=1.0{n}0,temp=20.5 {at}" for n, at in enumerate(told, 4))
    await bench.boot(5)
    await bench.take(lines.encode(), driver="influx")
    assert {flags[0] for _, flags in await bench.times()} == {"clock_suspect"}
    await bench.set_clock(NOW)
    lines_now = await bench.lines()
    assert [(seconds_of(line) - NOW, line["gravity"]) for line in lines_now] == [
        (-5000, "1.040"),
        (-4000, "1.050"),
    ]


@pytest.mark.parametrize("zone", ["", "Z"])
async def test_a_list_keeps_its_distances_when_its_times_are_put_right(bench: Bench, zone: str) -> None:
    sent = [
        {"color": "Red", "temp": 20, "gravity": 1050 - hour, "timestamp": f"2026-11-21T0{hour}:00:00{zone}"}
        for hour in (6, 7, 8)
    ]
    await bench.boot(5)
    await bench.take(json.dumps(sent).encode(), hint="tilt")
    await bench.set_clock(NOW)
    found = sorted((seconds_of(line) - NOW, line["gravity"]) for line in await bench.lines())
    assert found == [(-2 * HOUR_S, "1.044"), (-HOUR_S, "1.043"), (0, "1.042")]


async def test_a_repeated_comment_stays_one_when_its_time_is_put_right(bench: Bench) -> None:
    await bench.boot(5)
    for place in (1, 2):
        form = f"Timepoint=43984.{place}&Temp=68&SG=1.045&Color=RED&Comment=dry%20hop"
        await bench.take(form.encode(), driver="tilt")
    await bench.set_clock(NOW)
    assert sorted("comment_repeated" in flags for _, flags in await bench.times()) == [False, True]


async def test_c4_a_device_clock_that_is_wrong_by_years_is_kept_and_not_used(bench: Bench) -> None:
    await bench.boot(5)
    await bench.take(
        f"measurement,device=a1 gravity=1.040,temp=20.5 {int(NOW) - YEAR_S}".encode(), driver="influx"
    )
    await bench.set_clock(NOW)
    (line,) = await bench.lines()
    assert (seconds_of(line), line["flags"]) == (NOW, ["clock_suspect", "clock_corrected"])
    assert line["device_time"] == int(NOW) - YEAR_S


async def test_c4_timepoint_of_a_tilt_stays_as_sent(bench: Bench) -> None:
    body = b"Timepoint=43984.5&Temp=68&SG=1.045&Beer=Porter&Color=RED&Comment="
    await bench.boot(5)
    await bench.take(body, driver="tilt")
    await bench.set_clock(NOW)
    (line,) = await bench.lines()
    assert (line["interval"], seconds_of(line)) == ("43984.5", NOW)


async def test_what_was_excluded_and_calibrated_is_so_at_the_right_time(bench: Bench) -> None:
    await bench.boot(NOW)
    await bench.take()
    (device,) = await bench.store.devices.all()
    settings = DeviceSettings(excluded=((int(NOW) + 500, int(NOW) + 1000),))
    await bench.reprocessor.configure(device, settings, lambda _: None)
    await bench.boot(5)
    await bench.take()
    await bench.set_clock(NOW + 900)
    assert (await bench.times())[1] == (900, ["excluded", "clock_corrected"])


async def test_reading_it_again_under_other_settings_keeps_what_is_known_of_its_time(bench: Bench) -> None:
    await bench.boot(5)
    await bench.take()
    (device,) = await bench.store.devices.all()
    await bench.reprocessor.configure(device, DeviceSettings(temp_unit="F"), lambda _: None)
    assert [line["flags"] for line in await bench.lines()] == [["clock_suspect"]]
    await bench.set_clock(NOW)
    await bench.reprocessor.configure(device, DeviceSettings(temp_unit="C"), lambda _: None)
    assert await bench.times() == [(0, ["clock_corrected"])]


async def test_a_payload_in_quarantine_gets_its_right_arrival_and_is_not_replayed_before(
    bench: Bench,
) -> None:
    await bench.boot(5)
    await bench.take(b'{"hello":"world"}')
    (item,) = await bench.store.quarantine.newest(9)
    replay = Replay(bench.store, bench.intake, bench.notices)
    assert "clock" in (await replay.settle(item) or "")
    await bench.wait(60)
    await bench.set_clock(NOW + 60)
    (item,) = await bench.store.quarantine.newest(9)
    assert item.received_at == NOW * 1000
    assert "clock" not in (await replay.settle(item) or "")


async def test_the_checksum_follows_the_times_and_damage_stays_visible(bench: Bench) -> None:
    await bench.boot(5)
    session = await bench.forwarded_session()
    await bench.wait(900)
    await bench.take()
    await bench.store._writer.run(
        lambda connection: (
            connection.execute("UPDATE readings SET gravity = '1' WHERE comment = 'no. 1'") and None
        )
    )
    await bench.set_clock(NOW)
    assert bench.time.held_back() is None
    assert [row["comment"] for row in await bench.sent(session)] == ["no. 2"]
    (kept,) = await bench.store.quarantine.newest(9)
    assert "checksum" in kept.reason


async def test_many_readings_are_put_right_in_pages(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retiming_module, "PAGE_READINGS", 2)
    await bench.boot(5)
    for _ in range(5):
        await bench.take()
        await bench.wait(900)
    await bench.set_clock(NOW + 4500)
    assert await bench.times() == [(900 * n, ["clock_corrected"]) for n in range(5)]


async def test_no_reading_is_deleted_for_its_age_while_the_clock_is_suspect(bench: Bench) -> None:
    await bench.boot(NOW)
    looked: list[float] = []

    class Watched(Retention):
        async def run_once(self, now: float) -> int:
            looked.append(now)
            return 0

    await bench.set_clock(NOW + 10 * YEAR_S)
    retention = Watched(bench.store, 30)
    access = Access(bench.store, bench.clock)
    logins = Logins(bench.store, access, bench.clock)
    upkeep = Upkeep(
        bench.store, access, logins, bench.intake, bench.stats, bench.clock, retention,
        held_back=bench.time.held_back,
    )  # fmt: skip
    await upkeep._retain()
    assert looked == []
    assert "clock" in bench.stats.parts["retention"]
    assert "retention" in bench.stats.in_trouble
    await bench.set_clock(NOW)
    await upkeep._retain()
    assert looked == [NOW]
    assert "retention" not in bench.stats.in_trouble


async def test_a_machine_without_a_boot_id_counts_each_process_as_a_boot(tmp_path: Path) -> None:
    first, second = Machine(tmp_path / "none", tmp_path), Machine(tmp_path / "none", tmp_path)
    assert first.boot != second.boot
    assert first.synchronised_at() is None


async def test_an_import_without_times_is_put_off_while_the_clock_is_suspect(bench: Bench) -> None:
    await bench.boot(5)
    session = await bench.store.sessions.add(brew())
    importing = Importing(bench.store, bench.notices, bench.stats, bench.clock, bench.time.held_back)
    timeless = b'[{"gravity":"1.050","gravity_unit":"G"}]'
    timed = b'[{"gravity":"1.050","gravity_unit":"G","created_at":"2026-11-20T08:00:00Z"}]'
    with pytest.raises(StoreUnavailable, match="created_at"):
        await importing.run(session, timeless, "json", "", reset=False)
    assert await importing.run(session, timed, "json", "", reset=False) == 1
    await bench.set_clock(NOW)
    assert await importing.run(session, timeless, "json", "", reset=False) == 1
    assert await bench.times() == [(-DAY_S, []), (0, [])]


async def test_a_target_says_that_it_waits_for_the_clock_and_goes_on_when_the_bell_rings(
    tmp_path: Path,
) -> None:
    why: list[str] = ["waits for the clock: it says 1970"]
    async with forward_bench(tmp_path) as one:
        forwarder = Forwarder(
            one.store.outbox, one.target, one.notices, one.stats, one.clock, one.settings,
            held_back=lambda: why[0] if why else None,
        )  # fmt: skip
        await one.arrive(await one.session(), [1])
        running = asyncio.create_task(forwarder.run())
        try:
            one.notices.notify()
            await one.clock.run_until(lambda: one.stats.parts.get(f"upstream {one.target.name}") == why[0])
            assert one.arrived() == []
            why.clear()
            one.notices.notify()
            await one.clock.run_until(lambda: one.arrived() == [1])
            await one.clock.run_until(lambda: one.stats.parts[f"upstream {one.target.name}"] == "ok")
        finally:
            running.cancel()
            await asyncio.wait([running])


async def test_a_disk_that_is_full_when_the_gateway_starts_is_no_reason_not_to_judge_the_clock(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(bench.store._database.room, "refusal", lambda: "the disk is full")
        await bench.boot(5)
        assert "1970" in (bench.time.held_back() or "")
        with pytest.raises(StoreUnavailable):
            await bench.take()
    await bench.refresh()
    await bench.take()
    await bench.set_clock(NOW)
    assert await bench.times() == [(0, ["clock_corrected"])]
    assert bench.stats.accepted == bench.stats.stored == 1


async def test_a_reading_that_is_not_understood_any_more_is_moved_as_it_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Payload) -> None:
        raise ZeroDivisionError

    await bench.boot(5)
    await bench.take()
    monkeypatch.setattr(retiming_module, "decode", broken)
    await bench.set_clock(NOW)
    assert await bench.times() == [(0, ["clock_corrected"])]
    (line,) = await bench.lines()
    assert float(line["interval"]) == pytest.approx(NOW / DAY_S + 25_569)
