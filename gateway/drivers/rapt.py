"""RAPT Pill: the portal's web hook in whatever template its user wrote, and two Bluetooth bridges.

Web hook (docs.rapt.io, custom web hooks; scottpancakes/rapt-pill-HA README): JSON by POST or a query by GET
whose names the user chooses, mostly those of the variables `@device_id` GUID, `@device_type`,
`@device_name`, `@temperature` °C, `@target_temperature`, `@gravity`, `@battery` percent, `@rssi`,
`@created_date`, with or without `@` and `device_`; values quoted or not; or as the hook's parameters, each in
a header or in the query, beside a body or without one. Gravity comes as SG or times 1000;
the form of the date is not documented. A variable that the device does not have stays as it is written.
A template that imitates an iSpindel (vitotai/BrewPiLess issue 362) is read as one.
MeadTools (ljreaux/RaptPill-To-MeadTools src/PillToMeadTools.py): `POST <base>/hydrometer/rapt-pill` of
`{"token","name","gravity","temperature","temp_units","battery" percent}`; takes 200 alone as success.
raptpill2mqtt (sgoadhouse/raptpill2mqtt raptpill2mqtt.py): topic `rapt/pill/<colour>`, retained, texts
`specific_gravity_uncali`, `specific_gravity_pts_per_day_uncali`, `temperature_celsius_uncali`,
`temperature_fahrenheit_uncali`, the same with `_cali`, `battery` percent, `rssi`, `lastActivityTime` local.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report
from gateway.drivers import fill, identity, spindle, wire
from gateway.drivers.base import Driver
from gateway.drivers.wire import Fields

GRAVITIES: dict[str, GravityUnit | None] = {
    "specific_gravity_cali": "G",
    "plato_cali": "P",
    "gravity": None,
    "current_gravity": None,
    "specific_gravity": "G",
    "sg": "G",
    "specific_gravity_uncali": "G",
    "plato": "P",
    "plato_uncali": "P",
}
"""Calibrated before raw, SG before Plato; plain `gravity` may be times 1000."""

TEMPERATURES: dict[str, fill.Unit | None] = {
    "temperature_fahrenheit_cali": "F",
    "temperature_celsius_cali": "C",
    "temperature": None,
    "current_temperature": None,
    "temp": None,
    "temperature_c": "C",
    "temp_c": "C",
    "temperature_f": "F",
    "temp_f": "F",
    **fill.NAMED_TEMPERATURES,
    "temperature_fahrenheit_uncali": "F",
    "temperature_celsius_uncali": "C",
}

NUMBERS = {
    "battery": "battery_percent",
    "battery_percent": "battery_percent",
    "battery_level": "battery_percent",
    "batterylevel": "battery_percent",
    "battery_voltage": "battery",
    "voltage": "battery",
    "rssi": "rssi",
    "velocity": "velocity",
    "gravity_velocity": "velocity",
    "specific_gravity_pts_per_day_cali": "velocity",
    "specific_gravity_pts_per_day_uncali": "velocity",
}

NUMERALS = {"target_temperature": "temp_target", "temp_target": "temp_target"}

TIMES = (
    "created_date",
    "createddate",
    "created",
    "timestamp",
    "lastactivitytime",
    "datetime",
    "date",
    "time",
)

TIME_FORMS = ("%Y-%m-%d %H:%M:%S %z", "%Y-%m-%d %H:%M:%S.%f %z", "%a, %d %b %Y %H:%M:%S %z")
"""Times that Python's reader of ISO 8601 refuses: a blank before the zone, and RFC 1123."""

TIME_CHARACTERS = 48

DATE_CHARACTERS = 10

PARAMETERS = frozenset({
    "device_id", "device_name", "device_type", "name", "temperature", "temp", "target_temperature", "gravity",
    "battery", "rssi", "created_date", "temp_unit", "temp_units", "gravity_unit",
})  # fmt: skip
"""The portal's parameters, each in a header or in the query."""

_PERCENT = re.compile(r"\s*[\d.,]+\s*%")

HYDROMETER = "hydrometer"
"""The device type with a gravity."""


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none if each value is empty."""
    source = _members(wire.fields(payload))
    if "angle" in source and "name" in source:
        imitation = spindle.parse(payload, source)
        # A Pill's battery is percent, also where the Pill passes for an iSpindel.
        battery = imitation.facts.pop("battery", None)
        if battery is not None:
            imitation.facts.setdefault("battery_percent", battery)
        return [imitation]
    device_id = wire.text(source, "device_id", "id", "deviceid")
    label = "" if payload.label == device_id else payload.label
    query = payload.query if not payload.body else wire.stripped(payload).decode("utf-8", "replace")
    named = source
    if "+" in query and not query.startswith(("{", "?")) and payload.fields is not None:
        named = _members(wire.form(query.replace("+", "%20")))  # many programs write a blank as `+`
    name = wire.text(named, "name", "devicename", "color", "colour") or label
    report = Report(
        stable_id=device_id or wire.text(source, "mac", "mac_address") or name,
        name=name,
        beer=wire.text(source, "beer"),
        comment=wire.text(source, "comment"),
    )
    identity.settle(report, payload, source, own=device_id or "", shared=not name)
    fill.token(report, payload, source)
    kind = (wire.text(source, "device_type", "type") or HYDROMETER).lower()
    if kind == HYDROMETER or "gravity" in source:
        fill.named_gravity(report, source, GRAVITIES)
    fill.temperature(report, source, TEMPERATURES)
    for key in TIMES:
        time_text = wire.text(source, key)
        if wire.numeral(source, key) is not None:
            fill.clock(report, source, key)
            break
        if time_text:
            fill.clock(report, {key: _iso(time_text[:TIME_CHARACTERS])}, key)
            break
    fill.facts(report, source, NUMBERS, NUMERALS)
    return fill.only_measured(report, source, "gravity", "temperature", *GRAVITIES, *TEMPERATURES)


def _members(sent: Fields) -> Mapping[str, Any]:
    """Return the members by their names and by short names in lower case, without unfilled variables."""
    filled = {
        key: value[:-1].strip() if isinstance(value, str) and _PERCENT.fullmatch(value) else value
        for key, value in sent.items()
        if not (isinstance(value, str) and value.startswith("@"))
    }
    plain = {key.lower().lstrip("@"): value for key, value in filled.items()}
    short = {key.removeprefix("device_"): value for key, value in plain.items() if key.startswith("device_")}
    return {**filled, **plain, **short}


def _iso(text: str) -> str:
    """Return the time as ISO 8601 in the form that `datetime` reads; else the text as it is."""
    if text[DATE_CHARACTERS : DATE_CHARACTERS + 1] == "+":
        text = text.replace("+", "T", 1)  # a blank in a query
    for form in TIME_FORMS:
        try:
            return datetime.strptime(text.replace("GMT", "+0000"), form).isoformat()  # noqa: DTZ007 (all have %z)
        except ValueError:
            continue
    return text


DRIVER = Driver(
    "rapt",
    "RAPT Pill",
    parse,
    paths=(
        "/rapt", "/rapt/{token}", "/webhook/rapt", "/api/webhook/{token}", "/hydrometer/rapt-pill",
        "/api/hydrometer/rapt-pill",
    ),
    topics=("rapt/pill/{label}",),
    parameters=PARAMETERS,
)  # fmt: skip
