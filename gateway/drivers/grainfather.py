"""Grainfather's shapes for a Tilt; the path alone says which Tilt it is.

`POST /iot/<id>/tilt` of `{"Temp","Unit" F/C,"SG"}`, figures as text, one path per colour (thorrak/tiltbridge
src/sendData.cpp), and of `{"specific_gravity","temperature","unit"}` with `fahrenheit` or `celsius`
(linjmeyer/tilt-pitch pitch/providers/grainfather.py). Fermentrack (external_push/models.py) posts an
iSpindel's JSON to Grainfather, which is read as such. TiltBridge takes 200 alone as success.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, spindle, wire
from gateway.drivers.base import Driver
from gateway.drivers.tilt import is_version_beacon

TEMPERATURES: dict[str, fill.Unit | None] = {"Temp": None, "temperature": None}


def parse(payload: Payload) -> list[Report]:
    """One report per payload; it has no name, and the path's word as its id."""
    source = wire.fields(payload)
    if "gravity" in source and "temperature" in source:
        return [spindle.parse(payload, source)]
    report = Report(stable_id=payload.label)
    fill.token(report, payload, source)
    fill.named_gravity(report, source, {"SG": "G", "specific_gravity": "G"})
    fill.temperature(report, source, TEMPERATURES, None)
    if is_version_beacon(report):
        return []
    return fill.only_measured(report, source, "SG", "specific_gravity", *TEMPERATURES)


DRIVER = Driver(
    "grainfather", "Grainfather stream", parse, paths=("/iot/{label}/tilt", "/iot/{label}/custom")
)
