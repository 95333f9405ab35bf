"""The figures of a brew, for the page, the alarms and other systems alike."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Latest:
    """A value and its time (Unix seconds). `by_hand` says that a person measured it."""

    value: float
    at: int
    device_id: int | None = None
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Original:
    """The original gravity (SG) and its origin: set by `hand`, or `measured` in the first 12 hours."""

    sg: float
    origin: str


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a brew; None where there is nothing to make a figure from.

    `gravity` and `final` are specific gravities, `temp` is in °C, `per_day` is the change of SG in a day,
    `attenuation` and `abv` are percent. `final` is the final gravity that the recipe expects.
    `day` counts from 1, the day of `began_at` (Unix seconds).
    """

    session_id: int
    gravity: Latest | None
    temp: Latest | None
    original: Original | None
    final: float | None
    attenuation: float | None
    abv: float | None
    per_day: float | None
    day: int | None
    began_at: int | None
    last_at: int | None
