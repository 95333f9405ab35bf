"""A device: who it is, what it is called, what it taught us, what the user said, and its brew session."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from gateway.domain.calibration import Calibration
from gateway.domain.reading import Reading
from gateway.domain.report import GravityUnit, Report, TempUnit, folded
from gateway.domain.texts import did_you_mean
from gateway.errors import NameTaken, NotFound

LABEL_CHARACTERS = 64
"""A device's name is cut to this where it is a label; in readings it stays as sent."""

Weight = Literal["", "size", "word"]
"""How much a unit tells of the device's other readings: nothing where the user, the device's past or nobody
said it; `size` where the value can only have this unit, as one odd value may, too; `word` where there is no
doubt."""

Inferences = dict[str, tuple[str, str, Weight]]
"""What was inferred of one report: `gravity_unit` -> (`P`, why, what that teaches)."""

USUAL_TEMP_UNIT = "usual_temp_unit"
"""Kept among what was inferred, for the readings to come: the unit that its temperatures usually have."""

IN_DOUBT = {"gravity_unit": "gravity_unit_in_doubt", "temp_unit": "temp_unit_in_doubt"}
"""Kept there too: the other unit, where the last reading whose size tells its unit had that."""

Span = tuple[int, int]
"""From and to in Unix seconds, both inclusive."""


EXCLUDED_SPANS = 100
"""Spans that a device can have excluded."""

NOT_CALIBRATED = Calibration()


@dataclass(frozen=True, slots=True)
class DeviceSettings:
    """What the user said of a device; the defaults say nothing.

    The units win over whatever the device says. `interval_s` is told to devices that listen (TCP). Readings
    of the `excluded` spans are kept and count in no statistics.
    """

    label: str = ""
    gravity_unit: GravityUnit | None = None
    temp_unit: TempUnit | None = None
    interval_s: int | None = None
    calibration: Calibration = NOT_CALIBRATED
    excluded: tuple[Span, ...] = ()

    def excludes(self, unix_seconds: int) -> bool:
        """Whether a reading of that time is excluded."""
        return any(first <= unix_seconds <= last for first, last in self.excluded)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON, without what is default."""
        plain: dict[str, Any] = {
            "label": self.label,
            "gravity_unit": self.gravity_unit,
            "temp_unit": self.temp_unit,
            "interval_s": self.interval_s,
            "calibration": None if self.calibration.is_identity else self.calibration.to_dict(),
            "excluded": [list(span) for span in self.excluded],
        }
        return {name: value for name, value in plain.items() if value}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """From `to_dict`; what a later version wrote beside it is left out."""
        return cls(
            label=plain.get("label", ""),
            gravity_unit=plain.get("gravity_unit"),
            temp_unit=plain.get("temp_unit"),
            interval_s=plain.get("interval_s"),
            calibration=Calibration.from_dict(plain.get("calibration", {})),
            excluded=tuple((first, last) for first, last in plain.get("excluded", [])),
        )


NOTHING_SAID = DeviceSettings()


@dataclass(frozen=True, slots=True)
class Alias:
    """What another device was known by before it was merged into this one: what comes so is this one's."""

    key: str
    family: str
    stable_id: str


@dataclass(frozen=True, slots=True)
class Device:
    """One hydrometer or bridge channel. `key` is its identity: family and stable id, or its MAC.

    `gravity_unit` (what its gravities without a unit usually have), `interval_s` and `inferred` (what was
    inferred last, and why) are learned from its reports. `id` is 0 until it is stored.
    While `reprocessing`, what it sent before is being read again under other settings.
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
    settings: DeviceSettings = NOTHING_SAID
    inferred: dict[str, tuple[str, str]] = field(default_factory=dict)
    reprocessing: bool = False
    aliases: tuple[Alias, ...] = ()

    def is_of(self, report: Report) -> bool:
        """Whether the report is this device's, by its key or one that it has taken over."""
        keys = {self.key, *(alias.key for alias in self.aliases)}
        own = {folded(key) for key in keys} | keys
        return any(key in own or folded(key) in own for key in (*report.keys, report.shared_key))

    def ids_as(self, family: str) -> list[str]:
        """By which ids it is known to this family's formats: its own first, where they know none."""
        own = [(self.family, self.stable_id), *((a.family, a.stable_id) for a in self.aliases)]
        return [stable_id for known, stable_id in own if known == family] or [self.stable_id]

    @property
    def title(self) -> str:
        """What people call it: the user's label, else its own name."""
        return self.settings.label or self.name

    @property
    def usual_temp_unit(self) -> str | None:
        """The unit that its temperatures usually have; None while none has told."""
        if USUAL_TEMP_UNIT in self.inferred:
            return self.inferred[USUAL_TEMP_UNIT][0]
        # Earlier versions remembered nothing but the last one; Celsius they took for granted.
        return "F" if self.inferred.get("temp_unit", ("", ""))[0] == "F" else None

    @classmethod
    def first_seen(cls, report: Report, unix_seconds: int) -> Self:
        """The device as its first report shows it, not stored yet."""
        name = report.name[:LABEL_CHARACTERS]
        return cls(0, report.device_key, report.family, report.stable_id, name, unix_seconds)

    def learned(self, report: Report, reading: Reading, inferred: Inferences) -> Self:
        """The device after this report; the very same object where it taught nothing new."""
        known = dict(self.inferred)
        unit = self.gravity_unit
        meant: str | None
        for what, (value, reason, weight) in inferred.items():
            known[what] = value, reason
            if not weight:
                continue
            if what == "gravity_unit":
                meant = report.gravity_unit if report.gravity_unit_by_format else None
                usual = _usual(known, what, unit or meant, reading.gravity_unit, weight)
                unit = "P" if usual == "P" else "G"
            elif what == "temp_unit":
                meant = report.temp_unit if report.temp_unit_by_format else None
                usual = _usual(known, what, self.usual_temp_unit or meant, reading.temp_unit, weight)
                known[USUAL_TEMP_UNIT] = usual, ""
        name = report.name[:LABEL_CHARACTERS] or self.name
        interval_s = report.interval_s or self.interval_s
        if (name, unit, interval_s) == (self.name, self.gravity_unit, self.interval_s) and (
            known == self.inferred
        ):
            return self
        return replace(self, name=name, gravity_unit=unit, interval_s=interval_s, inferred=known)


def _usual(known: dict[str, tuple[str, str]], what: str, before: str | None, now: str, weight: Weight) -> str:
    """Which unit is usual after a reading that had this one; a doubt goes into `known`, or leaves it.

    Where something was usual before, or the format means a unit, two readings whose size tells the other one
    have to follow one another: a spindle on the desk sends one odd value. Those that teach nothing do not
    count in between.
    """
    doubt = known.pop(IN_DOUBT[what], None)
    if before in {None, now} or weight == "word" or (doubt is not None and doubt[0] == now):
        return now
    known[IN_DOUBT[what]] = now, ""
    return before


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


def find_device(devices: list[Device], wanted: str) -> Device:
    """Find the device with this id, device id, name, label or key; `NotFound` or, of several, `NameTaken`."""
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
