"""Which driver a payload on a shared path or topic is for: the table of devices section 3.3, in its order.

The rows name families that have no driver yet as well: their payloads must not fall through to a row that
fits less. They go to quarantine, from which a later version replays them.
"""

from collections.abc import Callable

from gateway.drivers.wire import Fields

Test = Callable[[Fields], bool]


def _is(key: str, value: str) -> Test:
    return lambda fields: fields.get(key) == value


ORDER: tuple[tuple[str, Test], ...] = (
    ("tiltbridge_junior", lambda f: "tiltbridge_junior" in f or isinstance(f.get("tilts"), list)),
    ("tiltbridge", lambda f: "tilts" in f and "mdns_id" in f),
    ("fermentrack", lambda f: "brewpi_devices" in f or "gravity_sensors" in f or "brewpi" in f),
    ("emanometer", _is("type", "eManometer")),
    ("bricks", lambda f: "apikey" in f and "chipid" in f and any(k.startswith("s_number_") for k in f)),
    ("pressuremon", lambda f: ("pressure-unit" in f or "pressure_unit" in f) and "temperature" in f),
    ("gravitymon", lambda f: "corr-gravity" in f or "gravity-unit" in f or "run-time" in f),
    ("tilt", lambda f: "SG" in f and ("Color" in f or "Timepoint" in f)),
    ("grainfather", lambda f: "SG" in f and "Unit" in f),
    ("tilt_pitch", lambda f: "specific_gravity" in f and "unit" in f),
    ("plaato", lambda f: "sg" in f and ("bubbles" in f or "co2_volume" in f)),
    ("torpedo", lambda f: "currentGravity" in f),
    ("brewpiless", lambda f: "beerTemp" in f or "fridgeTemp" in f),
    ("brew_bubbles", _is("api_name", "Brew Bubbles")),
    ("tilt_pitch", lambda f: "gravity" in f and "color" in f and "angle" not in f),
    ("ispindel", lambda f: ("angle" in f or "tilt" in f) and "temperature" in f),
    ("stream", lambda f: "temp" in f),
)


def recognise(fields: Fields) -> str | None:
    """The name of the first row that fits, or None."""
    return next((name for name, test in ORDER if test(fields)), None)
