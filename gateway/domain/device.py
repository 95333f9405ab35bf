"""A device: who it is, what it is called, what it taught us, and which brew session it is in."""

from dataclasses import dataclass, replace
from typing import Self

from gateway.domain.reading import Reading
from gateway.domain.report import GravityUnit, Report

LABEL_CHARACTERS = 64
"""A device's name is cut to this where it is a label; in readings it stays as sent."""


@dataclass(frozen=True, slots=True)
class Device:
    """One hydrometer or bridge channel. `key` is its identity: family and stable id.

    `gravity_unit` and `interval_s` are learned from its reports. `id` is 0 until it is stored.
    """

    id: int
    key: str
    family: str
    stable_id: str
    name: str
    first_seen_at: int
    gravity_unit: GravityUnit | None = None
    interval_s: int | None = None
    session_id: int | None = None

    @classmethod
    def first_seen(cls, report: Report, unix_seconds: int) -> Self:
        """The device as its first report shows it, not stored yet."""
        name = report.name[:LABEL_CHARACTERS]
        return cls(0, report.device_key, report.family, report.stable_id, name, unix_seconds)

    def learned(self, report: Report, reading: Reading) -> Self:
        """The device after this report; the very same object where it taught nothing new."""
        unit: GravityUnit | None = self.gravity_unit
        if reading.gravity:
            unit = "P" if reading.gravity_unit == "P" else "G"
        name = report.name[:LABEL_CHARACTERS] or self.name
        interval_s = report.interval_s or self.interval_s
        if (name, unit, interval_s) == (self.name, self.gravity_unit, self.interval_s):
            return self
        return replace(self, name=name, gravity_unit=unit, interval_s=interval_s)


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """A device with its last reading, as lists show it; times in Unix seconds."""

    device: Device
    readings: int
    last_seen_at: int | None
    gravity: str | None
    gravity_unit: str | None
    temp: str | None
    temp_unit: str | None
