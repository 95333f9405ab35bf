"""iSpindel: generic HTTP JSON, and MQTT one value per topic.

HTTP (universam1/iSpindel, pio/src/iSpindel.cpp and pio/lib/Sender/Sender.cpp, firmware 7.3.3): POST of
`{"name","ID","token"?,"angle","temperature","temp_units","battery","gravity","interval","RSSI"}`.
`ID` is the chip id, a number that survives renaming. `gravity` is what the user's polynomial yields, by
default degrees Plato; 0 where the expression does not parse, null for NaN, negative when upright in water.
`interval` is 1 on the test send after saving. Firmware 5.6.2 has no `temp_units` and no `RSSI`.

MQTT (same sources): seven publishes `ispindel/<name>/` + `tilt`, `temperature`, `temp_units`, `battery`,
`gravity`, `interval`, `RSSI`, plain text, no `ID`. The MQTT part puts them together as one JSON object of
texts; GravityMon's default template uses the same root and adds `velocity`.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import spindle, wire
from gateway.drivers.base import Driver


def parse(payload: Payload) -> list[Report]:
    """One report per payload."""
    source = wire.fields(payload)
    report = spindle.parse(payload, "ispindel", source)
    if report.gravity is None and "gravity" not in source and "angle" in report.facts:
        # iSpindel-TCP-Server's CraftBeerPi forward can put gravity into `angle`; nothing tells which.
        report.flags = [
            "angle_may_be_gravity" if flag == "gravity_missing" else flag for flag in report.flags
        ]
    return [report]


DRIVER = Driver("ispindel", "iSpindel", parse)
