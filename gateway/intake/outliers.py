"""Outliers in one device's gravities: spikes, changes that no yeast makes, and the bump of a high krausen.

Pure and incremental: readings go in by time, flags come out, nothing is dropped or changed. The limits are
our own, from what floating hydrometers do: a spindle's noise is about 0.0005 SG, a Tilt sends whole steps of
0.001, and foam, yeast cake or hops on the float lift it by a few points for some hours.
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

SPIKE: Final = "gravity_spike"
RATE: Final = "gravity_rate"
BUMP: Final = "krausen_bump"

HOUR_S = 3600

NOISE_SG = 0.004
"""The noise between two readings: five sigma of a spindle, four steps of a Tilt."""
FALL_SG_PER_HOUR = 0.012
"""The fastest fall: kveik at 40 °C takes a strong wort down by 0.005 to 0.008 SG an hour at its best."""
RISE_SG_PER_HOUR = 0.006
"""The fastest rise: by mixing wort, dissolving sugar or warming by some degrees; yeast causes none."""
ANCHOR_S = HOUR_S
"""Seconds over which a rate is measured, too: a device that reports every 30 s would hide it in its noise."""

SETTLE_S = 2 * HOUR_S
"""Seconds after a start or a gap without a check: the device takes the wort's temperature, the wort mixes."""
GAP_S = 24 * HOUR_S
"""Seconds of silence after which everything begins anew; devices report at least daily."""
OUT_OF_ORDER_S = HOUR_S
"""A reading older than the one before is skipped. If by more seconds than this, the clock was set."""

WINDOW_S = 48 * HOUR_S
"""Seconds for which a gravity counts as lowest; a bump that lasts longer is the new level."""
ACTIVE_FALL_SG = 0.005
"""A fall within the window that shows yeast at work; noise alone spans half of it."""
BUMP_SG = 0.004
BUMP_OVER_SG = 0.002
"""SG above the lowest value at which a bump is over: noise lifts readings by about that."""
BUMP_MAX_SG = 0.020
"""The most that foam lifts a hydrometer; more is another beer, or sugar."""
MARK_EVERY_S = HOUR_S / 2
"""Seconds between two extreme values that the window remembers: 97 marks each."""


class OutlierFlags(NamedTuple):
    """Flags of the reading that was fed, and pairs (key, flag) for earlier outliers that it shows."""

    flags: tuple[str, ...] = ()
    late: tuple[tuple[Any, str], ...] = ()


NOTHING: Final = OutlierFlags()


class Point(NamedTuple):
    """A reading: Unix seconds, SG, and the caller's key."""

    at: int
    sg: float
    key: Any


@dataclass(slots=True)
class Bump:
    """A krausen bump that lasts: its start in Unix seconds, and the SG before it."""

    since: int
    floor: float


