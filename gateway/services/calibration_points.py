"""Points for a calibration that the store can offer: readings with a tilt, and hand readings near one."""

from dataclasses import dataclass

from gateway.domain.device import Device
from gateway.services.build import Services
from gateway.services.devices import angle_of

NEAR_S = 3600
"""Seconds between a hand reading and a reading with a tilt at most: so long a beer stays as it is."""

READINGS = 200
"""Latest readings of a device that are looked through for tilts."""

OFFERED = 12
"""Readings, and hand readings, that are offered at most."""


@dataclass(frozen=True, slots=True)
class TiltReading:
    """A reading with a tilt in degrees, and its gravity (SG) if it has one; `at` is Unix seconds."""

    at: int
    tilt: float
    sg: float | None


@dataclass(frozen=True, slots=True)
class OfferedPoint:
    """A hand reading (SG) of the device's brew, and the tilt that the device had then."""

    at: int
    tilt: float
    sg: float


async def readings_with_tilt(services: Services, device: Device) -> list[TiltReading]:
    """Return some of a device's latest readings with a tilt, spread evenly, newest first."""
    found = [
        TiltReading(each.reading.created_at, tilt, each.reading.sg)
        for each in await services.devices.latest(device.id, READINGS)
        if (tilt := angle_of(each.reading)) is not None
    ]
    return found[:: max(1, -(-len(found) // OFFERED))]


async def offered_points(services: Services, device: Device) -> list[OfferedPoint]:
    """Return the hand readings of a device's brew that have a reading with a tilt near them."""
    if device.session_id is None:
        return []
    session = await services.store.sessions.get(device.session_id)
    points: list[OfferedPoint] = []
    for event in await services.timeline.events(session) if session is not None else []:
        if event.sg is None or len(points) == OFFERED:
            continue
        near = await services.devices.nearest_tilt(device.id, event.at, NEAR_S)
        if near is not None:
            points.append(OfferedPoint(event.at, near[1], event.sg))
    return points
