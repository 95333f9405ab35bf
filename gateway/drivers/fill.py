"""What drivers have in common: units in every spelling, sentinels, interval, clock, further values.

Each function puts one thing from the members of a payload into a report. Names and sentinels are those of
devices sections 3.4, 13 and 15.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from gateway.domain import units
from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report, TempUnit
from gateway.drivers import wire
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

GRAVITY_UNIT_KEYS = (
    "gravity_unit", "gravity-unit", "gravity_unity", "gravity-units", "gravity_units", "gravity-format",
    "fermunits",
)  # fmt: skip
TEMP_UNIT_KEYS = (
    "temp_units", "temp_unit", "temp-units", "temperature-unit", "temperature_unit", "tempUnit", "tempunits",
    "temp_format", "temp-format", "unit", "Unit",
)  # fmt: skip
TOKEN_KEYS = ("token", "api_key", "apikey")
QUERY_TOKEN_KEYS = ("token", "id", "key", "api_key", "apikey")

GRAVITY_UNITS: dict[str, GravityUnit] = {
    "g": "G", "sg": "G", "p": "P", "plato": "P", "°p": "P", "degp": "P",
}  # fmt: skip

GRAVITY_NAMES: dict[str, GravityUnit | None] = {
    "specific_gravity_cali": "G", "Calibrated specific gravity": "G", "smoothed_gravity": "G",
    "plato_cali": "P",
    "SG": "G", "sg": "G", "specific_gravity": "G", "specificGravity": "G", "Specific gravity": "G",
    "currentGravity": "G", "tilt_SG": "G",
    "plato": "P", "Plato": "P", "currentPlato": "P", "degrees_plato": "P", "Plato[degP]": "P",
    "plato[degP]": "P",
    "gravity": None, "Gravity": None, "G": None,
    "raw_gravity": "G", "specific_gravity_uncali": "G", "uncalibratedSpecificGravity": "G",
    "plato_uncali": "P",
}  # fmt: skip
"""Section 13: calibrated before raw, SG before Plato, a name that says the unit before one that does not."""

UNIT_WORDS: dict["Unit", tuple[str, ...]] = {
    "F": ("f", "F", "fahrenheit", "Fahrenheit", "degf", "degF"),
    "C": ("c", "C", "celsius", "Celsius", "degc", "degC"),
}

NAMED_TEMPERATURES: dict[str, "Unit | None"] = {
    **{
        f"{stem}{between}{word}": unit
        for unit, unit_words in UNIT_WORDS.items()
        for stem in ("temp", "temperature", "Temp", "Temperature")
        for between in ("", "_", "-")
        for word in unit_words
    },
    "fahrenheit": "F", "Fahrenheit": "F", "celsius": "C", "Celsius": "C",
    "Temperature[degF]": "F", "Temperature[degC]": "C", "Temperature[degK]": "K",
    "temperature[degF]": "F", "temperature[degC]": "C",
}  # fmt: skip
"""Names of a temperature that say its unit, in every spelling: `tempf` and `tempc` (Theengs), `temp_f`,
`temperature_fahrenheit`, `TempC` ... °F first: who says both has measured that."""

TEMPERATURE_NAMES: dict[str, "Unit | None"] = {
    **NAMED_TEMPERATURES,
    "Temp": None, "beerTemp": None, "beer_temp": None, "beer-temp": None, "smoothed_temp": None,
    "temperature_fahrenheit_uncali": "F", "temperature_farenheit_uncali": "F",
    "temperature_celsius_uncali": "C", "raw_temp": None, "auxTemp": None, "T": None,
}  # fmt: skip
"""What else devices and their users call the temperature of the beer; asked after a format's own names."""

NUMBER_NAMES = {
    "angle": "angle", "tilt": "angle", "tiltValue": "angle", "Tilt[deg]": "angle", "D": "angle",
    "battery": "battery", "voltage": "battery", "extVolt": "battery", "Battery[V]": "battery", "U": "battery",
    "batteryLevel": "battery_percent", "battery-percent": "battery_percent",
    "battery_percent": "battery_percent",
    "RSSI": "rssi", "rssi": "rssi", "hydrometerRssi": "rssi", "Rssi[dBm]": "rssi", "rssi[dBm]": "rssi",
    "Signal strength[dBm]": "rssi",
    "velocity": "velocity", "specific_gravity_pts_per_day_uncali": "velocity",
    "WoB": "weeks_on_battery", "weeks_on_battery": "weeks_on_battery",
    "bpm": "bpm", "co2_volume": "co2_volume", "abv": "abv", "alcohol_by_volume": "abv",
}  # fmt: skip
"""The same for further numbers."""

