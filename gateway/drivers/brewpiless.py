"""BrewPiLess, a fermentation controller that reports its hydrometer's values, too.

HTTP (vitotai/BrewPiLess src/LogFormatter.cpp, src/DataLogger.cpp, htmljs/src/js/script-logging.js, Apr 2025):
GET, POST or PUT of a text in the user's own format, of which `%b` beer temperature, `%B` its target, `%f`
fridge, `%F` its target, `%r` room, `%g` SG, `%p` Plato, `%P` psi, `%v` hydrometer volt, `%a` hydrometer
temperature, `%t` tilt, `%u` Unix time of the hydrometer's last report, `%U` unit C/F, `%m` `%M` mode, `%s`
state, `%H` host name, `%h` `%E` humidity of fridge and room, percent. The keys are the user's; these letters
and the names of the presets and of devices section 13 are understood. A missing value is `null`, an empty
text, or its key is left out. The preset for Brewfather posts JSON to `/brewpiless?id=<key>`: `id` (a name),
`beerTemp`, `beerSet`, `fridgeTemp`, `fridgeSet`, `roomTemp`, `gravity`, `tiltValue`, `auxTemp`, `extVolt`,
`timestamp`, `tempUnit`, `pressure`, `mode`, `humidity`; the one for Ubidots the JSON that it also has for
MQTT.

Of the hydrometer (src/ExternalData.h, src/ExternalData.cpp): before its first report `%u` is 0, and where
BrewPiLess is set to Plato it then gives its mark for no gravity, -1, converted to SG: 0.9961. A gravity that
the user typed in has no time either, and stays. When a hydrometer falls silent, its last values are sent on
and on with the same `%u`. A Tilt's `tilt` is its SG. `hydrometerName` is `unkown` (sic) without one, and of
iSpindel, Tilt and Pill it may be no more than that word.

MQTT (src/MqttRemoteControl.cpp): QoS 1, retained; JSON at a topic that the user sets, or one value per topic
below it: `state`, `beerTemp`, `beerSet`, `fridgeTemp`, `fridgeSet`, `roomTemp`, `mode` (a number in JSON,
else a letter), `pressure`, `fridgeHumidity`, `roomHumidity`, `gravity`, `plato`, `voltage`, `auxTemp`,
`tilt`, `hydrometerRssi`, `hydrometerName`; no temperature unit. There is no topic by default, so none is
listened to.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, identity, wire
from gateway.drivers.base import Driver
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

LETTERS = {
    "b": "beerTemp", "B": "beerSet", "f": "fridgeTemp", "F": "fridgeSet", "r": "roomTemp", "g": "gravity",
    "p": "plato", "P": "pressure", "v": "voltage", "a": "auxTemp", "t": "tilt", "u": "timestamp",
    "U": "tempUnit", "m": "mode", "M": "mode", "s": "state", "H": "hostname", "h": "humidity",
    "E": "roomHumidity",
}  # fmt: skip
"""The presets' name for each letter of the user's format: some users take the letters as keys."""

TEMPERATURES: dict[str, fill.Unit | None] = {
    "beerTemp": None,
    "temp": None,
    "temperature": None,
    **fill.TEMPERATURE_NAMES,
}
"""Names of the beer's temperature. The hydrometer swims in the beer: its `auxTemp` serves if the controller
has no probe there."""

FURTHER_TEMPERATURES = {
    "fridgeTemp": "aux_temp",
    "roomTemp": "ext_temp",
    "beerSet": "temp_target",
    "fridgeSet": "aux_temp_target",
    "auxTemp": "hydrometer_temp",
}  # fmt: skip

NUMBERS = fill.NUMBER_NAMES | {
    "humidity": "humidity",
    "fridgeHumidity": "humidity",
    "roomHumidity": "room_humidity",
}

WORDS = {"mode": "mode", "state": "device_state", "hydrometerName": "hydrometer_name"}

NO_HYDROMETER = "unkown"
KINDS_OF_HYDROMETER = frozenset({"iSpindel", "Tilt", "Pill"})
"""Names of hydrometers that any number of devices may share."""

OF_HYDROMETER = ("auxTemp", "voltage", "extVolt", "hydrometerRssi")
"""Values of a hydrometer. After its first report a hydrometer has one of them at least."""

NO_GRAVITY_SG, NO_GRAVITY_PLATO = 0.9961, -1
"""The mark of a BrewPiLess in Plato for no gravity: in SG with four digits or more, and in Plato."""

STALE_S = 3_600
"""Seconds after which the values of a silent hydrometer are old; most report every 15 minutes."""

TILT_SG = (0.9, 1.3)
"""Angles at which nothing floats: a Tilt's SG in the place of an angle."""

