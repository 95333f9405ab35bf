"""BrewPiLess, a fermentation controller that reports its hydrometer's values, too.

HTTP (vitotai/BrewPiLess src/LogFormatter.cpp, src/DataLogger.cpp, htmljs/src/js/script-logging.js, Apr 2025):
GET, POST or PUT of a text in the user's own format, of which `%b` beer temperature, `%B` its target, `%f`
fridge, `%F` its target, `%r` room, `%g` SG, `%p` Plato, `%P` psi, `%v` hydrometer volt, `%a` hydrometer
temperature, `%t` tilt, `%u` Unix time of the hydrometer's last report, `%U` unit C/F, `%m` `%M` mode, `%s`
state, `%H` host name, `%h` `%E` humidity of fridge and room, percent. The keys are the user's; these letters
and the names of the presets are understood. A missing value is `null`, an empty text, or its key is left out.
The preset for Brewfather posts JSON to `/brewpiless?id=<key>`: `id` (a name), `beerTemp`, `beerSet`,
`fridgeTemp`, `fridgeSet`, `roomTemp`, `gravity`, `tiltValue`, `auxTemp`, `extVolt`, `timestamp`, `tempUnit`,
`pressure`, `mode`, `humidity`.

MQTT (src/MqttRemoteControl.cpp): QoS 1, retained; JSON at a topic that the user sets, or one value per topic
below it: `state`, `beerTemp`, `beerSet`, `fridgeTemp`, `fridgeSet`, `roomTemp`, `mode` (a number in JSON,
else a letter), `pressure`, `fridgeHumidity`, `roomHumidity`, `gravity`, `plato`, `voltage`, `auxTemp`,
`tilt`, `hydrometerRssi`, `hydrometerName`; no temperature unit. There is no topic by default, so none is
listened to.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

LETTERS = {
    "b": "beerTemp", "B": "beerSet", "f": "fridgeTemp", "F": "fridgeSet", "r": "roomTemp", "g": "gravity",
    "p": "plato", "P": "pressure", "v": "voltage", "a": "auxTemp", "t": "tilt", "u": "timestamp",
    "U": "tempUnit", "m": "mode", "M": "mode", "s": "state", "H": "hostname", "h": "humidity",
    "E": "roomHumidity",
}  # fmt: skip
"""The letters of the user's format, where they are the keys as well, as the names of the presets."""

TEMPERATURES: dict[str, fill.Unit | None] = {
    "beerTemp": None,
    "auxTemp": None,
    "temp": None,
    "temperature": None,
}
"""The hydrometer swims in the beer: its temperature serves where the controller has no probe there."""

FURTHER_TEMPERATURES = {
    "fridgeTemp": "aux_temp",
    "roomTemp": "ext_temp",
    "beerSet": "temp_target",
    "fridgeSet": "aux_temp_target",
    "auxTemp": "hydrometer_temp",
}  # fmt: skip

NUMBERS = {
    "tiltValue": "angle",
    "tilt": "angle",
    "angle": "angle",
    "extVolt": "battery",
    "voltage": "battery",
    "battery": "battery",
    "hydrometerRssi": "rssi",
    "humidity": "humidity",
    "fridgeHumidity": "humidity",
    "roomHumidity": "room_humidity",
}  # fmt: skip

WORDS = {"mode": "mode", "state": "device_state", "hydrometerName": "hydrometer_name"}

PRESSURE_UNIT = "PSI"

NO_VALUE = "null"
"""As text, in forms and queries."""

KNOWN = frozenset(LETTERS.values()) | FURTHER_TEMPERATURES.keys() | NUMBERS.keys() | TEMPERATURES.keys()


def parse(payload: Payload) -> list[Report]:
    """One report per payload; none where beer and hydrometer have no value."""
    source = _named(wire.fields(payload))
    said = wire.text(source, "id", "name", "hostname")
    name = said or wire.text(source, "hydrometerName") or payload.label
    report = Report(
        stable_id=said or payload.label or name or payload.source,
        name=name,
        beer=wire.text(source, "beer"),
        comment=wire.text(source, "comment"),
    )
    fill.token(report, payload, source)
    fill.sg_or_plato(report, source, ("gravity", "sg", "SG"), ("plato",))
    fill.temperature(report, source, TEMPERATURES, default=None)
    fill.further_temperatures(report, source, FURTHER_TEMPERATURES)
    fill.facts(report, source, NUMBERS, {"pressure": "pressure"})
    fill.words(report, source, WORDS)
    if "pressure" in report.facts:
        report.facts["pressure_unit"] = PRESSURE_UNIT
    if report.gravity is not None:
        fill.clock(report, source, "timestamp")
    else:
        fill.drop_zeros(report, "angle", "battery", "rssi")
    if fill.measures(report):
        return [report]
    if KNOWN.isdisjoint(source):
        raise DriverError("no member that BrewPiLess has")
    return []


def _named(source: Fields) -> Fields:
    """The members by the names of the presets, which win over letters; those without a value left out."""
    there = {key: value for key, value in source.items() if value != NO_VALUE}
    letters = {LETTERS[key]: value for key, value in there.items() if key in LETTERS}
    return {**letters, **there}


DRIVER = Driver("brewpiless", "BrewPiLess", parse, paths=("/brewpiless", "/log"))
