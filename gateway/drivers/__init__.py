"""Drivers: one pure module per device family, and the one place that knows them all.

A new family is a module with a `DRIVER`, a line in `DRIVERS`, and a folder of cases.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import gravitymon, ispindel, tilt, wire
from gateway.drivers.base import Driver
from gateway.drivers.recognise import recognise
from gateway.errors import DriverError

DRIVERS: tuple[Driver, ...] = (ispindel.DRIVER, gravitymon.DRIVER, tilt.DRIVER)

BY_NAME = {driver.name: driver for driver in DRIVERS}

REPORTS_PER_PAYLOAD = 64
"""A bridge with more channels than that is not a bridge."""

IDENTITY_CHARACTERS = 128
"""A device id at most; the longest known is a GUID."""


def decode(payload: Payload) -> list[Report]:
    """The reports in a payload, by the driver that its address names or its content shows."""
    name = payload.driver or recognise(wire.fields(payload))
    if name is None:
        raise DriverError("no device that is known sends this")
    driver = BY_NAME.get(name)
    if driver is None:
        raise DriverError(f"looks like {name}, for which there is no driver yet")
    reports = driver.parse(payload)
    if len(reports) > REPORTS_PER_PAYLOAD:
        raise DriverError(f"{len(reports)} readings in one payload")
    if any(len(report.stable_id) > IDENTITY_CHARACTERS for report in reports):
        raise DriverError(f"a device id of more than {IDENTITY_CHARACTERS} characters")
    return reports


__all__ = ["BY_NAME", "DRIVERS", "Driver", "decode"]
