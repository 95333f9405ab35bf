"""Which driver a payload is for, by its content: the table of devices section 3.3, in its order.

Asked on shared paths and topics, and on aliases, where users point whatever they have: there a row that fits
only one family wins over the driver that the alias usually means, and a generic row does not.
"""

from collections.abc import Callable
from typing import NamedTuple

from gateway.drivers.wire import Fields

Test = Callable[[Fields], bool]


class Row(NamedTuple):
    """A driver and what shows that a payload is its own; generic where other families may look the same."""

    driver: str
    fits: Test
    generic: bool = False


def _is(key: str, value: str) -> Test:
    return lambda fields: fields.get(key) == value


_HYDROMETER = frozenset({"name", "ID", "angle", "tilt", "gravity", "specific_gravity"})
"""Members that iRelay's probe has none of."""

ORDER: tuple[Row, ...] = (
    Row("tiltbridge_junior", lambda f: "tiltbridge_junior" in f or isinstance(f.get("tilts"), list)),
    Row("tiltbridge", lambda f: "tilts" in f and "mdns_id" in f),
    Row("fermentrack", lambda f: "brewpi_devices" in f or "gravity_sensors" in f or "brewpi" in f),
    Row("emanometer", _is("type", "eManometer")),
    Row("bricks", lambda f: "apikey" in f and "chipid" in f and any(k.startswith("s_number_") for k in f)),
    Row("pressuremon", lambda f: ("pressure-unit" in f or "pressure_unit" in f) and "temperature" in f),
    Row("gravitymon", lambda f: "corr-gravity" in f or "gravity-unit" in f or "run-time" in f),
    Row("tilt", lambda f: "SG" in f and ("Color" in f or "Timepoint" in f)),
    Row("grainfather", lambda f: "SG" in f and "Unit" in f),
    Row("grainfather", lambda f: "specific_gravity" in f and "unit" in f),
    Row("plaato", lambda f: "sg" in f and ("bubbles" in f or "co2_volume" in f)),
    Row("torpedo", lambda f: "currentGravity" in f or {"sg", "plato", "temperature"} <= f.keys()),
    Row("brewpiless", lambda f: "beerTemp" in f or "fridgeTemp" in f),
    Row("brew_bubbles", _is("api_name", "Brew Bubbles")),
    Row("tilt_tools", lambda f: "gravity" in f and "color" in f and "angle" not in f),
    Row("rapt", lambda f: "device_id" in f and "gravity" in f and "temperature" in f and "angle" not in f),
    Row("brewblox", lambda f: "key" in f and isinstance(f.get("data"), dict)),
    Row("aws", lambda f: isinstance(f.get("state"), dict) and "reported" in f["state"]),
    Row("thingspeak", lambda f: "field1" in f and "field2" in f),
    Row("blynk", lambda f: {"token", "v1", "v2"} <= f.keys()),
    Row("fhem", lambda f: "cmd.Test" in f),
    Row("tcontrol", lambda f: next(iter(f), "").startswith("T: ")),
    Row("smartpid", lambda f: "temp" in f and "runmode" in f),
    Row("itilt", lambda f: "beer-temperature" in f or "Temperature from DS18B20" in f),
    Row("irelay", lambda f: {"temperature", "unit"} <= f.keys() and f.keys().isdisjoint(_HYDROMETER)),
    Row("ispindel", lambda f: ("angle" in f or "tilt" in f) and "temperature" in f, generic=True),
    Row("stream", lambda f: "temp" in f, generic=True),
)
"""Beyond the table of section 3.3: RAPT's usual template, Brewblox's and AWS' envelopes, iRelay's probe,
Torpedo by MQTT, SmartPID, iTilt, and the iSpindel's and GravityMon's services with numbered values or a command."""


def recognise(fields: Fields) -> Row | None:
    """The first row that fits, or None."""
    return next((row for row in ORDER if row.fits(fields)), None)
