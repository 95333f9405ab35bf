"""A device: its identity, its names, the units learned from it, the user's settings, its brew session."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Self

from gateway.domain.calibration import Calibration
from gateway.domain.reading import Reading
from gateway.domain.report import GravityUnit, Report, TempUnit, folded
from gateway.domain.texts import did_you_mean, label_of
from gateway.errors import NameTaken, NotFound


class Evidence(Enum):
    """The strength of a reading's evidence for the unit of the device's other readings."""

    NONE = "none"
    """No evidence: the unit was set by the user, taken from the device's past, or guessed."""
    RANGE = "range"
    """Evidence by size: the value can only have this unit, but a single odd value may have another."""
    EXPLICIT = "explicit"
    """The payload names the unit."""


Inferences = dict[str, tuple[str, str, Evidence]]
"""The inferences from one report by name: `gravity_unit` -> (`P`, the reason, the evidence)."""

USUAL_TEMP_UNIT = "usual_temp_unit"
"""The key, among the inferences, of the unit that the device's temperatures usually have."""

IN_DOUBT = {"gravity_unit": "gravity_unit_in_doubt", "temp_unit": "temp_unit_in_doubt"}
"""The keys, among the inferences, of a unit in doubt: the last reading had another unit than usual, by its
size."""

Span = tuple[int, int]
"""The first and last second of a span, in Unix seconds, both inclusive."""


EXCLUDED_SPANS = 100
"""The most spans that a device can have excluded."""

NOT_CALIBRATED = Calibration()


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """The user's settings of a device; the defaults change nothing.

    The units win over the device's own. `interval_s` is sent to devices that listen (TCP). Readings of the
    `excluded` spans are kept and count in no statistics. `source` is the only address that the device may
    report from, empty for every address.
    """

    label: str = ""
    gravity_unit: GravityUnit | None = None
    temp_unit: TempUnit | None = None
    interval_s: int | None = None
    calibration: Calibration = NOT_CALIBRATED
    excluded: tuple[Span, ...] = ()
    source: str = ""

    def excludes(self, unix_seconds: int) -> bool:
        """Return whether a reading of that time is excluded."""
        return any(first <= unix_seconds <= last for first, last in self.excluded)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON, without the defaults."""
        plain: dict[str, Any] = {
            "label": self.label,
            "gravity_unit": self.gravity_unit,
            "temp_unit": self.temp_unit,
            "interval_s": self.interval_s,
            "calibration": None if self.calibration.is_identity else self.calibration.to_dict(),
            "excluded": [list(span) for span in self.excluded],
            "source": self.source,
        }
        return {name: value for name, value in plain.items() if value}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Read a dictionary of `to_dict`. Ignore members of later versions."""
        return cls(
            label=plain.get("label", ""),
            gravity_unit=plain.get("gravity_unit"),
            temp_unit=plain.get("temp_unit"),
            interval_s=plain.get("interval_s"),
            calibration=Calibration.from_dict(plain.get("calibration", {})),
            excluded=tuple((first, last) for first, last in plain.get("excluded", [])),
            source=plain.get("source", ""),
        )


DEFAULT_SETTINGS = DeviceSettings()


@dataclass(frozen=True, slots=True)
class Alias:
    """The identity of a device that was merged into this one: its later payloads belong to this device."""

    key: str
    family: str
    stable_id: str


