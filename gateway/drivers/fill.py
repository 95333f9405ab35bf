"""Common parts of drivers: units in every spelling, sentinels, interval, clock, further values.

Each function puts one value from the members of a payload into a report. Names and sentinels are those of
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
"""Names of a gravity, section 13: calibrated before raw, SG before Plato, a name with the unit before one
without."""

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
"""Names of a temperature that include its unit, in every spelling: `tempf` and `tempc` (Theengs), `temp_f`,
`temperature_fahrenheit`, `TempC` ... °F comes first: a device that sends both has measured °F."""

TEMPERATURE_NAMES: dict[str, "Unit | None"] = {
    **NAMED_TEMPERATURES,
    "Temp": None, "beerTemp": None, "beer_temp": None, "beer-temp": None, "smoothed_temp": None,
    "temperature_fahrenheit_uncali": "F", "temperature_farenheit_uncali": "F",
    "temperature_celsius_uncali": "C", "raw_temp": None, "auxTemp": None, "T": None,
}  # fmt: skip
"""Further names of the beer's temperature; they come after a format's own names."""

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
"""Names of further numbers."""

NUMERAL_NAMES = {
    "pressure": "pressure", "psi": "pressure", "pressure1": "pressure1", "ph": "ph",
    "og": "og", "original_gravity": "og", "temp_target": "temp_target",
}  # fmt: skip
"""Names of further numbers whose text is kept as sent."""

FORMAT_SAYS = "what this format means"
"""The reason for a unit that stands nowhere in the payload; it is as good as the sender's knowledge."""

OWN_GRAVITY = "gravity"
"""The gravity's name in most formats; a unit in the payload belongs to this member."""

BATTERY_VOLT_LIMIT = 5.5
"""The limit above which a battery figure is percent: no single cell has that many volts."""

NO_BEER = frozenset({"n/a", "none"})

LONGEST_INTERVAL_S = 7 * units.SECONDS_PER_DAY

MILLISECONDS_ABOVE = 100_000_000_000
"""The limit (the year 5138 in seconds) above which a time is in milliseconds."""

Unit = Literal["C", "F", "K"]


def gravity(
    report: Report,
    source: Fields,
    *keys: str,
    unit: GravityUnit | None = None,
    reason: str = "",
    required: bool = True,
) -> None:
    """Put the first of these members that is a gravity into the report. Flag 0 and a missing gravity.

    A unit in the payload wins over `unit`, the unit of the key's own name or of the format. If the device may
    lack a gravity it is not `required`, and a missing gravity is not flagged.
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
    """Put the first of these members that is a temperature into the report; a key may name the unit.

    Without a unit in the key, the payload's unit member decides, else `default`, the unit of this format, if
    the size of the value allows that unit; None if nothing shows the unit. Kelvin becomes Celsius, a sensor's
    sentinel becomes a flag.
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
    """Put the device's interval into the report. 1 is the test send after saving the setup, 0 unknown."""
    value = wire.number(source, key)
    if value == 1 and seconds == 1:
        report.flags.append("test_send")
    elif value is not None and 0 < value * seconds < LONGEST_INTERVAL_S:
        report.interval_s = int(value * seconds) or None


def facts(
    report: Report, source: Fields, numbers: Mapping[str, str], texts: Mapping[str, str] | None = None
) -> None:
    """Put further values into the facts by canonical name: as numbers, or as numbers whose text is kept.

    If several members mean the same value, the first one with a value wins.
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
    """Return the beer's name; "" for `n/a` (iSpindel-TCP-Server) and `None` (Python)."""
    name = wire.text(source, *keys)
    return None if name is not None and name.lower() in NO_BEER else name


def words(report: Report, source: Fields, texts: Mapping[str, str]) -> None:
    """Put further texts into the facts by their canonical name, but not `null` and the like."""
    for key, fact in texts.items():
        if (word := wire.text(source, key)) is not None and word.lower() not in wire.MISSING_WORDS:
            report.facts.setdefault(fact, word)


def token(report: Report, payload: Payload, source: Fields) -> None:
    """Put the key that the device was given into the report: from the body, the path or the query."""
    said = wire.text(source, *TOKEN_KEYS) or payload.token
    if not said and payload.query and payload.body:
        said = wire.text(wire.form(payload.query.replace("?", "&")), *QUERY_TOKEN_KEYS) or ""
    # iSpindel-TCP-Server writes * for none.
    report.token = said if said and said != "*" else None


def clock(report: Report, source: Fields, *keys: str) -> None:
    """Put the device's time into the report: Unix seconds or milliseconds, ISO with a zone, or local time."""
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
    """Take the first of these members with a number as gravity; a name may state the unit. Flag its lack."""
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
    """Put the gravity into the report, whatever its name: the best of `GRAVITY_NAMES` if there are several.

    `unit` is the unit of a gravity whose name has none, such as the end of the device's own name.
    """
    _, word = wire.first_text(source, *GRAVITY_UNIT_KEYS)
    stated = GRAVITY_UNITS.get(word.lower()) or unit
    values = {
        name: float(value) for name in GRAVITY_NAMES if (value := wire.numeral(source, name)) is not None
    }
    fitting = [name for name in values if stated is None or GRAVITY_NAMES[name] in (stated, None)]
    if stated is not None and OWN_GRAVITY in fitting:
        fitting.insert(0, OWN_GRAVITY)  # a stated unit belongs to `gravity`, not to another member
    # A gravity of 0 comes last: another member may have a value.
    key = next((name for name in fitting if values[name]), next(iter(fitting or values), OWN_GRAVITY))
    if (own := GRAVITY_NAMES[key]) is not None:
        unit, reason = own, f"the name of {key}"
    gravity(report, source, key, unit=unit, reason=reason, required=required)


def further_temperatures(report: Report, source: Fields, texts: Mapping[str, str]) -> None:
    """Put further temperatures into the facts by canonical name, in the beer's unit, without sentinels.

    Call this function after `temperature`.
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
    """Drop each of the named facts that is 0; for formats in which 0 only fills a place."""
    for name in names:
        value = report.facts.get(name)
        if value is not None and float(value) == 0:
            del report.facts[name]


def measures(report: Report) -> bool:
    """Return whether the report has a measurement, or a sensor that reports to have none."""
    return (
        report.gravity is not None
        or report.temp is not None
        or not report.facts.keys().isdisjoint(("angle", "pressure", "bpm", "ph"))
        or not {"gravity_zero", "temp_sensor_fault"}.isdisjoint(report.flags)
    )


def only_measured(report: Report, source: Fields, *members: str) -> list[Report]:
    """Return the report; nothing if each of these members is empty.

    Raise `DriverError` if the members cannot be read.
    """
    if measures(report):
        return [report]
    said = [source[key] for key in members if key in source]
    if said and all(value is None or str(value).strip().lower() in wire.MISSING_WORDS for value in said):
        return []
    raise DriverError(f"neither {' nor '.join(members[:2])} in it")
