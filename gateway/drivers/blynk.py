"""Blynk, as GravityMon calls it.

GET `/external/api/batch/update?token=<token>&v1=<temp>&v2=<gravity>&v3=<angle>`
(mp-se/gravitymon src_docs/source/services.rst). Users choose the pins, so values are taken only where `v2`
can be a gravity and `v3` an angle; beside an angle `v2` may be `nan`. There are no units and no name: the
token's hash is the identity.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import spindle, wire
from gateway.drivers.base import Driver
from gateway.drivers.thingspeak import identity_of
from gateway.errors import DriverError

LEAST_GRAVITY, MOST_GRAVITY = -5.0, 45.0
MOST_ANGLE_DEGREE = 180.0


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload."""
    source = wire.fields(payload)
    gravity, angle = wire.number(source, "v2"), wire.number(source, "v3")
    if angle is not None and not 0 <= angle <= MOST_ANGLE_DEGREE:
        raise DriverError("v3 is no angle")
    if gravity is None and (angle is None or not wire.is_missing(source, "v2")):
        raise DriverError("v2 is no gravity")
    if gravity is not None and not LEAST_GRAVITY <= gravity <= MOST_GRAVITY:
        raise DriverError("v2 is no gravity")
    members = {"temperature": source.get("v1"), "gravity": source.get("v2"), "angle": source.get("v3")}
    key = wire.text(source, "token") or ""
    members |= {"token": key, "name": identity_of(payload, source, key)}
    return [spindle.parse(payload, members, temp_unit=None)]


DRIVER = Driver("blynk", "Blynk", parse, paths=("/external/api/batch/update",))
