"""The reading by a plan is the plain way's, for every payload that a driver reads, whatever changes in it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import pairwise
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
OBJECTS = [payload for payload in (*SOUND, *SIMULATED[::3]) if payload.body.startswith(b"{")]

NUMBER = re.compile(rb'(?<=[:" ])-?[0-9]+(?:\.[0-9]+)?(?=[",} \r\n])')

MEMBER = re.compile(rb'"[^"\\]*"\s*:\s*(?:"[^"\\]*"|[^,{}\[\]"\s]+)(?=\s*[,}])')

OTHER_UNITS = {
    b'"C"': b'"F"',
    b'"F"': b'"K"',
    b'"K"': b'"C"',
    b'"G"': b'"P"',
    b'"P"': b'"G"',
    b'"SG"': b'"P"',
}
UNIT = re.compile(b"|".join(OTHER_UNITS))

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
    for body in otherwise(payload.body, random):
        yield replace(payload, body=body)
    yield with_numbers(payload, [nudged(number, random) for number in numbers])


def otherwise(body: bytes, random: Random) -> Iterator[bytes]:
    """The body without a member, in another order, in other units, under another name."""
    members = MEMBER.findall(body)
    if members:
        gone = random.choice(members)
        yield body.replace(gone + b",", b"").replace(b"," + gone, b"")
        yield MEMBER.sub(lambda _: members.pop(), body)
    yield UNIT.sub(lambda unit: OTHER_UNITS[unit[0]], body)
    yield body.replace(b'"name":"', b'"name":"x').replace(b'"name": "', b'"name": "x')


def nudged(number: bytes, random: Random) -> bytes:
    return number[:-1] + b"%d" % random.randrange(10) if b"." in number else number


@each("settings, share, odd", [(SETTINGS[0], 1, 1), *((settings, 10, 2) for settings in SETTINGS[1:])])
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


GRAVITIES = (
    "-25.5", "-24.5", "-5.5", "-4.5", "-1.5", "-0.5", "0.75", "0.85", "0.89", "0.91", "0.94", "0.96",
    "0.9955", "0.9961", "0.997", "1.0450", "1.24", "1.26", "1.29", "1.31", "1.45", "1.55", "9.55",
    "12.45", "12.55", "44.5", "45.5", "59.5", "60.5", "899.5", "900.5", "949.5", "950.5", "1249.5",
    "1250.5", "9499.5", "9500.5", "12499.5", "12500.5",
)  # fmt: skip
TEMPERATURES = (
    "-130.5", "-127.03", "-126.5", "-100.5", "-99.5", "-58.5", "-57.5", "-50.5", "-49.5", "-0.5", "0.5",
    "24.5", "25.5", "26.5", "29.5", "30.5", "44.5", "45.5", "84.91", "84.97", "85.03", "85.08", "146.1",
    "146.18", "148.7", "149.5", "150.5", "184.85", "184.91", "184.97", "185.03", "185.09", "185.15",
    "249.5", "250.5", "299.5", "300.5", "301.5", "302.5", "329.5", "330.5", "358.12", "358.18", "449.5",
    "450.5", "899.5", "900.5",
)  # fmt: skip
FURTHER = (
    "-120.5", "-119.5", "-0.5", "0.5", "0.85", "0.95", "1.25", "1.35", "1.95", "2.05", "5.45", "5.55",
    "45.17", "45.18", "45.19", "45.2", "85.03", "89.5", "90.5", "179.5", "180.5", "655.2", "655.3",
    "655.5", "65530.5", "65540.5",
)  # fmt: skip
"""Figures on both sides of all at which a driver or `normalise` decides otherwise."""

SWEPT = (
    ("ispindel", '{"name":"s","ID":"a","angle":45.1,"temperature":20.5,"gravity":%s}', GRAVITIES),
    ("rapt", '{"device_id":"a","temperature":20.5,"gravity":%s}', GRAVITIES),
    ("brewpiless", '{"id":"a","beerTemp":18.4,"gravity":%s,"plato":-1}', GRAVITIES),
    ("tilt", '{"Color":"RED","Temp":68.5,"SG":%s}', GRAVITIES),
    ("blynk", '{"token":"a","v1":20.5,"v2":%s,"v3":45.1}', GRAVITIES),
    ("tilt", '{"Color":"RED","Temp":%s,"SG":10.45}', TEMPERATURES),
    ("ispindel", '{"name":"s","ID":"a","angle":45.1,"temperature":%s,"gravity":12.5}', TEMPERATURES),
    ("ispindel", '{"name":"s","ID":"a","temperature":%s,"temp_units":"F","gravity":12.5}', TEMPERATURES),
    ("stream", '{"name":"s","temp":%s,"gravity":1.05}', TEMPERATURES),
    ("stream", '{"name":"s","temp":66.5,"temp_unit":"F","ext_temp":%s,"gravity":1.05}', TEMPERATURES),
    ("ispindel", '{"name":"s","ID":"a","angle":45.1,"temperature":20.5,"battery":%s}', FURTHER),
    ("brewpiless", '{"id":"a","beerTemp":18.4,"auxTemp":18.6,"gravity":1.05,"tiltValue":%s}', FURTHER),
    ("blynk", '{"token":"a","v1":20.5,"v2":12.5,"v3":%s}', FURTHER),
    (
        "thingspeak",
        '{"api_key":"a","field1":1.05,"field2":20.5,"field3":45.1,"field4":%s,"field5":-65}',
        FURTHER,
    ),
    (
        "thingspeak",
        '{"api_key":"a","field1":1.05,"field2":20.5,"field3":45.1,"field4":3.9,"field5":%s}',
        FURTHER,
    ),
    ("pressuremon", '{"name":"s","id":"a","temperature":4.5,"pressure":0.8,"pressure1":%s}', FURTHER),
)


def test_no_plan_goes_beyond_a_figure_at_which_a_rule_changes() -> None:
    for driver, body, figures in SWEPT:
        known = Plans(new_registry())._forms
        for one, other in pairwise((*figures[:2], *figures)):
            for first, second in ((one, other), (other, one)):
                devices = new_registry()
                plans = Plans(devices)
                plans._forms = known  # made known by the first pair, which comes again
                for figure in (first, first, first, first, second):
                    try:
                        compare(posted(body % figure, driver=driver), devices, plans, DeviceSettings())
                    except AssertionError as error:
                        error.add_note(f"{body % first}, then {second}")
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


def test_ever_new_texts_cost_little_more_than_the_plain_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.plans, "_credit", 100)
    for number in range(150):
        bench.send(*[posted(ispindel().replace('"RSSI"', f'"time":"12:{number}","RSSI"'))] * 2)
    assert 5 <= bench.made <= 40


@each("body", ["", "[]", "[{}]", "{", '{"name":"x"}', "gravity=12", '{"name":"\\udcff","ID":1,"angle":45}'])
def test_what_is_not_ordinary_goes_the_long_way(body: str) -> None:
    payload = replace(posted(""), body=body.encode("utf-8", "surrogateescape"))
    assert Plans(new_registry()).read(payload) is None


def test_a_long_body_is_not_decoded(bench: Bench) -> None:
    bench.send(posted(ispindel()))
    assert bench.plans.read(posted(ispindel() + " " * LONGEST_BYTES)) is None
    assert bench.asked == 1
