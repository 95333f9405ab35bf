"""The custom streams of Brewfather and Brewer's Friend, and whoever speaks like them.

Brewfather (docs.brewfather.app, custom stream): POST `/stream?id=<key>` of JSON `name`, `temp`, `aux_temp`,
`ext_temp`, `temp_unit` C/F/K (absent: C), `gravity`, `gravity_unit` G/P, `pressure`, `pressure_unit`
PSI/BAR/KPA (absent: PSI), `ph`, `bpm`, `comment`, `beer`, `battery` volt, `device_integration`,
`device_source`, `report_source`, `device_state`, `temp_target`, `gravity_target`, `hysteresis`. Brewer's
Friend (docs.brewersfriend.com, stream): POST `/stream/<key>`, the same and `RSSI`, `angle`, `og`,
`heat_state`, `psi`, `ambient`. Any of them may be missing, null or an empty text; a silent hydrometer is no
fault.

Speakers: TiltBridge (src/sendData.cpp: numbers as text, always F), tilt-pitch (pitch/providers:
`gravity_unity`, `og` null), Fermentrack (external_push/models.py), BrewPiLess (script-logging.js: `""` for
missing, `angle` 0 without a hydrometer), Brew Bubbles (src/pushhelper.cpp: no gravity), Home Assistant
(MvdDonk/brewfather: wants `result` in the answer), GravityMon's template BrewFatherCustom
(mp-se/gravitymon-ui gravityFormatOptions.js: 0 in `aux_temp`, `ext_temp`, `pressure`, `ph` and `bpm` only
fills the place).
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, spindle, wire
from gateway.drivers.base import Driver
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

FURTHER_TEMPERATURES = {"aux_temp": "aux_temp", "ext_temp": "ext_temp", "ambient": "ext_temp"}

NUMBERS = {
    "battery": "battery",
    "bpm": "bpm",
    "RSSI": "rssi",
    "rssi": "rssi",
    "angle": "angle",
    "velocity": "velocity",
    "abv": "abv",
}  # fmt: skip

NUMERALS = {
    "pressure": "pressure",
    "psi": "pressure",
    "ph": "ph",
    "og": "og",
    "temp_target": "temp_target",
    "gravity_target": "gravity_target",
    "hysteresis": "hysteresis",
}  # fmt: skip

WORDS = {
    "device_integration": "device_integration",
    "device_source": "device_source",
    "report_source": "report_source",
    "device_state": "device_state",
    "heat_state": "heat_state",
}

PLACEHOLDERS = ("aux_temp", "ext_temp", "pressure", "ph", "bpm", "battery", "rssi", "angle")
"""Members in which 0 stands for nothing."""

MEASURED = ("temp", "gravity", "pressure", "psi", "ph", "bpm", "aux_temp", "ext_temp", "ambient")
"""Members that show that this is a stream, with or without a value in them."""

DEFAULT_PRESSURE_UNIT = "PSI"


def parse(payload: Payload) -> list[Report]:
    """One report per payload; none where each of its members is empty. A spindle's JSON is read as such."""
    source = wire.fields(payload)
    if "temperature" in source and "temp" not in source:
        return [spindle.parse(payload, source)]
    name, unit = spindle.split_name(wire.text(source, "name") or payload.label)
    report = Report(
        stable_id=name,
        name=name,
        beer=wire.text(source, "beer"),
        comment=wire.text(source, "comment"),
    )
    fill.token(report, payload, source)
    fill.gravity(report, source, "gravity", unit=unit, reason="the end of its name", required=False)
    fill.temperature(report, source, {"temp": None})
    fill.further_temperatures(report, source, FURTHER_TEMPERATURES)
    fill.interval(report, source)
    fill.facts(report, source, NUMBERS, NUMERALS)
    fill.words(report, source, WORDS)
    fill.drop_zeros(report, *PLACEHOLDERS)
    if "pressure" in report.facts:
        stated = wire.text(source, "pressure_unit", "pressure-unit")
        report.facts["pressure_unit"] = stated or DEFAULT_PRESSURE_UNIT
    if fill.measures(report) or not report.facts.keys().isdisjoint(("aux_temp", "ext_temp")):
        return [report]
    if any(key in source for key in MEASURED):
        return []
    raise DriverError("no member of a custom stream in it")


def fits(source: Fields) -> bool:
    """Whether it is a stream where a spindle's JSON was expected: `temp` says it."""
    return "temp" in source and "temperature" not in source and "angle" not in source


DRIVER = Driver(
    "stream",
    "Custom stream of Brewfather or Brewer's Friend",
    parse,
    paths=("/stream", "/stream/{token}"),
)
