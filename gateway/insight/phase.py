"""The phase of a fermentation, looked at each hour. A new phase must hold for three looks in a row."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.insight import figures
from gateway.insight.records import Finish, Phase, PhaseChange, Rise, Unknown
from gateway.insight.series import DAY_S, HOUR_S, Series, bucket_medians, line, median

LOOKS = 3
"""Looks in a row that see a phase before it is entered."""

BEGUN_SG = 0.002
"""Fall of gravity that ends the lag."""

BEGUN_SG_PER_DAY = -0.002

RATE_POINTS = 7
RATE_SPAN_H = 14
"""Medians that the rate needs, and the hours that they span."""

SLOWER = 1 / 4
FASTER = 1 / 2
"""Shares of the fastest rate: below the one it slows, above the other it is active again."""

SLOWING_ATTENUATION = 60.0
SLOWING_SG_PER_DAY = -0.004

WINDOW_BUCKETS = 12
"""Medians of a window whose slope is looked at."""

WINDOW_COVER = 0.6
"""Share of these that must be there."""

DONE_S = 60 * HOUR_S
DONE_48H_SG = 0.0010
DONE_24H_SG = 0.0008
DONE_RANGE_SG = 0.003
DONE_ATTENUATION = 65.0
DONE_ABOVE_FG_SG = 0.003

STUCK_S = 48 * HOUR_S
STUCK_FELL_SG = 0.004
STUCK_36H_SG = 0.0012
STUCK_24H_SG = 0.0009
STUCK_ABOVE_LOWEST_SG = 0.002
"""Gravity above the lowest of 36 h: more is a bump of foam."""

STUCK_ATTENUATION = 60.0
STUCK_RECIPE_ATTENUATION = 72.0
STUCK_ABOVE_FG_SG = 0.006

FALLS_AGAIN_SG = 0.002
"""Fall that ends *finished* and *stuck*."""

STEP_SG = 0.0005
"""Fall in 48 h below which it was a step down and up again: a device that touched the wall for 10 h."""

COLD_MEDIAN_S = 3 * HOUR_S
COLD_BEFORE_S = (72 * HOUR_S, 12 * HOUR_S)
"""The time before a look whose temperature was the usual one."""

COLD_READINGS = 6
"""Readings that say what the usual temperature is, at least."""

COLD_K = 4.0
COLD_C = 15.0
"""Temperature above which nothing is a cold crash: an ale may cool down by 6 K when its own heat is gone."""

COLD_BELOW_HIGHEST_K = 2.0
WARM_K = 2.0
WARM_LOOKS = 6

RISE_SG = 0.003
RISE_S = 12 * HOUR_S
RISE_BASE_S = 24 * HOUR_S
"""A rise stays for the one time above the lowest gravity of the other time before."""

HISTORY_S = 4 * DAY_S
"""How long the gravity of looks is kept."""


@dataclass(slots=True)
class State:
    """What the looks have found so far. Times are Unix seconds, gravities SG."""

    looked_at: int
    since: int
    """Start of the readings without a gap and of one device."""
    phase: Phase = "lag"
    entered_at: int = 0
    candidate: Phase | None = None
    looks: int = 0
    """Looks in a row that saw the candidate."""
    top: float | None = None
    base: float | None = None
    """Gravity at which *finished* or *stuck* was declared."""
    fastest: float = 0.0
    begun_at: int | None = None
    """When the lag was over."""
    ended_high: bool = False
    cold_looks: int = 0
    warm_looks: int = 0
    cold_since: int | None = None
    usual_c: float = 0.0
    before_cold: Phase | None = None
    crashed_at_sg: float | None = None
    changes: tuple[PhaseChange, ...] = ()
    rise: Rise | None = None
    rate: float | None = None
    fell_24h: float | None = None
    fell_36h: float | None = None
    fell_48h: float | None = None
    forecast: Finish | Unknown = "few_points"


@dataclass(frozen=True, slots=True)
class Beer:
    """What a look knows of the beer beside its readings."""

    pitched: int
    og: float | None
    recipe_fg: float | None
    marks: tuple[int, ...]
    swaps: tuple[int, ...]


def look(state: State, now: int, gravity: Series, temps: Series, looks: Series, beer: Beer) -> None:
    """Look at the readings until `now`, and note in the state what they mean.

    `looks` are the gravities of earlier looks; this look's one is added.
    """
    end = gravity.until(now)
    _begin_anew(state, now, gravity.at, end, beer)
    state.looked_at = now
    at = gravity.at[max(end - _MOST_IN_WINDOW, 0) : end]
    values = gravity.values[max(end - _MOST_IN_WINDOW, 0) : end]
    sg = figures.current_gravity(at, values, max(state.since, beer.pitched))
    _measure_falls(state, now, at, values, beer)
    # The temperature first: a cold spindle reads high, and a cold yeast is not stuck.
    _look_at_cold(state, now, sg, temps)
    if sg is None:
        return
    looks.put(now, sg)
    state.top = sg if state.top is None else max(state.top, sg)
    if state.base is None:
        state.base = sg
    _look_at_rise(state, now, looks)
    target = _target(state, now, sg, looks, beer)
    if target == state.phase:
        state.candidate = None
        return
    state.looks = state.looks + 1 if state.candidate == target else 1
    state.candidate = target
    if state.looks >= LOOKS:
        _enter(state, target, now, sg, beer)


_MOST_IN_WINDOW = 400
"""Readings that the longest window can hold, and some more."""


def _begin_anew(state: State, now: int, at: Sequence[int], end: int, beer: Beer) -> None:
    """Move the start of the windows behind a gap of a day, a swap of the device and a mark of the user."""
    for place in range(max(bisect_right(at, state.looked_at), 1), end):
        if at[place] - at[place - 1] > DAY_S:
            state.since = at[place]
    swap = max((swap for swap in beer.swaps if swap <= now), default=0)
    if swap > state.since:
        # The other device may read some points lower: that is no fall.
        state.since, state.base = swap, None
    mark = max((mark for mark in beer.marks if mark <= now), default=0)
    if state.looked_at < mark and state.phase in ("finished", "stuck"):
        state.phase, state.entered_at, state.candidate = "slowing", now, None
        state.changes += (PhaseChange(now, "slowing", state.base),)


def _measure_falls(state: State, now: int, at: Sequence[int], values: Sequence[float], beer: Beer) -> None:
    points = bucket_medians(at, values, now, 2 * HOUR_S, WINDOW_BUCKETS, max(state.since, beer.pitched))
    enough = len(points) >= RATE_POINTS and points[-1][0] - points[0][0] >= RATE_SPAN_H
    state.rate = line(points)[0] * 24 if enough else None
    since = _windows_since(state, now, beer)
    state.fell_24h = _fall(at, values, now, 24, since)
    state.fell_36h = _fall(at, values, now, 36, since)
    state.fell_48h = _fall(at, values, now, 48, since)


def _windows_since(state: State, now: int, beer: Beer) -> int:
    mark = max((mark for mark in beer.marks if mark <= now), default=0)
    return max(state.since, beer.pitched, mark)


def _fall(at: Sequence[int], values: Sequence[float], now: int, hours: int, since: int) -> float | None:
    """Return the fall in the last hours; None where too few of them have readings."""
    points = bucket_medians(at, values, now, hours * HOUR_S / WINDOW_BUCKETS, WINDOW_BUCKETS, since)
    return -line(points)[0] * hours if len(points) >= WINDOW_COVER * WINDOW_BUCKETS else None


def _look_at_cold(state: State, now: int, sg: float | None, temps: Series) -> None:
    """Note the begin and the end of a cold crash."""
    recent = temps.between(now - COLD_MEDIAN_S, now)
    if not recent:
        return
    celsius = median(recent)
    if state.cold_since is not None:
        state.warm_looks = state.warm_looks + 1 if celsius >= state.usual_c - WARM_K else 0
        if state.warm_looks >= WARM_LOOKS:
            _warm_up(state, now, sg)
        return
    usual = _usual_c(state, now, temps)
    if usual is None or celsius > min(usual - COLD_K, COLD_C):
        state.cold_looks = 0
        return
    state.cold_looks += 1
    if state.cold_looks == 1:
        state.usual_c = usual
    if state.cold_looks >= LOOKS:
        state.cold_since = now - (state.cold_looks - 1) * HOUR_S
        state.warm_looks = 0
        state.crashed_at_sg = sg if state.phase in ("active", "slowing") else None
        state.before_cold = state.phase
        state.phase, state.entered_at, state.candidate = "cold_crash", now, None
        state.changes += (PhaseChange(now, "cold_crash", sg),)


def _usual_c(state: State, now: int, temps: Series) -> float | None:
    """Return the temperature before, since fermentation began: wort is often pitched too warm."""
    if state.begun_at is None:
        return None
    begin, end = COLD_BEFORE_S
    before = temps.between(max(now - begin, state.begun_at - HOUR_S), now - end)
    if len(before) < COLD_READINGS:
        return None
    return max(median(before), max(before) - COLD_BELOW_HIGHEST_K)


def _warm_up(state: State, now: int, sg: float | None) -> None:
    state.cold_since, state.cold_looks = None, 0
    # A cold spindle reads high: its fall while it warms up is not the beer's.
    if sg is not None:
        state.base = sg
    if state.phase == "cold_crash":
        state.phase = state.before_cold or "active"
        state.entered_at, state.candidate = now, None
        state.changes += (PhaseChange(now, state.phase, sg),)


def _look_at_rise(state: State, now: int, looks: Series) -> None:
    """Note a rise that has stayed: sugar, perhaps."""
    if state.phase == "lag" or state.cold_looks:
        return
    start = max(state.since, now - RISE_S - RISE_BASE_S)
    before, after = looks.between(start - 1, now - RISE_S), looks.between(max(now - RISE_S, start), now)
    if not before or len(after) < RISE_S // HOUR_S:
        return
    base = min(before)
    if min(after) - base <= RISE_SG or (state.rise and now - state.rise.since < RISE_S + RISE_BASE_S):
        return
    state.rise = Rise(now - RISE_S, median(after) - base)


def _target(state: State, now: int, sg: float, looks: Series, beer: Beer) -> Phase:
    """Return the phase that this look sees."""
    phase = state.phase
    if phase in ("finished", "stuck"):
        return "active" if _falls_again(state, sg) else phase
    reference = beer.og if beer.og is not None else state.top
    fell = 0.0 if reference is None else reference - sg
    share = figures.attenuation(beer.og, sg)
    if phase == "cold_crash":
        over = state.before_cold == "finished" or not _is_still(state, now, looks, beer)
        return phase if over or not _is_attenuated(sg, share, beer) else "finished"
    if fell >= STUCK_FELL_SG and (ended := _ended(state, now, sg, share, looks, beer)):
        return ended
    rate = state.rate
    if rate is None:
        return phase
    if phase == "lag":
        return "active" if fell >= BEGUN_SG and rate <= BEGUN_SG_PER_DAY else phase
    late = share is not None and share >= SLOWING_ATTENUATION and rate > SLOWING_SG_PER_DAY
    if phase == "active":
        state.fastest = min(state.fastest, rate)
        return "slowing" if late or rate > state.fastest * SLOWER else phase
    return "active" if not late and rate < state.fastest * FASTER else phase


def _falls_again(state: State, sg: float) -> bool:
    """Whether gravity falls after it had been called finished or stuck."""
    if state.base is None or sg > state.base - FALLS_AGAIN_SG or state.cold_since is not None:
        return False
    fell = state.fell_48h if state.fell_48h is not None else state.fell_24h
    return fell is None or fell >= STEP_SG


def _ended(state: State, now: int, sg: float, share: float | None, looks: Series, beer: Beer) -> Phase | None:
    """Return *stuck* or *finished* where gravity is still, else None."""
    stuck = _is_low(sg, share, beer)
    if stuck and _is_stalled(state, now, sg, looks, beer):
        return "stuck"
    # Still, and neither finished nor stuck: it ended high.
    high = share is not None and not stuck and state.cold_looks == 0
    if (high or (_is_attenuated(sg, share, beer) and not stuck)) and _is_still(state, now, looks, beer):
        return "finished"
    return None


def _is_still(state: State, now: int, looks: Series, beer: Beer) -> bool:
    """Whether the slopes of 48 and 24 h are flat."""
    if now - beer.pitched < DONE_S or state.fell_48h is None or state.fell_24h is None:
        return False
    if abs(state.fell_48h) > DONE_48H_SG or abs(state.fell_24h) > DONE_24H_SG:
        return False
    seen = looks.between(max(now - 48 * HOUR_S, _windows_since(state, now, beer)), now)
    return bool(seen) and max(seen) - min(seen) <= DONE_RANGE_SG


def _is_attenuated(sg: float, share: float | None, beer: Beer) -> bool:
    if share is not None and share >= DONE_ATTENUATION:
        return True
    return beer.recipe_fg is not None and sg <= beer.recipe_fg + DONE_ABOVE_FG_SG


def _is_stalled(state: State, now: int, sg: float, looks: Series, beer: Beer) -> bool:
    """Whether gravity does not fall any more, and stands on no bump of foam."""
    if now - beer.pitched < STUCK_S or state.fell_36h is None or state.fell_24h is None or state.cold_looks:
        return False
    if state.fell_36h >= STUCK_36H_SG or state.fell_24h >= STUCK_24H_SG:
        return False
    seen = looks.between(max(now - 36 * HOUR_S, state.since), now)
    return sg <= min(seen, default=sg) + STUCK_ABOVE_LOWEST_SG


def _is_low(sg: float, share: float | None, beer: Beer) -> bool:
    """Whether there is so much left that a beer which stands still is stuck."""
    if share is None:
        return False
    if beer.recipe_fg is None:
        return share < STUCK_ATTENUATION
    if sg <= beer.recipe_fg + DONE_ABOVE_FG_SG:
        # A sweet stout ends below 60 %, as its recipe says.
        return False
    if share < STUCK_ATTENUATION:
        return True
    return sg > beer.recipe_fg + STUCK_ABOVE_FG_SG and share < STUCK_RECIPE_ATTENUATION


def _enter(state: State, phase: Phase, now: int, sg: float, beer: Beer) -> None:
    resumed = state.phase == "finished" and phase == "active"
    if phase == "active":
        if state.begun_at is None:
            state.begun_at = now
        if state.phase in ("finished", "stuck"):
            # The new fall is measured by itself: it is slower than that of the young beer.
            state.fastest = state.rate if state.rate is not None and state.rate < 0 else BEGUN_SG_PER_DAY
    if phase in ("finished", "stuck"):
        state.base = sg
        share = figures.attenuation(beer.og, sg)
        state.ended_high = phase == "finished" and not _is_attenuated(sg, share, beer)
    else:
        state.ended_high = False
    state.phase, state.entered_at, state.candidate = phase, now, None
    state.changes += (PhaseChange(now, phase, sg, resumed),)


def first_look(at: Sequence[int], pitched: int) -> int | None:
    """Return the first full hour with a reading since pitching; None without."""
    place = bisect_left(at, pitched)
    return -(-at[place] // HOUR_S) * HOUR_S if place < len(at) else None