class Extreme:
    """The lowest value of the last WINDOW_S (the highest, for values fed with the other sign)."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: deque[tuple[int, float]] = deque()

    def add(self, at: int, value: float) -> None:
        """Add a value, later than all before."""
        marks = self._marks
        # Values above the new one can never be lowest again.
        while marks and marks[-1][1] >= value:
            marks.pop()
        if not marks or at - marks[-1][0] >= MARK_EVERY_S:
            marks.append((at, value))

    def mark(self, now: int) -> tuple[int, float] | None:
        """Return the time and the value of the lowest, None if nothing was added within the window."""
        marks = self._marks
        while marks and now - marks[0][0] > WINDOW_S:
            marks.popleft()
        return marks[0] if marks else None


class Outliers:
    """The state of one device that the check of its next reading needs: at most 200 marks."""

    __slots__ = (
        "_anchor",
        "_before",
        "_bump",
        "_highest",
        "_jumped",
        "_last",
        "_lowest",
        "_raised",
        "_started",
    )
    _started: int
    _anchor: Point
    _before: Point
    _last: Point | None
    _jumped: bool
    _raised: bool
    _bump: Bump | None
    _lowest: Extreme
    _highest: Extreme

    def __init__(self) -> None:
        self._last = None

    def feed(self, at: int, sg: float | None, key: Any) -> OutlierFlags:
        """Check a reading by Unix seconds and SG; skip None, NaN and readings out of order."""
        if sg is None or not math.isfinite(sg):
            return NOTHING
        now, last = Point(at, sg, key), self._last
        if last is None or not 0 < at - last.at <= GAP_S:
            if last is None or not 0 <= last.at - at <= OUT_OF_ORDER_S:
                self._started = now.at
                self._before = self._last = now
                self._begin_level(now)
            return NOTHING
        late: list[tuple[Any, str]] = []
        if _is_spike(self._before, last, now):
            late.append((last.key, SPIKE))
            last, self._jumped, self._raised = self._before, False, False
        elif at - self._started >= SETTLE_S and not (self._jumped or self._raised or self._bump):
            # Of two readings the less extreme one: a single reading must not move an end of the window.
            self._lowest.add(last.at, max(self._before.sg, last.sg))
            self._highest.add(last.at, -min(self._before.sg, last.sg))
        bumped = self._bump is not None
        flags = self._krausen(last, now, late)
        if (self._bump is not None or not bumped) and self._too_fast(last, now):
            flags = (*flags, RATE)
        self._before, self._last = last, now
        return OutlierFlags(flags, tuple(late)) if flags or late else NOTHING

    def _begin_level(self, now: Point) -> None:
        """Forget the lowest and the highest gravity: a new level begins."""
        self._anchor = now
        self._jumped = self._raised = False
        self._bump = None
        self._lowest, self._highest = Extreme(), Extreme()

    def _krausen(self, last: Point, now: Point, late: list[tuple[Any, str]]) -> tuple[str, ...]:
        """Return the bump's flag while a bump lasts."""
        if self._bump is not None:
            return self._in_bump(self._bump, last, now)
        lowest, highest = self._lowest.mark(now.at), self._highest.mark(now.at)
        if lowest is None or highest is None:
            self._raised = False
            return ()
        floor, fallen = lowest[1], -highest[1] - lowest[1]
        # Only if the highest came before the lowest: without a fall there is no krausen, only a new beer.
        active = fallen >= ACTIVE_FALL_SG and highest[0] < lowest[0]
        raised_before, self._raised = self._raised, active and BUMP_SG < now.sg - floor <= BUMP_MAX_SG
        # Two raised readings make a bump, not one: a single one may be noise. The first is flagged late.
        if not (self._raised and raised_before):
            return ()
        late.append((last.key, BUMP))
        self._bump, self._raised = Bump(last.at, floor), False
        return (BUMP,)

    def _in_bump(self, bump: Bump, last: Point, now: Point) -> tuple[str, ...]:
        if now.sg <= bump.floor + BUMP_OVER_SG:
            self._bump, self._jumped, self._anchor = None, False, now
            return ()
        if now.at - bump.since > WINDOW_S or min(last.sg, now.sg) - bump.floor > BUMP_MAX_SG:
            self._begin_level(now)
            return ()
        return (BUMP,)

    def _too_fast(self, last: Point, now: Point) -> bool:
        """Return whether the change is too fast for yeast; only the reading that jumped is flagged."""
        settled = now.at - self._started >= SETTLE_S
        if not _possible(last, now):
            self._jumped = True
            return settled
        if self._jumped:
            # A second reading confirms the new gravity as the new level, unless it looks like krausen.
            if self._raised or self._bump is not None:
                self._jumped, self._anchor = False, now
            else:
                self._begin_level(now)
            return False
        slow = _possible(self._anchor, now)
        if not slow or now.at - self._anchor.at >= ANCHOR_S:
            self._anchor = now
        return settled and not slow


def _possible(earlier: Point, later: Point) -> bool:
    """Return whether yeast and noise can make this change."""
    hours = (later.at - earlier.at) / HOUR_S
    change = later.sg - earlier.sg
    return -NOISE_SG - FALL_SG_PER_HOUR * hours <= change <= NOISE_SG + RISE_SG_PER_HOUR * hours


def _is_spike(before: Point, middle: Point, after: Point) -> bool:
    """Return whether the middle stands out from two neighbours that agree."""
    low, high = (before.sg, after.sg) if before.sg < after.sg else (after.sg, before.sg)
    return (middle.sg > high + NOISE_SG or middle.sg < low - NOISE_SG) and _possible(before, after)