@dataclass(frozen=True, slots=True)
class Device:
    """A hydrometer or a channel of a bridge. `key` is its identity: family and stable id, or its MAC.

    The device's reports teach `gravity_unit` (the usual unit of its gravities without a unit), `interval_s`,
    and `inferred` (the last inferences with their reasons). `id` is 0 until the device is stored. While
    `reprocessing` is set, the device's stored payloads are read again under other settings.
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
    settings: DeviceSettings = DEFAULT_SETTINGS
    inferred: dict[str, tuple[str, str]] = field(default_factory=dict)
    reprocessing: bool = False
    aliases: tuple[Alias, ...] = ()

    def is_of(self, report: Report) -> bool:
        """Return whether the report is this device's, by its own key or by that of a merged device."""
        keys = {self.key, *(alias.key for alias in self.aliases)}
        own = {folded(key) for key in keys} | keys
        return any(key in own or folded(key) in own for key in (*report.keys, report.shared_key))

    def ids_as(self, family: str) -> list[str]:
        """Return the ids that a family's formats use for the device; without any, the device's own id."""
        own = [(self.family, self.stable_id), *((a.family, a.stable_id) for a in self.aliases)]
        return [stable_id for known, stable_id in own if known == family] or [self.stable_id]

    @property
    def own_keys(self) -> tuple[str, ...]:
        """Return the device's key, then the keys of the devices that were merged into it."""
        return (self.key, *(alias.key for alias in self.aliases))

    @property
    def names(self) -> frozenset[str]:
        """Return every name, id and key by which a key can be bound to the device."""
        aliases = (word for alias in self.aliases for word in (alias.key, alias.stable_id))
        return frozenset({self.key, self.stable_id, self.name, self.settings.label, *aliases} - {""})

    @property
    def title(self) -> str:
        """Return the user's label, else the device's own name."""
        return self.settings.label or self.name

    @property
    def usual_temp_unit(self) -> str | None:
        """Return the usual unit of the device's temperatures; None while no reading has shown it."""
        if USUAL_TEMP_UNIT in self.inferred:
            return self.inferred[USUAL_TEMP_UNIT][0]
        # Earlier versions remembered nothing but the last one; Celsius they took for granted.
        return "F" if self.inferred.get("temp_unit", ("", ""))[0] == "F" else None

    @classmethod
    def first_seen(cls, report: Report, unix_seconds: int) -> Self:
        """Make the device of its first report; it is not stored yet."""
        name = label_of(report.name)
        return cls(0, report.device_key, report.family, report.stable_id, name, unix_seconds)

    def learned(self, report: Report, reading: Reading, inferred: Inferences) -> Self:
        """Return the device after this report; the very same object if the device learned nothing new."""
        known = dict(self.inferred)
        unit = self.gravity_unit
        meant: str | None
        for what, (value, reason, evidence) in inferred.items():
            known[what] = value, reason
            if evidence is Evidence.NONE:
                continue
            if what == "gravity_unit":
                meant = report.gravity_unit if report.gravity_unit_by_format else None
                usual = _usual(known, what, unit or meant, reading.gravity_unit, evidence)
                unit = "P" if usual == "P" else "G"
            elif what == "temp_unit":
                meant = report.temp_unit if report.temp_unit_by_format else None
                usual = _usual(known, what, self.usual_temp_unit or meant, reading.temp_unit, evidence)
                known[USUAL_TEMP_UNIT] = usual, ""
        name = label_of(report.name) or self.name
        interval_s = report.interval_s or self.interval_s
        if (name, unit, interval_s) == (self.name, self.gravity_unit, self.interval_s) and (
            known == self.inferred
        ):
            return self
        return replace(self, name=name, gravity_unit=unit, interval_s=interval_s, inferred=known)


def _usual(
    known: dict[str, tuple[str, str]], what: str, before: str | None, now: str, evidence: Evidence
) -> str:
    """Return the usual unit after a reading in the unit `now`. Note a doubt in `known`, or remove it.

    If the device had a usual unit, or the format means a unit, two readings in a row must show the other unit
    by their size: a spindle on the desk sends one odd value. Readings that teach nothing do not count in
    between.
    """
    doubt = known.pop(IN_DOUBT[what], None)
    if before in {None, now} or evidence is Evidence.EXPLICIT or (doubt is not None and doubt[0] == now):
        return now
    known[IN_DOUBT[what]] = now, ""
    return before


@dataclass(frozen=True, slots=True)
class DeviceSummary:
    """A device with its last reading, for lists; times in Unix seconds.

    `sg` and `celsius` are the numbers of `gravity` and `temp`, None if they count in no statistics. `facts`
    are further values of the reading by their canonical name.
    """

    device: Device
    readings: int
    last_seen_at: int | None
    gravity: str | None
    gravity_unit: str | None
    temp: str | None
    temp_unit: str | None
    sg: float | None = None
    celsius: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


def find_device(devices: list[Device], wanted: str) -> Device:
    """Find a device by its id, device id, name, label or key; `NotFound` or `NameTaken` if not one has it."""
    keys = {
        d.id: {d.key, f"{d.family}:{d.stable_id}", f"{d.family}:{d.key.partition(':')[2]}"}
        | {alias.key for alias in d.aliases}
        for d in devices
    }
    names = {d.id: {str(d.id), d.stable_id, d.name, d.settings.label} for d in devices}
    found = [d for d in devices if wanted and wanted in names[d.id] | keys[d.id]]
    if len(found) == 1:
        return found[0]
    if not found:
        meant = did_you_mean(wanted, [name for d in devices for name in (d.title, d.name, d.stable_id)])
        meant = meant or did_you_mean(wanted, [d.key for d in devices])
        raise NotFound(f"no device {wanted!r}{meant}; `devices list` shows them")
    exact = [d for d in found if wanted in keys[d.id]]
    if exact:
        return exact[0]
    several = ", ".join(d.key for d in found)
    raise NameTaken(f"{wanted!r} is ambiguous, it could be {several}: use one of these")
