"""The driver of a payload by its content: the table of devices section 3.3, in its order.

The table serves shared paths and topics, and aliases, where users point whatever they have: there a row that
fits only one family wins over the driver that the alias usually means, and a generic row does not.
"""

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import NamedTuple

from gateway.drivers import fill
from gateway.drivers.wire import Fields

Test = Callable[[Fields], bool]


class Row(NamedTuple):
    """A driver and the test for its payloads; `generic` if payloads of other families may look the same."""

    driver: str
    fits: Test
    generic: bool = False


def _is(key: str, value: str) -> Test:
    return lambda fields: fields.get(key) == value


def _has_one(fields: Fields, names: Collection[str]) -> bool:
    return any(name in fields for name in names)


_PROBE = frozenset({"temperature", "unit"})
"""Members of iRelay's probe, which may have a `token`, too, and nothing else."""

_OF_BREWPILESS = frozenset({"beerTemp", "fridgeTemp", "hydrometerName", "hydrometerRssi"})

_OF_RAPT = frozenset({"@device_id", "device_type", "device_gravity"})

ORDER: tuple[Row, ...] = (
    Row("tiltbridge", lambda f: "deviceID" in f and "tilts" in f),
    Row("tiltbridge_junior", lambda f: "tiltbridge_junior" in f or isinstance(f.get("tilts"), list)),
    Row("tiltbridge", lambda f: "tilts" in f and "mdns_id" in f),
    Row("fermentrack", lambda f: "brewpi_devices" in f or "gravity_sensors" in f or "brewpi" in f),
    Row("emanometer", _is("type", "eManometer")),
    Row("bricks", lambda f: "apikey" in f and "chipid" in f and any(k.startswith("s_number_") for k in f)),
    Row("pressuremon", lambda f: ("pressure-unit" in f or "pressure_unit" in f) and "temperature" in f),
    Row("gravitymon", lambda f: "corr-gravity" in f or "gravity-unit" in f or "run-time" in f),
    Row("tiltbridge", lambda f: "fermunits" in f and "SG" in f),
    Row("tilt", lambda f: "SG" in f and ("Color" in f or "Timepoint" in f)),
    Row("grainfather", lambda f: "SG" in f and "Unit" in f),
    Row("grainfather", lambda f: "specific_gravity" in f and "unit" in f, generic=True),
    Row("plaato", lambda f: "sg" in f and ("bubbles" in f or "co2_volume" in f)),
    Row("plaato", lambda f: "v102" in f and "v103" in f),
    Row("torpedo", lambda f: "currentGravity" in f or ("plato" in f and "sg" in f and "temperature" in f)),
    Row("brewpiless", lambda f: not f.keys().isdisjoint(_OF_BREWPILESS)),
    Row("brew_bubbles", _is("api_name", "Brew Bubbles")),
    Row("theengs", lambda f: ("model_id" in f and "gravity" in f) or "manufacturerdata" in f),
    Row("home_assistant", lambda f: "entity_id" in f and "state" in f),
    Row("tiltbridge", lambda f: "gravity" in f and "color" in f and "device" in f),
    Row("tilt_tools", lambda f: "gravity" in f and "color" in f and "angle" not in f),
    Row("rapt", lambda f: "device_id" in f and "gravity" in f and "temperature" in f and "angle" not in f),
    Row("rapt", lambda f: not f.keys().isdisjoint(_OF_RAPT)),
    Row("rapt", lambda f: "specific_gravity_uncali" in f and "battery" in f),
    Row("tilt_tools", lambda f: "specific_gravity_uncali" in f),
    Row("brewblox", lambda f: "key" in f and isinstance(f.get("data"), dict)),
    Row("aws", lambda f: isinstance(f.get("state"), dict) and "reported" in f["state"]),
    Row("thingspeak", lambda f: "field1" in f and "field2" in f),
    Row("blynk", lambda f: "v1" in f and "v2" in f and "token" in f),
    Row("fhem", lambda f: "cmd.Test" in f),
    Row("tcontrol", lambda f: next(iter(f), "").startswith("T: ")),
    Row("smartpid", lambda f: "temp" in f and "runmode" in f),
    Row("itilt", lambda f: "Temperature from DS18B20" in f or "beer-temperature" in f),
    Row("irelay", lambda f: f.keys() >= _PROBE and f.keys() - _PROBE <= {"token"}),
    Row("ispindel", lambda f: ("angle" in f or "tilt" in f) and "temperature" in f, generic=True),
    Row("stream", lambda f: "temp" in f, generic=True),
    Row(
        "stream",
        lambda f: _has_one(f, fill.GRAVITY_NAMES) and _has_one(f, fill.NAMED_TEMPERATURES),
        generic=True,
    ),
)
"""The tests in their order.

Beyond the table of section 3.3: objects of TiltBridge, Torpedo and raptpill2mqtt by MQTT, RAPT's usual
templates, Plaato's pins, the envelopes of Brewblox and AWS, iRelay's probe, SmartPID, iTilt, iSpindel
and GravityMon by numbers or as a command, and a gravity beside a temperature whose name has its unit."""


LOOKED_INTO = frozenset({"type", "tilts", "api_name", "data", "state"})
"""Members at whose value a row looks. All other tests look at names alone."""

NAMES_CHARACTERS = 512
"""The most characters in the names of an object whose row is remembered."""


def recognise(fields: Fields) -> Row | None:
    """Return the first row that fits, or None."""
    if LOOKED_INTO.isdisjoint(fields) and len("".join(fields)) <= NAMES_CHARACTERS:
        return _row_by_names(tuple(fields))
    return _row_of(fields)


@lru_cache(maxsize=256)
def _row_by_names(names: tuple[str, ...]) -> Row | None:
    return _row_of(dict.fromkeys(names))


def _row_of(fields: Fields) -> Row | None:
    return next((row for row in ORDER if row.fits(fields)), None)
