"""The figures of a brew, and what they are made of. Times are Unix seconds, gravities SG, temperatures °C."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Phase = Literal["lag", "active", "slowing", "finished", "stuck", "cold_crash"]
PHASES: tuple[Phase, ...] = ("lag", "active", "slowing", "finished", "stuck", "cold_crash")

OriginOfGravity = Literal["hand", "measured", "readings", "recipe"]
"""Who says what the original gravity is: a person, the record of the brew, the first readings, the recipe."""

Unknown = Literal[
    "few_points",
    "too_early",
    "little_attenuation",
    "phase",
    "gap",
    "flat",
    "rate_constant",
    "far_away",
    "models_differ",
]
"""Why the finish is not yet known."""


class Sample(NamedTuple):
    """A reading of the leading device that counts, calibrated."""

    at: int
    sg: float | None
    temp_c: float | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a brew beside its readings.

    `pitched_at` is None where nobody said so; then the first reading counts. `marks` are times of pitching
    again, sugar and dry hops: they restart the windows of *finished* and *stuck*. `cold_yeast` says that the
    recipe's yeast works below 15 °C. `swaps` are times from which on the readings are of another device:
    current gravity, rate and forecast begin anew there, the original gravity stays. `sugar_sg` is the gravity
    of sugar that was added later; it counts for alcohol only.
    """

    og_by_hand: float | None = None
    og_measured: float | None = None
    recipe_og: float | None = None
    recipe_fg: float | None = None
    pitched_at: int | None = None
    cold_yeast: bool = False
    marks: tuple[int, ...] = ()
    swaps: tuple[int, ...] = ()
    sugar_sg: float = 0.0


@dataclass(frozen=True, slots=True)
class OriginalGravity:
    """The original gravity and its origin. One of the recipe is an estimate."""

    sg: float
    origin: OriginOfGravity

    @property
    def is_estimate(self) -> bool:
        """Whether it is only what the recipe expects."""
        return self.origin == "recipe"


@dataclass(frozen=True, slots=True)
class Finish:
    """A forecast: fermentation ends at `at`, most probably between `early` and `late`, with `fg`."""

    at: int
    early: int
    late: int
    fg: float


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """A phase that was entered, the current gravity then, and whether the brew *resumed* after *finished*."""

    at: int
    phase: Phase
    sg: float | None
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Rise:
    """A rise of gravity that stays: sugar, perhaps. `sg` is its height."""

    since: int
    sg: float


@dataclass(frozen=True, slots=True)
class Insight:
    """The figures of a brew at `now`; None where there is nothing to make a figure from.

    `last_at` is the last sample. `sg` is the current gravity, smoothed. `rate` is SG per day, negative while
    it falls. `attenuation` and `abv` are percent; `abv_alternate` is the formula for strong beer, from an OG
    of 1.070 on. `day` counts days since pitching, from 0, with a fraction. `temp_c` is the median of the last
    three of a day. `unknown` says why there is no `finish`. `changes` are all changes of phase, oldest first;
    before the first one the phase is *lag*. `fell_24h`, `fell_36h` and `fell_48h` are the fall of gravity as
    the rules see it (SG, falling is positive). `ended_high`: still, below the attenuation of a finished beer
    but above that of a stuck one. `cold_since`: a cold crash began then; `crashed_at_sg`: the gravity at
    which it began before the beer was finished. `rise`: the newest rise that stayed for 12 h.
    """

    now: int
    last_at: int | None = None
    sg: float | None = None
    og: OriginalGravity | None = None
    attenuation: float | None = None
    abv: float | None = None
    abv_alternate: float | None = None
    rate: float | None = None
    day: float | None = None
    temp_c: float | None = None
    phase: Phase | None = None
    phase_since: int | None = None
    changes: tuple[PhaseChange, ...] = ()
    finish: Finish | None = None
    unknown: Unknown | None = None
    fell_24h: float | None = None
    fell_36h: float | None = None
    fell_48h: float | None = None
    ended_high: bool = False
    cold_since: int | None = None
    crashed_at_sg: float | None = None
    rise: Rise | None = None
