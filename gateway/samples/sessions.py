"""The sample brew sessions, from `sessions.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from gateway.samples.curves import Course


@dataclass(frozen=True, slots=True)
class Sample:
    """A brewer's note, some days after pitching; `gravity` is true if the brewer measured the gravity."""

    day: float
    comment: str
    ph: float | None = None
    gravity: bool = False


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """A made-up brew session. Days count from pitching, which was `pitched_days_ago` before now.

    `course` is None while the session is only planned. `hydrometer` names a row of
    `SampleBrewery.hydrometers`. `days` is the hydrometer's time in the beer, None while it is still in it.
    """

    recipe: str
    pitched_days_ago: float
    changed_day: float
    phase: str
    notes: str
    details: Mapping[str, str]
    folder: str | None
    hydrometer: str | None
    course: Course | None
    days: float | None
    samples: tuple[Sample, ...]

    @property
    def running(self) -> bool:
        """Return whether a hydrometer is in the session now."""
        return self.course is not None and self.days is None


@dataclass(frozen=True, slots=True)
class HydrometerKind:
    """A hydrometer as bought: its family, its name, its place in the network."""

    family: str
    name: str
    address: str


@dataclass(frozen=True, slots=True)
class SampleBrewery:
    """All brew sessions by pitching day, and the hydrometers."""

    hydrometers: Mapping[str, HydrometerKind]
    batches: tuple[SampleBatch, ...]


def sample_brewery() -> SampleBrewery:
    """Read the file."""
    text = (resources.files("gateway.samples") / "sessions.toml").read_text("utf-8")
    data = tomllib.loads(text)
    return SampleBrewery(
        hydrometers={name: HydrometerKind(**row) for name, row in data["hydrometer"].items()},
        batches=tuple(_batch(row, data) for row in data["batch"]),
    )


def _batch(row: Mapping[str, Any], data: Mapping[str, Any]) -> SampleBatch:
    course = None
    if "yeast" in row:
        settings = tuple((float(day), float(celsius)) for day, celsius in row["settings"])
        course = Course(og=row["og"], fg=row["fg"], settings=settings, **data["yeast"][row["yeast"]])
    return SampleBatch(
        recipe=row["recipe"],
        pitched_days_ago=row["pitched_days_ago"],
        changed_day=row["changed_day"],
        phase=row["phase"],
        notes=row["notes"],
        details=data["kit"][row["kit"]] | data["water"][row["water"]] | data["target"][row["target"]],
        folder=row.get("folder"),
        hydrometer=row.get("hydrometer"),
        course=course,
        days=row.get("days"),
        samples=tuple(Sample(**sample) for sample in row.get("samples", [])),
    )
