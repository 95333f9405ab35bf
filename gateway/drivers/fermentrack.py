"""Fermentrack's generic push: its controllers and its gravity sensors in one body.

HTTP (thorrak/fermentrack external_push/models.py): POST without a Content-Type of `{"api_key","version",
"brewpi_devices":[{"name","internal_id","temp_format"
C/F,"control_mode","beer_temp","fridge_temp","room_temp",
"beer_setting","fridge_setting","controller_state","gravity"}],"gravity_sensors":[{"name","internal_id",
"sensor_type","gravity" SG,"temp","temp_format"}],"battery"}`; in the node-red style
`{"api_key","brewpi":[...]}`. A member without a value is left out; so is a sensor's gravity 0. `battery` is
the battery of the last iSpindel in the list, whether the iSpindel has a value or not. Its other
pushes are custom streams and, for Grainfather, iSpindel JSON.

Controllers and sensors are each numbered from 1, so the id of a controller begins with its kind.
"""

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
    """A list of devices in a body, and the beginning of their ids."""

    key: str
    prefix: str = ""


LISTS = (List("brewpi_devices", "brewpi-"), List("brewpi", "brewpi-"), List("gravity_sensors"))


def parse(payload: Payload) -> list[Report]:
    """Return one report per controller and per sensor with a measurement."""
    source = wire.fields(payload)
    if not any(key in source for key, _ in LISTS):
        raise DriverError("neither brewpi_devices nor gravity_sensors nor brewpi")
    reports = [
        _report(prefix, entry)
        for key, prefix in LISTS
        if isinstance(entries := source.get(key), list)
        for entry in entries
        if isinstance(entry, dict)
    ]
    for report in reports:
        fill.token(report, payload, source)
    # The body's battery is that of the last iSpindel in the list, whether it has a value or not.
    spindles = [r for r in reports if str(r.facts.get("device_source")).lower() == "ispindel"]
    if spindles:
        fill.facts(spindles[-1], source, {"battery": "battery"})
    return [report for report in reports if fill.measures(report)]


def _report(prefix: str, entry: Fields) -> Report:
    name = wire.text(entry, "name") or ""
    number = wire.text(entry, "internal_id")
    report = Report(stable_id=f"{prefix}{number}" if number else name, name=name)
    fill.gravity(report, entry, "gravity", unit="G", reason=fill.FORMAT_SAYS, required=False)
    fill.temperature(report, entry, TEMPERATURES, default=None)
    fill.further_temperatures(report, entry, FURTHER_TEMPERATURES)
    fill.words(report, entry, WORDS)
    return report


DRIVER = Driver("fermentrack", "Fermentrack", parse, paths=("/fermentrack",))
