"""The reading by a plan is the plain way's, for every payload that a driver reads, whatever changes in it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from random import Random
from typing import Any, cast

import pytest

from gateway.clock import Clock
from gateway.domain.calibration import Calibration
from gateway.domain.device import Alias, Device, DeviceSettings
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.drivers import decode
from gateway.errors import DriverError
from gateway.intake.devices import DeviceRegistry
from gateway.intake.normalise import normalise
from gateway.intake.plan import LONGEST_BYTES, Plans
from gateway.intake.planning import Plan, make_plan, only_report
from gateway.store.protocol import Store
from gateway.store.records import Arrival
from gateway.store.sqlite.rows import row_of
from sample_devices.devices import KINDS, simulate
from sample_devices.wire.report import Place
from tests.cases import each
from tests.payloads import ispindel
from tests.pure.drivers.messages import ARRIVAL
from tests.pure.drivers.test_properties import HERE, SOUND, delivered

MOMENT = datetime.fromtimestamp(ARRIVAL, UTC)
SIMULATED = [
    payload
    for kind in KINDS
    for payload in delivered(kind, simulate(kind, Place(1), HERE).report(90_000.0, MOMENT))
]
OBJECTS = [payload for payload in (*SOUND, *SIMULATED) if payload.body.startswith(b"{")]

NUMBER = re.compile(rb'(?<=[:" ])-?[0-9]+(?:\.[0-9]+)?(?=[",} \r\n])')

ODD = (
    b"0", b"-0", b"0.0", b"1", b"-1", b"85", b"84.95", b"-127", b"185.0", b"45", b"29.9", b"25.5", b"31",
    b"1.0450", b"0.9961", b"0.97", b"1.26", b"1045.6", b"10450", b"9.9", b"5.5", b"5.6", b"99", b"301",
    b"1e2", b"480.5", b"999", b"290.15", b"null", b"NaN", b"1,045", b"00", b"45.185", b"655.35", b"1" * 33,
)  # fmt: skip

SETTINGS = (
    DeviceSettings(),
    DeviceSettings(gravity_unit="P", temp_unit="F"),
    DeviceSettings(
        calibration=Calibration(curve=(0.9, 0.003), gravity_offset=-0.002, temp_offset=0.5, corrected_at_c=20)
    ),
    DeviceSettings(calibration=Calibration(temp_offset=-0.3), excluded=((0, int(ARRIVAL) + 1800),)),
)

SHARED = ("gravity", "temp", "facts")
"""What a report that is used again does not promise."""


def new_registry() -> DeviceRegistry:
    return DeviceRegistry(cast(Store, None), cast(Clock, None))


def plainly(payload: Payload, devices: DeviceRegistry) -> tuple[Report, Device, Device, Reading] | None:
    """The only report, its device before and after it, and the reading; None for another payload."""
    try:
        decoded = decode(replace(payload, fields=None))
    except DriverError:
        return None
    if len(decoded.reports) != 1 or decoded.trouble is not None:
        return None
    report = decoded.reports[0]
    devices.recognise(report)
    tracked = devices.get(report.device_key)
    device = tracked.device if tracked is not None else Device.first_seen(report, 0)
    reading, inferred = normalise(report, device, payload)
    return report, device, device.learned(report, reading, inferred), reading


def compare(payload: Payload, devices: DeviceRegistry, plans: Plans, settings: DeviceSettings) -> bool:
    """Take a payload both ways; return whether it was ordinary. Its device learns as in the intake."""
    expected = plainly(payload, devices)
    found = plans.read(replace(payload, fields=None))
    if expected is None:
        assert found is None
        return False
    report, device, learned, reading = expected
    tracked = devices.get(report.device_key)
    if tracked is None or learned is not device:
        assert found is None
        devices.put(replace(learned, settings=settings))
        return False
    assert found is not None
    assert found.tracked is tracked
    for member in fields(Report):
        if member.name not in SHARED:
            assert getattr(found.report, member.name) == getattr(report, member.name), member.name
    assert found.reading[1:] == reading[1:]
    assert repr(found.reading[1:]) == repr(reading[1:])
    assert row(payload, report, found.reading._replace(oid=reading.oid)) == row(payload, report, reading)
    return True


def row(payload: Payload, report: Report, reading: Reading) -> Sequence[Any]:
    return row_of(Arrival(reading, report.device_key, payload.body, payload.channel))


def with_numbers(payload: Payload, numbers: Iterable[bytes]) -> Payload:
    left = iter(numbers)
    return replace(payload, body=NUMBER.sub(lambda _: next(left), payload.body))


def changed(payload: Payload, random: Random, odd: int) -> Iterator[Payload]:
    """The payload three times, then with other digits at the end of numbers, with odd numbers, and again."""
    numbers = NUMBER.findall(payload.body)
    for _ in range(3):
        yield payload
    for _ in range(4):
        yield with_numbers(payload, [nudged(number, random) for number in numbers])
    for _ in range(odd):
        place = random.randrange(len(numbers) or 1)
        some = [random.choice(ODD) if at == place else number for at, number in enumerate(numbers)]
        yield with_numbers(payload, some)
    yield with_numbers(payload, [nudged(number, random) for number in numbers])


def nudged(number: bytes, random: Random) -> bytes:
    return number[:-1] + b"%d" % random.randrange(10) if b"." in number else number


@each("settings, share, odd", [(SETTINGS[0], 1, 3), *((settings, 5, 2) for settings in SETTINGS[1:])])
def test_a_reading_by_plan_is_the_plain_one(settings: DeviceSettings, share: int, odd: int) -> None:
    random = Random(share)  # noqa: S311 - no secret
    for payload in OBJECTS[::share]:
        devices = new_registry()
        plans = Plans(devices)
        for place, one in enumerate(changed(payload, random, odd)):
            arrived = replace(one, received_at=payload.received_at + 600.25 * place)
            try:
                compare(arrived, devices, plans, settings)
            except AssertionError as error:
                error.add_note(f"{arrived}")
                raise


class Bench:
    """Plans for devices in memory, and the number of payloads that a driver was asked about."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.devices = new_registry()
        self.plans = Plans(self.devices)
        self.asked = self.made = 0
        monkeypatch.setattr("gateway.intake.plan.only_report", self._ask)
        monkeypatch.setattr("gateway.intake.plan.make_plan", self._make)

    def _ask(self, payload: Payload) -> Report | None:
        self.asked += 1
        return only_report(payload)

    def _make(self, *arguments: Any) -> Plan | list[int]:
        self.made += 1
        return make_plan(*arguments)

    def send(self, *payloads: Payload) -> int:
        """Compare the ways for each payload; return how many of them needed a driver."""
        before = self.asked
        for payload in payloads:
            compare(payload, self.devices, self.plans, DeviceSettings())
        return self.asked - before


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def posted(body: str, *, driver: str | None = "ispindel", **members: Any) -> Payload:
    return Payload(body.encode(), ARRIVAL, "http /ingest", driver=driver, source="192.0.2.7", **members)