PRESSURE_UNIT = "PSI"

NO_VALUE = "null"
"""The text for no value, in forms and queries."""

KNOWN = frozenset(LETTERS.values()) | FURTHER_TEMPERATURES.keys() | NUMBERS.keys() | TEMPERATURES.keys()

SPINDLE = frozenset({"ID", "angle", "temperature"})
"""Members of every iSpindel. None of BrewPiLess' own formats has `ID`, so at a shared address they mean an
iSpindel.

At an address that the user gave to BrewPiLess they are names of the user's own."""


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none if beer and hydrometer have no value."""
    given = {k: v for k, v in wire.fields(payload).items() if v not in (NO_VALUE, NO_HYDROMETER)}
    # The names of the presets win over letters.
    source = {LETTERS[key]: value for key, value in given.items() if key in LETTERS} | given
    if payload.driver is None and source.keys() >= SPINDLE:
        raise DriverError("an iSpindel's JSON")
    said = wire.text(source, "id", "name", "hostname", "host")
    hydrometer = wire.text(source, "hydrometerName") or ""
    own_name = hydrometer if hydrometer not in KINDS_OF_HYDROMETER else ""
    report = Report(
        stable_id=said or payload.label or own_name or payload.source or hydrometer,
        name=said or hydrometer or payload.label,
        beer=wire.text(source, "beer"),
        comment=wire.text(source, "comment"),
    )
    identity.settle(report, payload, source, shared=not (said or payload.label or own_name))
    fill.token(report, payload, source)
    fill.any_gravity(report, source, unit="G", reason=fill.FORMAT_SAYS, required=False)
    if report.gravity is not None and _is_no_gravity(report.gravity, source):
        report.gravity = None
    fill.temperature(report, source, TEMPERATURES, default=None)
    fill.further_temperatures(report, source, FURTHER_TEMPERATURES)
    fill.facts(report, source, NUMBERS, fill.NUMERAL_NAMES)
    fill.words(report, source, WORDS)
    if "pressure" in report.facts:
        report.facts["pressure_unit"] = PRESSURE_UNIT
    if report.gravity is not None:
        _set_time(report, source, payload.received_at)
    else:
        fill.drop_zeros(report, "angle", "battery", "rssi")
    angle = report.facts.get("angle")
    if isinstance(angle, int | float) and TILT_SG[0] <= angle <= TILT_SG[1]:
        del report.facts["angle"]
    if fill.measures(report):
        return [report]
    if KNOWN.isdisjoint(source):
        raise DriverError("no member that BrewPiLess has")
    return []


def _is_no_gravity(gravity: str, source: Fields) -> bool:
    """Return whether the gravity is the mark for none: of time 0, or without a hydrometer's values."""
    if round(float(gravity), 4) != NO_GRAVITY_SG:
        return False
    reported = wire.number(source, "timestamp")
    if reported is not None:
        return reported == 0
    return wire.number(source, "plato") == NO_GRAVITY_PLATO and wire.numeral(source, *OF_HYDROMETER) is None


def _set_time(report: Report, source: Fields, received_at: float) -> None:
    """Set the time of the hydrometer's last report, if that is recent.

    If it is old, the controller's temperatures are of now, and the gravity is marked as old.
    """
    fill.clock(report, source, "timestamp")
    reported = report.measured_at
    if reported == 0:
        report.measured_at = None
    elif reported is not None and received_at - reported > STALE_S:
        report.measured_at = None
        report.facts["device_time"] = reported
        report.flags.append("gravity_stale")


DRIVER = Driver("brewpiless", "BrewPiLess", parse, paths=("/brewpiless", "/log"))