NUMERAL_NAMES = {
    "pressure": "pressure", "psi": "pressure", "pressure1": "pressure1", "ph": "ph",
    "og": "og", "original_gravity": "og", "temp_target": "temp_target",
}  # fmt: skip
"""The same where the text is kept as sent."""

FORMAT_SAYS = "what this format means"
"""The reason for a unit that nothing in the payload tells: it is only as good as the sender's knowledge."""

OWN_GRAVITY = "gravity"
"""What most formats call it; a unit that they state is that of this member."""

BATTERY_VOLT_LIMIT = 5.5
"""Above it a battery figure is percent: no single cell has that many volts."""

NO_BEER = frozenset({"n/a", "none"})

LONGEST_INTERVAL_S = 7 * units.SECONDS_PER_DAY

MILLISECONDS_ABOVE = 100_000_000_000
"""A time beyond it (the year 5138 in seconds) is in milliseconds."""

Unit = Literal["C", "F", "K"]


def gravity(
    report: Report,
    source: Fields,
    *keys: str,
    unit: GravityUnit | None = None,
    reason: str = "",
    required: bool = True,
) -> None:
    """The first of these members that is a gravity. 0 and a missing one are flagged, never a number.

    A unit that the payload states wins over `unit`, what the key's own name or the format says. Where the
    device need not have a gravity it is not `required`, and a missing one is no news.
    """
    key, word = wire.first_text(source, *GRAVITY_UNIT_KEYS)
    stated = GRAVITY_UNITS.get(word.lower())
    if stated is not None:
        report.gravity_unit, report.gravity_unit_reason = stated, f"{key} says {word[:20]}"
    elif unit is not None:
        report.gravity_unit, report.gravity_unit_reason = unit, reason
        report.gravity_unit_by_format = reason == FORMAT_SAYS
    value = wire.numeral(source, *keys)
    if value is None:
        if required:
            report.flags.append("gravity_missing")
    elif float(value) == 0:
        report.flags.append("gravity_zero")
    else:
        report.gravity = value


def temperature(
    report: Report, source: Fields, keys: Mapping[str, Unit | None], default: TempUnit | None = "C"
) -> None:
    """The first of these members that is a temperature; a key may state the unit by its own name.

    Else the payload's unit member says it, else `default`, what this format means without one, where the size
    of the value allows that; None where nothing tells. Kelvin becomes Celsius, a sensor's sentinel a flag.
    """
    for key in keys:
        if key in source and (value := wire.numeral(source, key)) is not None:
            break
    else:
        key, value = "", None
    own = keys.get(key)
    letter, said = (own, f"the name of {key}") if own is not None else _stated_letter(source)
    if letter is not None:
        report.temp_unit, report.temp_unit_reason = ("F" if letter == "F" else "C"), said
    elif default is not None:
        report.temp_unit, report.temp_unit_reason = default, FORMAT_SAYS
        report.temp_unit_by_format = True
    if value is None:
        return
    if letter == "K":
        value = units.kelvin_text_to_celsius_text(value)
    if wire.is_sensor_fault(float(value), None if report.temp_unit_by_format else report.temp_unit):
        report.flags.append("temp_sensor_fault")
    else:
        report.temp = value


def _stated_letter(source: Fields) -> tuple[str | None, str]:
    key, word = wire.first_text(source, *TEMP_UNIT_KEYS)
    letter = wire.temp_unit_letter(word)
    return letter, f"{key} says {word[:20]}"


def interval(report: Report, source: Fields, key: str = "interval", seconds: float = 1.0) -> None:
    """How often the device reports. 1 is the test send after saving the configuration, 0 unknown."""
    value = wire.number(source, key)
    if value == 1 and seconds == 1:
        report.flags.append("test_send")
    elif value is not None and 0 < value * seconds < LONGEST_INTERVAL_S:
        report.interval_s = int(value * seconds) or None


def facts(
    report: Report, source: Fields, numbers: Mapping[str, str], texts: Mapping[str, str] | None = None
) -> None:
    """Further values by their canonical name: as numbers, and numbers whose text is kept as sent.

    The first member that has a value wins where several mean the same.
    """
    found = report.facts
    for key, fact in numbers.items():
        if key in source and fact not in found and (number := wire.number(source, key)) is not None:
            found[fact] = number
    for key, fact in (texts or {}).items():
        if key in source and fact not in found and (numeral := wire.numeral(source, key)) is not None:
            found[fact] = numeral
    battery = found.get("battery")
    if isinstance(battery, int | float) and battery > BATTERY_VOLT_LIMIT:
        del found["battery"]
        found.setdefault("battery_percent", battery)
        report.battery_reason = f"no unit sent; more than {BATTERY_VOLT_LIMIT:g} can only be percent"


def beer(source: Fields, *keys: str) -> str | None:
    """The beer's name. Bridges that know of none write `n/a` (iSpindel-TCP-Server) or `None` (Python's)."""
    name = wire.text(source, *keys)
    return None if name is not None and name.lower() in NO_BEER else name