SERVED = (
    "ispindel-http", "ispindel-mqtt", "ispindel-tcp", "ispindel-sg", "ispindel-fahrenheit", "gravitymon-http",
    "gravitymon-mqtt", "gravitymon-tcp", "gravitymon-gateway", "rapt-webhook", "rapt-meadtools",
    "tilt-pitch-stream", "emanometer-http", "brew-bubbles", "torpedo", "tiltbridge-mqtt",
    "brewers-friend-stream",
)  # fmt: skip


def test_payloads_of_one_device_need_no_driver_from_the_seventh_on(bench: Bench) -> None:
    for kind in SERVED:
        [payload] = delivered(kind, simulate(kind, Place(1), HERE).report(90_000.0, MOMENT))
        random = Random(1)  # noqa: S311 - no secret
        numbers = NUMBER.findall(payload.body)
        later = [with_numbers(payload, [nudged(number, random) for number in numbers]) for _ in range(5)]
        bench.send(*[payload] * 6)
        assert bench.send(*later) == 0, kind


def test_a_time_of_the_device_goes_into_the_reading_and_is_doubted_as_ever(bench: Bench) -> None:
    def at(seconds: float) -> Payload:
        return posted(ispindel().replace('"RSSI"', f'"timestamp":{int(ARRIVAL + seconds)},"RSSI"'))

    bench.send(*[at(-9)] * 8)
    assert bench.send(at(-900), at(-3), at(-86_400), at(60)) == 0
    assert bench.send(at(-40 * 86_400), at(86_400)) == 2
    found = bench.plans.read(at(-900))
    assert found is not None
    assert (found.reading.created_at, found.report.measured_at) == (int(ARRIVAL) - 900, int(ARRIVAL) - 900)


