"""iSpindel: generic HTTP JSON, and MQTT one value per topic.

HTTP (universam1/iSpindel, pio/src/iSpindel.cpp and pio/lib/Sender/Sender.cpp, firmware 7.3.3): POST of
`{"name","ID","token"?,"angle","temperature","temp_units","battery","gravity","interval","RSSI"}`.
`ID` is the chip id, a number that survives renaming. `gravity` is the result of the user's polynomial, by
default degrees Plato; 0 if the expression does not parse, null for NaN, negative when upright in water.
`interval` is 1 on the test send after saving. Firmware 5.6.2 has no `temp_units` and no `RSSI`.

Drafts of 3.x [devices section 5.2] send `name`, `temperature`, `angle` and `battery` in percent only.

MQTT (same sources): seven publishes `ispindel/<name>/` + `tilt`, `temperature`, `temp_units`, `battery`,
`gravity`, `interval`, `RSSI`, plain text, no `ID`. The MQTT part puts them together as one JSON object of
texts; GravityMon's default template uses the same root and adds `velocity`, and so does eManometer, whose
readings are handed over to its driver.

Forwards by iSpindel-TCP-Server (DottoreTozzi/iSpindel-TCP-Server iSpindle.py): no `temp_units`, `recipe` is
the beer, `n/a` and `None` are none, as is token `*` and, of old firmware, `RSSI` 0; to CraftBeerPi only
`name`, `angle`, `temperature`, `battery`, where `angle` may be the gravity. Fermentrack's push for
Grainfather (thorrak/fermentrack external_push/models.py): `name` is `<id>,SG`, and `ID`, `angle`, `battery`
and `RSSI` are 0.

JSON without `name` and `ID` is in Ubidots' format, which GravityMon posts to any path (mp-se/gravitymon-ui
gravityFormatOptions.js): its temperature has no unit.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import emanometer, spindle, stream, wire
from gateway.drivers.base import Driver, ValueTopics

TOPICS = "mqtt"
"""The beginning of the channel of single values, whose names are in the topic."""

CRAFTBEERPI_FORWARD = frozenset({"name", "angle", "temperature", "battery"})


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none for a custom stream that is empty."""
    source = wire.fields(payload)
    if emanometer.fits(source):
        return emanometer.parse(payload)
    if stream.fits(source):
        return stream.parse(payload)
    is_own = "name" in source or "ID" in source or payload.channel.startswith(TOPICS)
    report = spindle.parse(payload, source, temp_unit="C" if is_own else None)
    # A draft that sends the angle has a battery in percent; else `angle` may be the gravity.
    if (
        "gravity" not in source
        and "angle" in report.facts
        and "battery_percent" not in report.facts
        and source.keys() <= CRAFTBEERPI_FORWARD
    ):
        report.flags = [
            "angle_may_be_gravity" if flag == "gravity_missing" else flag for flag in report.flags
        ]
    return [report]


DRIVER = Driver(
    "ispindel",
    "iSpindel",
    parse,
    paths=(
        "/ispindel", "/iSpindel", "/ispindle", "/iSpindle", "/api/ispindel", "/API/iSpindel", "/API/iSpindle",
        "/ispindel/{token}", "/ispindel_sg/{token}", "/gravity", "/api/hydrometer/v1/data",
        "/api/v1/json", "/api/data", "/data/{token}", "/iot/{label}/ispindel", "/api/irelay", "/api/nautilis",
    ),
    values=(ValueTopics("ispindel/{label}/{key}", last=frozenset({"RSSI", "rssi"})),),
)  # fmt: skip
