"""ThingSpeak: values by number, whose meaning only the sender knows.

iSpindel (universam1/iSpindel pio/src/iSpindel.cpp, pio/lib/Sender/Sender.cpp; POST of a form to `/update`):
`field1` tilt, 2 temperature, 3 temp_units, 4 battery, 5 gravity, 6 interval, 7 RSSI; the key is a header.
GravityMon (mp-se/gravitymon src_docs/source/services.rst; POST to `/update.json`): `api_key`, `field1`
gravity, 2 temp, 3 angle, 4 battery, 5 rssi.

Fermentrack (thorrak/fermentrack external_push/models.py ThingSpeakPushTarget; POST to `/update.json`):
`api_key`, `version` 1.0, `field1` beer, 2 device, 3 C or F, 4 beer, 5 fridge, 6 room temperature, 7 SG; a
value that is 0 or unknown is not sent, and of several controllers the last one wins.

Rules find the order: a letter of temperature in `field3` beside a `version` is Fermentrack's order, beside
numbers the iSpindel's; `field4` a cell's voltage, `field5` a signal in dBm and nothing behind them is
GravityMon's. Other orders (BrewPiLess, whose users choose the fields) are not guessed. Only Fermentrack has
a name. A key is written for one channel, that is one device: the key's hash is the identity of the other
senders, without a key their address. The library that the iSpindel uses sends the key as a header,
`X-THINGSPEAKAPIKEY` (mathworks/thingspeak-arduino src/ThingSpeak.h).

ThingSpeak answers `/update` with the number of the entry as plain text, 0 if it took none. The library
reads the status 200, `Content-Length` in this spelling, and that many bytes as a number; 0, and any text that
is no number, is its error -401, "not inserted". `/update.json` is answered with JSON, which no client reads.
The library has no bulk update.
"""

import hashlib
from typing import Any

from gateway.domain.key import KEY_PREFIX
from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, identity, spindle, wire
from gateway.drivers.base import Driver
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

SPINDLE_ORDER = ("tilt", "temperature", "temp_units", "battery", "gravity", "interval", "RSSI")
FERMENTRACK_ORDER = ("beer", "name", "temp_units", "beer_temp", "fridge_temp", "room_temp", "gravity")
GRAVITYMON_ORDER = ("gravity", "temperature", "angle", "battery", "RSSI")

CELL_VOLT = (2.0, 5.5)
SIGNAL_DBM = (-120.0, 0.0)
"""The range of the battery and of the radio signal's strength."""

KEY_DIGITS = 10
"""Hex digits of the key's SHA-256: enough to tell devices apart, too few to reveal the key."""


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none if no controller of Fermentrack has a value."""
    source = wire.fields(payload)
    # A push without a controller has no fields at all.
    has_no_field = not any(key.startswith("field") for key in source)
    if "version" in source and (_has_unit(source) or has_no_field):
        return _fermentrack(payload, source)
    if _has_unit(source) and _is_number(source, "field1") and _is_number(source, "field2"):
        order: tuple[str, ...] = SPINDLE_ORDER
    elif _is_gravitymon(source):
        order = GRAVITYMON_ORDER
    else:
        raise DriverError("fields of the user's own choice: nothing shows which one is the gravity")
    named = _named(source, order)
    named["name"] = identity_of(payload, source, wire.text(source, "api_key", "key") or payload.token)
    return [spindle.parse(payload, named, temp_unit=None)]


def _named(source: Fields, order: tuple[str, ...]) -> dict[str, Any]:
    named = {key: source.get(f"field{place}") for place, key in enumerate(order, 1)}
    return named | {key: source[key] for key in ("api_key", "token") if key in source}


def _fermentrack(payload: Payload, source: Fields) -> list[Report]:
    named = _named(source, FERMENTRACK_ORDER)
    name = wire.text(named, "name") or payload.label
    report = Report(stable_id=name or payload.source, name=name, beer=fill.beer(named, "beer"))
    fill.token(report, payload, named)
    fill.gravity(report, named, "gravity", unit="G", reason=fill.FORMAT_SAYS, required=False)
    fill.temperature(report, named, {"beer_temp": None})
    fill.further_temperatures(report, named, {"fridge_temp": "aux_temp", "room_temp": "ext_temp"})
    has_value = fill.measures(report) or not report.facts.keys().isdisjoint(("aux_temp", "ext_temp"))
    return [report] if has_value else []


def identity_of(payload: Payload, source: Fields, key: str) -> str:
    """Return the identity of a nameless sender, perhaps by a member beside the fields."""
    if payload.label or not key or key.startswith(KEY_PREFIX):  # one of ours may be in several devices
        return payload.label or wire.text(source, *identity.NAMES) or payload.source
    return hashlib.sha256(key.encode()).hexdigest()[:KEY_DIGITS]


def _has_unit(source: Fields) -> bool:
    return wire.temp_unit_letter(wire.text(source, "field3") or "") is not None


def _is_number(source: Fields, key: str) -> bool:
    return wire.is_missing(source, key) or wire.numeral(source, key) is not None


def _is_gravitymon(source: Fields) -> bool:
    battery, signal = wire.number(source, "field4"), wire.number(source, "field5")
    return (
        battery is not None
        and signal is not None
        and CELL_VOLT[0] <= battery <= CELL_VOLT[1]
        and SIGNAL_DBM[0] <= signal < SIGNAL_DBM[1]
        and not any(key in source for key in ("field6", "field7", "field8"))
    )


DRIVER = Driver(
    "thingspeak",
    "ThingSpeak",
    parse,
    paths=("/update", "/update.json"),
    numbered=frozenset({"/update"}),
)
