"""The custom streams of Brewfather and Brewer's Friend, and of programs that imitate them.

Brewfather (docs.brewfather.app, custom stream): POST `/stream?id=<key>` of JSON `name`, `temp`, `aux_temp`,
`ext_temp`, `temp_unit` C/F/K (absent: C), `gravity`, `gravity_unit` G/P, `pressure`, `pressure_unit`
PSI/BAR/KPA (absent: PSI), `ph`, `bpm`, `comment`, `beer`, `battery` volt, `device_integration`,
`device_source`, `report_source`, `device_state`, `temp_target`, `gravity_target`, `hysteresis`. Brewer's
Friend (docs.brewersfriend.com, stream): POST `/stream/<key>`, the same and `RSSI`, `angle`, `og`,
`heat_state`, `psi`, `ambient`. Any of them may be missing, null or an empty text; a silent hydrometer is no
fault.

Speakers: TiltBridge (src/sendData.cpp: numbers as text, always F), tilt-pitch (pitch/providers:
`gravity_unity`, `og` null), Fermentrack (external_push/models.py: of a controller without probes 0, as in
brewpi-script/brewpi.py, or nothing but a name), BrewPiLess (script-logging.js: `""` for missing, `angle` 0
without a hydrometer), Brew Bubbles (src/pushhelper.cpp: no gravity), Home Assistant (MvdDonk/brewfather:
wants `result` in the answer), GravityMon's template BrewFatherCustom
(mp-se/gravitymon-ui gravityFormatOptions.js: 0 in all of `aux_temp`, `ext_temp`, `pressure`, `ph` and `bpm`
only fills the place). Users' own programs send members with the names of section 13.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, identity, spindle, wire
from gateway.drivers.base import Driver
from gateway.drivers.tilts import is_version_beacon, mend_high_resolution
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

TEMPERATURES: dict[str, fill.Unit | None] = {"temp": None, "temperature": None, **fill.TEMPERATURE_NAMES}

FURTHER_TEMPERATURES = {
    "aux_temp": "aux_temp",
    "ext_temp": "ext_temp",
    "ambient": "ext_temp",
    "temp_target": "temp_target",
}  # fmt: skip

NUMERALS = {
    **{key: fact for key, fact in fill.NUMERAL_NAMES.items() if key not in FURTHER_TEMPERATURES},
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

NEVER_ZERO = ("battery", "rssi", "angle", "ph")
"""Values of which 0 means no value."""

TEMPLATE_ZEROS = ("aux_temp", "ext_temp", "pressure", "ph", "bpm")
"""Members that GravityMon's template fills with 0, all of them together. Otherwise 0 is a measurement."""

FERMENTRACK = "Fermentrack"
"""The `report_source` of a program whose controllers send 0 until they have a temperature."""

FERMENTRACK_ZEROS = frozenset({"temp", "aux_temp", "ext_temp"})

MEASURED = (
    *fill.GRAVITY_NAMES, *TEMPERATURES, "pressure", "psi", "ph", "bpm", "aux_temp", "ext_temp", "ambient",
)  # fmt: skip
"""Members that show a stream, with or without a value in them."""

DEFAULT_PRESSURE_UNIT = "PSI"


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none if each member is empty. Read a spindle's JSON as such."""
    sent = wire.fields(payload)
    source = sent
    if sent.get("report_source") == FERMENTRACK:
        source = {k: v for k, v in sent.items() if k not in FERMENTRACK_ZEROS or wire.number(sent, k)}
    if "temperature" in source and "temp" not in source:
        return [spindle.parse(payload, source)]
    name, unit = spindle.split_name(wire.text(source, "name") or payload.label)
    report = Report(
        stable_id=name or payload.source,
        name=name,
        beer=wire.text(source, "beer"),
        comment=wire.text(source, "comment"),
    )
    identity.settle(report, payload, source, shared=not name)
    fill.token(report, payload, source)
    fill.any_gravity(report, source, unit=unit, reason="the end of its name", required=False)
    fill.temperature(report, source, TEMPERATURES)
    fill.further_temperatures(report, source, FURTHER_TEMPERATURES)
    mend_high_resolution(report)
    if is_version_beacon(report):
        return []
    fill.interval(report, source)
    fill.facts(report, source, fill.NUMBER_NAMES, NUMERALS)
    fill.words(report, source, WORDS)
    fill.clock(report, source, *spindle.TIMES)
    fill.drop_zeros(report, *NEVER_ZERO)
    if all(wire.number(source, key) == 0 for key in TEMPLATE_ZEROS):
        fill.drop_zeros(report, *TEMPLATE_ZEROS)
    if "pressure" in report.facts:
        stated = wire.text(source, "pressure_unit", "pressure-unit")
        report.facts["pressure_unit"] = stated or DEFAULT_PRESSURE_UNIT
    if fill.measures(report) or not report.facts.keys().isdisjoint(("aux_temp", "ext_temp")):
        return [report]
    if any(key in sent for key in MEASURED) or source is not sent:
        return []
    raise DriverError("no member of a custom stream in it")


def fits(source: Fields) -> bool:
    """Return whether a spindle's payload is a stream: it has `temp`."""
    return "temp" in source and "temperature" not in source and "angle" not in source


DRIVER = Driver(
    "stream",
    "Custom stream of Brewfather or Brewer's Friend",
    parse,
    paths=("/stream", "/stream/{token}"),
)
