"""Fermentrack's generic push: its controllers and its gravity sensors in one body.

HTTP (thorrak/fermentrack external_push/models.py): POST without a Content-Type of `{"api_key","version",
"brewpi_devices":[{"name","internal_id","temp_format"
C/F,"control_mode","beer_temp","fridge_temp","room_temp",
"beer_setting","fridge_setting","controller_state","gravity"}],"gravity_sensors":[{"name","internal_id",
"sensor_type","gravity" SG,"temp","temp_format"}],"battery"}`; in the node-red style
`{"api_key","brewpi":[...]}`. What has no value is left out; a sensor's gravity 0 is, too. `battery` is that
of the last iSpindel in the list, whether that has a value or not. Its other pushes are custom streams and,
for Grainfather, iSpindel JSON.

Controllers and sensors are numbered each from 1, so the id of a controller says that it is one.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

TEMPERATURES: dict[str, fill.Unit | None] = {"beer_temp": None, "temp": None}

FURTHER_TEMPERATURES = {
    "fridge_temp": "aux_temp",
    "room_temp": "ext_temp",
    "beer_setting": "temp_target",
    "fridge_setting": "aux_temp_target",
}  # fmt: skip

WORDS = {"control_mode": "mode", "controller_state": "device_state", "sensor_type": "device_source"}


class List(NamedTuple):
    """One of the lists in a body, and the beginning of the ids in it."""

    key: str
    prefix: str = ""


LISTS = (List("brewpi_devices", "brewpi-"), List("brewpi", "brewpi-"), List("gravity_sensors"))


def parse(payload: Payload) -> list[Report]:
    """Return one report per controller and per sensor with a measurement."""
    source = wire.fields(payload)
    if not any(key in source for key, _ in LISTS):
        raise DriverError("neither brewpi_devices nor gravity_sensors nor brewpi")
    reports = [_report(prefix, entry) for prefix, entry in _entries(source)]
    for report in reports:
        fill.token(report, payload, source)
    _give_battery(reports, source)
    return [report for report in reports if fill.measures(report)]


def _entries(source: Fields) -> Iterator[tuple[str, Fields]]:
    for key, prefix in LISTS:
        entries = source.get(key)
        if isinstance(entries, list):
            for entry in entries:
                if isinstance(entry, dict):
                    yield prefix, entry


def _report(prefix: str, entry: Fields) -> Report:
    name = wire.text(entry, "name") or ""
    number = wire.text(entry, "internal_id")
    report = Report(stable_id=f"{prefix}{number}" if number else name, name=name)
    fill.gravity(report, entry, "gravity", unit="G", reason=fill.FORMAT_SAYS, required=False)
    fill.temperature(report, entry, TEMPERATURES, default=None)
    fill.further_temperatures(report, entry, FURTHER_TEMPERATURES)
    fill.words(report, entry, WORDS)
    return report


def _give_battery(reports: list[Report], source: Fields) -> None:
    for report in reversed(reports):
        if str(report.facts.get("device_source")).lower() == "ispindel":
            fill.facts(report, source, {"battery": "battery"})
            return


DRIVER = Driver("fermentrack", "Fermentrack", parse, paths=("/fermentrack",))
