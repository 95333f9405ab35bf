"""Outliers among one device's gravities: spikes, changes no yeast can do, and the bump of a high krausen.

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
"""What two readings may differ by for no reason: five sigma of a spindle, four steps of a Tilt."""
FALL_SG_PER_HOUR = 0.012
"""Kveik at 40 °C takes a strong wort down by 0.005 to 0.008 SG an hour at its best."""
RISE_SG_PER_HOUR = 0.006
"""No yeast raises gravity; mixing wort, dissolving sugar and warming by some degrees do, slowly."""
ANCHOR_S = HOUR_S
"""A rate is measured over this too, or a device that reports every 30 s would hide it in its noise."""

SETTLE_S = 2 * HOUR_S
"""After a start or a gap: the device is dunked, takes the wort's temperature, and the wort mixes."""
GAP_S = 24 * HOUR_S
"""After a longer silence everything begins anew; devices report at least daily."""
OUT_OF_ORDER_S = HOUR_S
"""A reading that is older than its predecessor is passed over; older than by this, the clock was set."""

WINDOW_S = 48 * HOUR_S
"""A gravity counts as lowest for so long; a bump that lasts longer is the new truth."""
ACTIVE_FALL_SG = 0.005
"""A fall within the window that says that yeast is at work; noise alone spans half of it."""
BUMP_SG = 0.004
BUMP_OVER_SG = 0.002
"""How near to the lowest value a bump is over: noise lifts readings above their lowest by about that."""
BUMP_MAX_SG = 0.020
"""Foam lifts no hydrometer by more; that is another beer, or sugar."""
MARK_EVERY_S = HOUR_S / 2
"""The window remembers an extreme value at most so often: 97 marks each."""


class OutlierFlags(NamedTuple):
    """Flags of the reading just fed, and flags (key, flag) that it brings to light on earlier ones."""

    flags: tuple[str, ...] = ()
    late: tuple[tuple[Any, str], ...] = ()


NOTHING: Final = OutlierFlags()


class Point(NamedTuple):
    """Unix seconds, SG, and the caller's key of a reading."""

    at: int
    sg: float
    key: Any


@dataclass(slots=True)
class Bump:
    """A krausen bump under way: since when in Unix seconds, and the SG that it stands on."""

    since: int
    floor: float


class Extreme:
    """The lowest value of the last WINDOW_S (the highest, for values fed with the other sign)."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: deque[tuple[int, float]] = deque()

    def add(self, at: int, value: float) -> None:
        """A value later than all before; those that it undercuts can never be lowest again."""
        marks = self._marks
        while marks and marks[-1][1] >= value:
            marks.pop()
        if not marks or at - marks[-1][0] >= MARK_EVERY_S:
            marks.append((at, value))

    def mark(self, now: int) -> tuple[int, float] | None:
        """When the lowest was added and what it is; None where nothing was added within the window."""
        marks = self._marks
        while marks and now - marks[0][0] > WINDOW_S:
            marks.popleft()
        return marks[0] if marks else None


class Outliers:
    """What has to be remembered of one device to judge its next reading: at most 200 marks."""

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
        """Judge a reading by Unix seconds and SG; None, NaN and what comes too late are passed over."""
        if sg is None or not math.isfinite(sg):
            return NOTHING
        now, last = Point(at, sg, key), self._last
        if last is None or not 0 < at - last.at <= GAP_S:
            if last is None or not 0 <= last.at - at <= OUT_OF_ORDER_S:
                self._start(now)
            return NOTHING
        late: list[tuple[Any, str]] = []
        if _is_spike(self._before, last, now):
            late.append((last.key, SPIKE))
            last, self._jumped, self._raised = self._before, False, False
        elif at - self._started >= SETTLE_S and not (self._jumped or self._raised or self._bump):
            self._remember(last)
        bumped = self._bump is not None
        flags = self._krausen(last, now, late)
        if (self._bump is not None or not bumped) and self._too_fast(last, now):
            flags = (*flags, RATE)
        self._before, self._last = last, now
        return OutlierFlags(flags, tuple(late)) if flags or late else NOTHING

    def _start(self, now: Point) -> None:
        self._started = now.at
        self._before = self._last = now
        self._begin_level(now)

    def _begin_level(self, now: Point) -> None:
        """Forget what was low and high: from here on another gravity is true."""
        self._anchor = now
        self._jumped = self._raised = False
        self._bump = None
        self._lowest, self._highest = Extreme(), Extreme()

    def _remember(self, last: Point) -> None:
        """Of two in a row the one less extreme, so that a single reading moves neither end of the window."""
        self._lowest.add(last.at, max(self._before.sg, last.sg))
        self._highest.add(last.at, -min(self._before.sg, last.sg))

    def _krausen(self, last: Point, now: Point, late: list[tuple[Any, str]]) -> tuple[str, ...]:
        """The bump's flag while it lasts; its first reading is known for one at the second only."""
        if self._bump is not None:
            return self._in_bump(self._bump, last, now)
        lowest, highest = self._lowest.mark(now.at), self._highest.mark(now.at)
        if lowest is None or highest is None:
            self._raised = False
            return ()
        floor, fallen = lowest[1], -highest[1] - lowest[1]
        active = fallen >= ACTIVE_FALL_SG and highest[0] < lowest[0]
        raised_before, self._raised = self._raised, active and BUMP_SG < now.sg - floor <= BUMP_MAX_SG
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
        """Whether yeast could not do this; a jump is said once, by the reading that made it."""
        settled = now.at - self._started >= SETTLE_S
        if not _possible(last, now):
            self._jumped = True
            return settled
        if self._jumped:
            self._jump_stayed(now)
            return False
        slow = _possible(self._anchor, now)
        if not slow or now.at - self._anchor.at >= ANCHOR_S:
            self._anchor = now
        return settled and not slow

    def _jump_stayed(self, now: Point) -> None:
        """A second reading confirms the new gravity: it is the truth, unless it looks like krausen."""
        if self._raised or self._bump is not None:
            self._jumped, self._anchor = False, now
        else:
            self._begin_level(now)


def _possible(earlier: Point, later: Point) -> bool:
    """Whether yeast and noise can make this change."""
    hours = (later.at - earlier.at) / HOUR_S
    change = later.sg - earlier.sg
    return -NOISE_SG - FALL_SG_PER_HOUR * hours <= change <= NOISE_SG + RISE_SG_PER_HOUR * hours


def _is_spike(before: Point, middle: Point, after: Point) -> bool:
    """Whether the middle stands out from two neighbours that agree."""
    low, high = (before.sg, after.sg) if before.sg < after.sg else (after.sg, before.sg)
    return (middle.sg > high + NOISE_SG or middle.sg < low - NOISE_SG) and _possible(before, after)
