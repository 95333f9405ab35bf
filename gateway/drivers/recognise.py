"""Which driver a payload on a shared path or topic is for: the table of devices section 3.3, in its order.

The rows name families that have no driver yet as well: their payloads must not fall through to a row that
fits less. They go to quarantine, from which a later version replays them.
"""

from collections.abc import Callable

from gateway.drivers.wire import Fields, has

Test = Callable[[Fields], bool]


def _is(key: str, value: str) -> Test:
    return lambda fields: fields.get(key) == value


ORDER: tuple[tuple[str, Test], ...] = (
    ("tiltbridge_junior", lambda f: has(f, "tiltbridge_junior") or isinstance(f.get("tilts"), list)),
    ("tiltbridge", lambda f: has(f, "tilts", "mdns_id")),
    ("fermentrack", lambda f: has(f, "brewpi_devices") or has(f, "gravity_sensors") or has(f, "brewpi")),
    ("emanometer", _is("type", "eManometer")),
    ("bricks", lambda f: has(f, "apikey", "chipid") and any(k.startswith("s_number_") for k in f)),
    ("pressuremon", lambda f: (has(f, "pressure-unit") or has(f, "pressure_unit")) and has(f, "temperature")),
    ("gravitymon", lambda f: has(f, "corr-gravity") or has(f, "gravity-unit") or has(f, "run-time")),
    ("tilt", lambda f: has(f, "SG") and (has(f, "Color") or has(f, "Timepoint"))),
    ("grainfather", lambda f: has(f, "SG", "Unit")),
    ("tilt_pitch", lambda f: has(f, "specific_gravity", "unit")),
    ("plaato", lambda f: has(f, "sg") and (has(f, "bubbles") or has(f, "co2_volume"))),
    ("torpedo", lambda f: has(f, "currentGravity")),
    ("brewpiless", lambda f: has(f, "beerTemp") or has(f, "fridgeTemp")),
    ("brew_bubbles", _is("api_name", "Brew Bubbles")),
    ("tilt_pitch", lambda f: has(f, "gravity", "color") and not has(f, "angle")),
    ("ispindel", lambda f: (has(f, "angle") or has(f, "tilt")) and has(f, "temperature")),
    ("stream", lambda f: has(f, "temp")),
)


def recognise(fields: Fields) -> str | None:
    """The name of the first row that fits, or None."""
    return next((name for name, test in ORDER if test(fields)), None)
