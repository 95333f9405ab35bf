"""The reading of an ordinary payload: one report of a known device that teaches nothing new about the device.

Pure but for its own memory. What is not ordinary goes the long way, as if this module had never seen it.
"""

from typing import NamedTuple

from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.drivers import decode
from gateway.intake.devices import DeviceRegistry, TrackedDevice
from gateway.intake.normalise import normalise

LONGEST_BYTES = 4 * 1024
"""Bytes of the longest ordinary body; the longest known one of a hydrometer has 1,100."""


class Understood(NamedTuple):
    """The reading in an ordinary payload, the report that it was made of, and its device.

    `report` serves readings of one device again and again: its `gravity`, `temp` and `facts` may be those of
    an earlier payload. `reading` is always this payload's own.
    """

    report: Report
    tracked: TrackedDevice
    reading: Reading


class Plans:
    """Decodes and normalises ordinary payloads."""

    def __init__(self, devices: DeviceRegistry) -> None:
        self._devices = devices

    def read(self, payload: Payload) -> Understood | None:
        """Return the reading of an ordinary payload, None for any other; no device has changed.

        Call this function only while the wall clock is trusted.
        """
        if len(payload.body) > LONGEST_BYTES:
            return None
        try:
            decoded = decode(payload)
        except Exception:  # no driver's, or our mistake: the long way tells which, and keeps it
            return None
        if len(decoded.reports) != 1 or decoded.trouble is not None:
            return None
        report = decoded.reports[0]
        self._devices.recognise(report)
        tracked = self._devices.get(report.device_key)
        if tracked is None:
            return None
        reading, inferred = normalise(report, tracked.device, payload)
        if tracked.device.learned(report, reading, inferred) is not tracked.device:
            return None
        return Understood(report, tracked, reading)
