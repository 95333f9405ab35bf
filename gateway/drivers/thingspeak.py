"""ThingSpeak: values by number, whose meaning only the sender knows.

iSpindel (universam1/iSpindel pio/src/iSpindel.cpp, pio/lib/Sender/Sender.cpp; POST of a form to `/update`):
`field1` tilt, 2 temperature, 3 temp_units, 4 battery, 5 gravity, 6 interval, 7 RSSI; the key is a header.
GravityMon (mp-se/gravitymon src_docs/source/services.rst; POST to `/update.json`): `api_key`, `field1`
gravity, 2 temp, 3 angle, 4 battery, 5 rssi.

Told apart by rule: a letter of temperature in `field3` is the iSpindel's order; `field4` a cell's voltage,
`field5` a signal in dBm and nothing behind them is GravityMon's. All others (Fermentrack, BrewPiLess, whose
users choose the fields) are not guessed at. There is no name, and a key is written for one channel, that is
one device: what the key hashes to is the identity, else the address that it came from.
"""

import hashlib

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import spindle, wire
from gateway.drivers.base import Driver
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

SPINDLE_ORDER = ("tilt", "temperature", "temp_units", "battery", "gravity", "interval", "RSSI")
GRAVITYMON_ORDER = ("gravity", "temperature", "angle", "battery", "RSSI")

CELL_VOLT = (2.0, 5.5)
SIGNAL_DBM = (-120.0, 0.0)
"""What the battery and the strength of the radio signal can be."""

KEY_DIGITS = 10
"""Of the key's SHA-256, in hex: enough to tell devices apart, too few to tell the key."""


def parse(payload: Payload) -> list[Report]:
    """One report per payload."""
    source = wire.fields(payload)
    order = _order(source)
    named = {key: source.get(f"field{place}") for place, key in enumerate(order, 1)}
    named |= {key: source[key] for key in ("api_key", "token") if key in source}
    named["name"] = identity(payload, wire.text(source, "api_key", "key") or "")
    return [spindle.parse(payload, named, temp_unit=None)]


def _order(source: Fields) -> tuple[str, ...]:
    if wire.temp_unit_letter(wire.text(source, "field3") or "") is not None:
        return SPINDLE_ORDER
    if _is_gravitymon(source):
        return GRAVITYMON_ORDER
    raise DriverError("fields that a user has chosen: which of them is the gravity is not known")


def identity(payload: Payload, key: str) -> str:
    """Who it is of that has no name."""
    if payload.label or not key:
        return payload.label or payload.source
    return hashlib.sha256(key.encode()).hexdigest()[:KEY_DIGITS]


def _is_gravitymon(source: Fields) -> bool:
    battery, signal = wire.number(source, "field4"), wire.number(source, "field5")
    return (
        battery is not None
        and signal is not None
        and CELL_VOLT[0] <= battery <= CELL_VOLT[1]
        and SIGNAL_DBM[0] <= signal < SIGNAL_DBM[1]
        and not any(key in source for key in ("field6", "field7", "field8"))
    )


DRIVER = Driver("thingspeak", "ThingSpeak", parse, paths=("/update", "/update.json"))