def test_devices_of_one_name_are_told_apart_by_a_number(bench: Bench) -> None:
    for _ in range(6):
        bench.send(
            *(posted(ispindel(number, name="spindle", gravity=f"1{number}.5")) for number in range(1, 6))
        )
    assert bench.send(*(posted(ispindel(number, name="spindle")) for number in range(1, 6))) == 0
    assert bench.send(posted(ispindel(9, name="spindle"))) == 1


def test_a_plan_ends_with_its_device_object(bench: Bench) -> None:
    payload = posted(ispindel())
    assert bench.send(*[payload] * 8) == 6
    tracked = bench.devices.get("ispindel:1")
    assert tracked is not None
    bench.devices.put(replace(tracked.device, settings=DeviceSettings(gravity_unit="G")))
    assert bench.send(payload) == 1
    bench.devices.remove(tracked.device)
    assert bench.plans.read(payload) is None


def test_a_device_that_was_merged_into_another_has_no_plan_of_its_own(bench: Bench) -> None:
    bench.send(*[posted(ispindel(1))] * 6, *[posted(ispindel(2))] * 6)
    into = bench.devices.get("ispindel:2")
    assert into is not None
    bench.devices.put(replace(into.device, aliases=(Alias("ispindel:1", "ispindel", "1"),)))
    found = bench.plans.read(posted(ispindel(1)))
    assert found is None or found.tracked is into
    bench.send(*[posted(ispindel(1))] * 6)


def test_what_never_comes_again_costs_no_plan(bench: Bench) -> None:
    for number in range(60):
        bench.send(posted(ispindel().replace('"RSSI"', f'"time":"12:{number}","RSSI"')))
    assert bench.made == 0
    kelvin = ispindel(2).replace('"C"', '"K"')
    for number in range(60):
        bench.send(posted(kelvin.replace("20.5", f"{280 + number / 8:.2f}")))
    assert 1 <= bench.made <= 6


def test_the_memory_of_plans_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.intake.plan.PLANS", 4)
    monkeypatch.setattr("gateway.intake.plan.FORMS", 2)
    for number in range(1, 40):
        bench.send(*[posted(ispindel(number))] * 3)
        bench.send(*[posted(ispindel(number).replace("RSSI", f"m{number % 5}"))] * 3)
    [forms] = bench.plans._forms.values()
    assert len(bench.plans._newer) <= 4
    assert len(bench.plans._older) <= 4
    assert len(forms.known) == 2


@each("body", ["", "[]", "[{}]", "{", '{"name":"x"}', "gravity=12", '{"name":"\\udcff","ID":1,"angle":45}'])
def test_what_is_not_ordinary_goes_the_long_way(body: str) -> None:
    payload = replace(posted(""), body=body.encode("utf-8", "surrogateescape"))
    assert Plans(new_registry()).read(payload) is None


def test_a_long_body_is_not_decoded(bench: Bench) -> None:
    bench.send(posted(ispindel()))
    assert bench.plans.read(posted(ispindel() + " " * LONGEST_BYTES)) is None
    assert bench.asked == 1