def words(report: Report, source: Fields, texts: Mapping[str, str]) -> None:
    """Further texts by their canonical name; `null` and the like are none."""
    for key, fact in texts.items():
        if (word := wire.text(source, key)) is not None and word.lower() not in wire.MISSING_WORDS:
            report.facts.setdefault(fact, word)


def token(report: Report, payload: Payload, source: Fields) -> None:
    """The key that the device was given: in the body, the path or the query."""
    said = wire.text(source, *TOKEN_KEYS) or payload.token
    if not said and payload.query and payload.body:
        said = wire.text(wire.form(payload.query.replace("?", "&")), *QUERY_TOKEN_KEYS) or ""
    # iSpindel-TCP-Server writes * for none.
    report.token = said if said and said != "*" else None


def clock(report: Report, source: Fields, *keys: str) -> None:
    """The device's own time: Unix seconds or milliseconds, ISO with a zone, or local time without one."""
    for key in keys:
        number = wire.numeral(source, key)
        if number is not None:
            seconds = float(number)
            report.measured_at = seconds / 1000 if seconds > MILLISECONDS_ABOVE else seconds
            return
        text = wire.text(source, key)
        if text is None:
            continue
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            continue
        if moment.tzinfo is None:
            report.device_time = moment.isoformat()
        else:
            report.measured_at = moment.timestamp()
        return


def named_gravity(report: Report, source: Fields, names: Mapping[str, GravityUnit | None]) -> None:
    """The first of these members that has a number; a name may state the unit. A missing one is flagged."""
    for key, unit in names.items():
        if wire.numeral(source, key) is not None:
            gravity(report, source, key, unit=unit, reason=f"the name of {key}")
            return
    gravity(report, source)


def any_gravity(
    report: Report,
    source: Fields,
    *,
    unit: GravityUnit | None = None,
    reason: str = "",
    required: bool = True,
) -> None:
    """The gravity by whatever name it has, the best of `GRAVITY_NAMES` where it has several.

    `unit` is what the device says of a gravity whose name does not tell, as by the end of its own name.
    """
    _, word = wire.first_text(source, *GRAVITY_UNIT_KEYS)
    key = _gravity_name(source, GRAVITY_UNITS.get(word.lower()) or unit)
    if (own := GRAVITY_NAMES[key]) is not None:
        unit, reason = own, f"the name of {key}"
    gravity(report, source, key, unit=unit, reason=reason, required=required)


def _gravity_name(source: Fields, unit: GravityUnit | None) -> str:
    """Which member is the gravity. A stated unit is that of `gravity`, not that of another name's beside it.

    0 comes last: another member may know more.
    """
    values = {
        name: float(value) for name in GRAVITY_NAMES if (value := wire.numeral(source, name)) is not None
    }
    fitting = [name for name in values if unit is None or GRAVITY_NAMES[name] in (unit, None)]
    if unit is not None and OWN_GRAVITY in fitting:
        fitting.insert(0, OWN_GRAVITY)
    return next((name for name in fitting if values[name]), next(iter(fitting or values), OWN_GRAVITY))


def further_temperatures(report: Report, source: Fields, texts: Mapping[str, str]) -> None:
    """Temperatures beside the beer's, by their canonical name, in its unit; a sensor's sentinel is none.

    To be called after `temperature`.
    """
    kelvin = _stated_letter(source)[0] == "K"
    for key, fact in texts.items():
        value = wire.numeral(source, key) if fact not in report.facts else None
        if value is None:
            continue
        value = units.kelvin_text_to_celsius_text(value) if kelvin else value
        if not wire.is_sensor_fault(float(value), report.temp_unit):
            report.facts[fact] = value


def drop_zeros(report: Report, *names: str) -> None:
    """Forget those of these facts that are 0, where 0 only fills a place."""
    for name in names:
        value = report.facts.get(name)
        if value is not None and float(value) == 0:
            del report.facts[name]


def measures(report: Report) -> bool:
    """Return whether there is a measurement in it, or a sensor that said it has none."""
    return (
        report.gravity is not None
        or report.temp is not None
        or not report.facts.keys().isdisjoint(("angle", "pressure", "bpm", "ph"))
        or not {"gravity_zero", "temp_sensor_fault"}.isdisjoint(report.flags)
    )


def only_measured(report: Report, source: Fields, *members: str) -> list[Report]:
    """The report, or none where each of these members is empty; `DriverError` where they cannot be read."""
    if measures(report):
        return [report]
    said = [source[key] for key in members if key in source]
    if said and all(value is None or str(value).strip().lower() in wire.MISSING_WORDS for value in said):
        return []
    raise DriverError(f"neither {' nor '.join(members[:2])} in it")
