"""Programs on a Raspberry Pi or PC that listen to Tilts: tilt-pitch, tilty, pytilt, tilt2mqtt.

tilt-pitch's webhook (linjmeyer/tilt-pitch pitch/providers, pitch/models): `{"timestamp" local without zone,
"color","name" the BEER,"hd","temp_fahrenheit","temp_celsius","original_gravity","gravity","degrees_plato",
"alcohol_by_volume","apparent_attenuation","temp_valid","gravity_valid"}`.
tilty (myoung34/tilty README): the user's template of `color`, `gravity`, `temp` °F, `timestamp`, `mac`,
mostly with `gravity_unit` and `temp_unit`; the Go version gives gravity times 1000 whatever the unit says.
pytilt (as chiefwigms/picobrew_pico app/main/routes_tilt_api.py takes it): a list of `{"color","temp" °C,
"gravity" times 1000,"timestamp" ISO}`, all readings since it last reached the server, one of each Tilt every
ten seconds (atlefren/pytilt sender.py).
tilt2mqtt: topic `tilt/<Color>`, retained, texts `specific_gravity_uncali`, `plato_uncali`,
`temperature_celsius_uncali`, `temperature_farenheit_uncali` (sic), and the same with `_cali`.

A Tilt is known by its MAC, else by its colour.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report, TempUnit
from gateway.drivers import fill, identity, wire
from gateway.drivers.base import Driver
from gateway.drivers.tilts import is_version_beacon, mend_high_resolution, split_color
from gateway.errors import DriverError

GRAVITIES: dict[str, GravityUnit | None] = {
    "specific_gravity_cali": "G",
    "plato_cali": "P",
    "gravity": None,
    "specific_gravity": "G",
    "specific_gravity_uncali": "G",
    "plato_uncali": "P",
    "degrees_plato": "P",
}
"""Calibrated before raw, SG before Plato."""

TEMPERATURES: dict[str, fill.Unit | None] = {
    "temperature_fahrenheit_cali": "F",
    "temperature_farenheit_cali": "F",
    "temperature_celsius_cali": "C",
    **fill.NAMED_TEMPERATURES,
    "temp": None,
    "temperature": None,
    "temperature_fahrenheit_uncali": "F",
    "temperature_farenheit_uncali": "F",
    "temperature_celsius_uncali": "C",
}
"""Names of a temperature, °F before °C: a Tilt sends °F."""

NUMBERS = {
    "alcohol_by_volume": "abv",
    "abv": "abv",
    "apparent_attenuation": "attenuation_percent",
    "rssi": "rssi",
    "weeks_on_battery": "weeks_on_battery",
}

NUMERALS = {"original_gravity": "og", "og": "og"}

TIMES = ("timestamp", "timeStamp", "lastActivityTime")

FALSEHOODS = (False, "false", "False", "0")

CELSIUS_BELOW = 26.0
"""Below this figure no beer in Fahrenheit is still liquid."""

PYTILT_SG_FROM = 900.0
"""pytilt gives SG times 1000, whatever the Tilt."""


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload. A list is taken apart before."""
    source = wire.fields(payload)
    said = wire.text(source, "color", "Color", "colour") or payload.label
    beer = wire.text(source, "beer", "Beer", "name")
    named = wire.text(source, "name") or beer or ""
    color, mac = split_color(said or named)
    mac = wire.text(source, "mac", "mac_address") or identity.mac_of(source) or mac
    report = Report(stable_id=mac or color, name=color)
    if not report.stable_id:
        raise DriverError("neither colour nor MAC of a Tilt")
    report.beer = None if beer == (said or named) else beer
    fill.token(report, payload, source)
    if source.get("gravity_valid") in FALSEHOODS:
        report.flags.append("gravity_missing")
    else:
        fill.named_gravity(report, source, GRAVITIES)
    if source.get("temp_valid") in FALSEHOODS:
        report.flags.append("temp_sensor_fault")
    else:
        # °C in pytilt's list, else °F, if the figure can be that.
        unit: TempUnit | None
        of_list = payload.fields is not None and not payload.body and not payload.query
        if of_list and float(wire.numeral(source, "gravity") or 0) >= PYTILT_SG_FROM:
            unit = "C"
        else:
            value = wire.numeral(source, "temp", "temperature")
            unit = "F" if value is not None and float(value) >= CELSIUS_BELOW else None
        fill.temperature(report, source, TEMPERATURES, unit)
    mend_high_resolution(report)
    fill.clock(report, source, *TIMES)
    fill.facts(report, source, NUMBERS, NUMERALS)
    if is_version_beacon(report):
        return []
    return fill.only_measured(report, source, "gravity", "temp", *GRAVITIES, *TEMPERATURES)


DRIVER = Driver("tilt_tools", "tilt-pitch, tilty, pytilt, tilt2mqtt", parse, topics=("tilt/{label}",))
