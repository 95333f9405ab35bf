"""Grainfather's shapes for a Tilt; most clients name the Tilt in the path alone.

`POST /iot/<id>/tilt` of `{"Temp","Unit" F/C,"SG"}`, figures as text, one path per colour (thorrak/tiltbridge
src/sendData.cpp), and of `{"specific_gravity","temperature","unit"}` with `fahrenheit` or `celsius`
(linjmeyer/tilt-pitch pitch/providers/grainfather.py). Fermentrack (external_push/models.py) posts an
iSpindel's JSON to Grainfather, which is read as such. Templates of the user's own (RAPT portal, tilty) add a
`name` and further members. TiltBridge takes 200 alone as success.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, identity, spindle, wire
from gateway.drivers.base import Driver
from gateway.drivers.tilts import is_version_beacon, mend_high_resolution

TEMPERATURES: dict[str, fill.Unit | None] = {"Temp": None, "temperature": None}


NUMBERS = {"battery": "battery", "rssi": "rssi", "RSSI": "rssi", "angle": "angle"}


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload. Without a name, the path's word is its id, else the sender's address."""
    source = wire.fields(payload)
    if "gravity" in source and "temperature" in source:
        return [spindle.parse(payload, source)]
    name, _ = spindle.split_name(wire.text(source, "name") or "")
    report = Report(stable_id=name or payload.label or payload.source, name=name)
    identity.settle(report, payload, source, shared=not (name or payload.label))
    fill.token(report, payload, source)
    fill.named_gravity(report, source, {"SG": "G", "specific_gravity": "G"})
    fill.temperature(report, source, TEMPERATURES, None)
    mend_high_resolution(report)
    fill.facts(report, source, NUMBERS)
    if is_version_beacon(report):
        return []
    return fill.only_measured(report, source, "SG", "specific_gravity", *TEMPERATURES)


DRIVER = Driver(
    "grainfather", "Grainfather stream", parse, paths=("/iot/{label}/tilt", "/iot/{label}/custom")
)
