"""The progress of one fermentation: samples are put in, in any order, and the figures come out."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace

from gateway.insight import figures
from gateway.insight.phase import HISTORY_S, Beer, State, first_look, look
from gateway.insight.records import Facts, Finish, Insight, OriginalGravity, Sample, Unknown
from gateway.insight.series import DAY_S, HOUR_S, Series, median

GRAVITY_SLOT_S = 20 * 60
TEMP_SLOT_S = HOUR_S
NEWEST = 3
"""Newest values that are kept beside the slots."""

SNAPSHOT_S = DAY_S
SNAPSHOTS = 14
"""States of earlier looks, for two weeks: a late sample costs a day of looks more than those since."""

GAP_S = 2 * DAY_S
"""How long there is no forecast after a gap of a day."""

Newest = list[tuple[int, float]]


class Progress:
    """One brew's series. A sample that comes late is put in its place, and its hours are looked at again.

    The state depends on the samples alone, and not on the order in which they were put in. The first gravity
    of each 20 min and the first temperature of each hour are kept, and the newest three.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._gravity = Series(GRAVITY_SLOT_S)
        self._temps = Series(TEMP_SLOT_S, "f")
        self._newest_sg: Newest = []
        self._newest_temps: Newest = []
        self._looks = Series(HOUR_S)
        self._state: State | None = None
        self._snapshots: list[State] = []
        self._of_readings: float | None = None
        self._of_readings_is_final = False

    @property
    def facts(self) -> Facts:
        """What is known beside the samples; others may take its place at any time."""
        return self._facts

    @facts.setter
    def facts(self, facts: Facts) -> None:
        if facts != self._facts:
            self._facts = facts
            self._forget_from(0)

    def put(self, samples: Iterable[Sample]) -> None:
        """Add samples; one of a time that is there already replaces it."""
        for at, sg, temp_c in samples:
            if sg is not None:
                _keep_newest(self._newest_sg, at, sg)
                if self._gravity.put(at, sg):
                    self._forget_from(at)
            if temp_c is not None:
                _keep_newest(self._newest_temps, at, temp_c)
                if self._temps.put(at, temp_c):
                    self._forget_from(at)

    def insight(self, now: int) -> Insight:
        """Return the figures at a time.

        Slopes, phase and forecast are made anew each full hour, the rest at each call.
        """
        pitched = self._pitched()
        last_at = self._last_at(now)
        if last_at is None or pitched is None:
            og = figures.original_gravity(self._facts, None)
            since = self._facts.pitched_at
            return Insight(now, last_at, og=og, day=None if since is None else figures.day(since, now))
        og = self._original_gravity(pitched, now)
        self._look_until(now, pitched)
        state = self._state
        sg = self._current_gravity(now)
        attenuation = figures.attenuation(og.sg if og else None, sg)
        abv, abv_alternate = None, None
        if og is not None and sg is not None and attenuation is not None:
            abv, abv_alternate = figures.abv(og.sg + self._facts.sugar_sg, sg)
        temps: Sequence[float] = [temp for at, temp in self._newest_temps if now - DAY_S <= at <= now]
        temps = temps or self._temps.between(now - DAY_S, now)[-NEWEST:]
        known = Insight(
            now,
            last_at,
            sg=sg,
            og=og,
            attenuation=attenuation,
            abv=abv,
            abv_alternate=abv_alternate,
            day=figures.day(pitched, now),
            temp_c=median(temps) if temps else None,
            unknown="few_points" if state is None else None,
        )
        return known if state is None else _with_phase(known, state, pitched)

    def _pitched(self) -> int | None:
        if self._facts.pitched_at is not None:
            return self._facts.pitched_at
        firsts = [at[0] for at in (self._gravity.at, self._temps.at) if at]
        return min(firsts, default=None)

    def _last_at(self, now: int) -> int | None:
        """Return the time of the newest sample until `now`."""
        found = [at for at, _ in (*self._newest_sg, *self._newest_temps) if at <= now]
        for series in (self._gravity, self._temps):
            if place := series.until(now):
                found.append(series.at[place - 1])
        return max(found, default=None)

    def _merged(self, low: int, now: int) -> tuple[list[int], list[float]]:
        """Return times and gravities of the slots from a place on, and of newer samples, until `now`."""
        high = self._gravity.until(now)
        at, values = list(self._gravity.at[low:high]), list(self._gravity.values[low:high])
        end = at[-1] if at else 0
        for time, sg in self._newest_sg:
            if end < time <= now:
                at.append(time)
                values.append(sg)
        return at, values

    def _original_gravity(self, pitched: int, now: int) -> OriginalGravity | None:
        if not self._of_readings_is_final:
            end = self._gravity.until(now)
            at, values = self._gravity.at[:end], self._gravity.values[:end]
            of_readings = figures.gravity_of_readings(at, values, pitched)
            self._of_readings_is_final = of_readings is not None and now >= pitched + figures.OG_S
            if of_readings is None:
                # A quick device has sent three readings before three slots are full.
                low = max(end - NEWEST, 0)
                of_readings = figures.gravity_of_readings(*self._merged(low, now), pitched)
            self._of_readings = of_readings
        return figures.original_gravity(self._facts, self._of_readings)

    def _current_gravity(self, now: int) -> float | None:
        """Return the current gravity; None where the last reading is a day old."""
        end = self._gravity.until(now)
        at, values = self._merged(max(end - _SLOTS_OF_A_LINE, 0), now)
        if not at or now - at[-1] > DAY_S:
            return None
        since = max((swap for swap in self._facts.swaps if swap <= now), default=at[0])
        for place in range(max(len(at) - NEWEST, 1), len(at)):
            if at[place] - at[place - 1] > DAY_S:
                since = max(since, at[place])
        return figures.current_gravity(at, values, since)

    def _look_until(self, now: int, pitched: int) -> None:
        """Make the looks of all full hours until `now` that have not been made yet."""
        at = self._gravity.at
        if self._state is not None and self._state.looked_at > now:
            self._forget_from(now + 1)
        if self._state is None:
            first = first_look(at, pitched)
            if first is None or first > now:
                return
            self._state = State(looked_at=first - HOUR_S, since=at[bisect_left(at, pitched)])
        og = figures.original_gravity(self._facts, self._of_readings)
        beer = Beer(
            pitched, og.sg if og else None, self._facts.recipe_fg, self._facts.marks, self._facts.swaps
        )
        state = self._state
        hour = state.looked_at + HOUR_S
        while hour <= now:
            end = bisect_right(at, hour)
            if hour - at[end - 1] > DAY_S:
                # Nothing is seen in a long gap; go on where it ends.
                if end == len(at):
                    break
                hour = max(-(-at[end] // HOUR_S) * HOUR_S, hour)
                if hour > now:
                    break
            if hour // SNAPSHOT_S != state.looked_at // SNAPSHOT_S:
                self._snapshots.append(copy(state))
                del self._snapshots[:-SNAPSHOTS]
            look(state, hour, self._gravity, self._temps, self._looks, beer)
            self._forecast(state, hour, beer)
            hour += HOUR_S
        self._looks.forget_before(hour - SNAPSHOTS * SNAPSHOT_S - HISTORY_S)

    def _forget_from(self, at: int) -> None:
        """Forget everything that was made of samples of a time and later."""
        pitched = self._pitched()
        if pitched is None or at <= pitched + figures.OG_S:
            self._of_readings, self._of_readings_is_final = None, False
        if self._state is not None and self._state.looked_at >= at:
            while self._snapshots and self._snapshots[-1].looked_at >= at:
                self._snapshots.pop()
            self._state = copy(self._snapshots[-1]) if self._snapshots else None
            self._looks.forget_after(self._state.looked_at if self._state else 0)

    def _forecast(self, state: State, now: int, beer: Beer) -> None:
        """Make the forecast of a look. The one before stays until the new one has moved by three hours."""
        before = state.forecast
        state.forecast = self._finish(state, now, beer)
        if isinstance(before, Finish) and isinstance(state.forecast, Finish):
            # Here and not above, because only a forecast needs the code of the fit.
            from gateway.insight.finish import MOVED_S

            if abs(state.forecast.at - before.at) < MOVED_S:
                state.forecast = before

    def _finish(self, state: State, now: int, beer: Beer) -> Finish | Unknown:
        if state.phase not in ("active", "slowing"):
            return "phase"
        from gateway.insight import finish

        if now - beer.pitched < finish.LEAST_AGE_S:
            return "too_early"
        place = self._looks.until(now)
        if not place or self._looks.at[place - 1] != now:
            return "few_points"
        share = figures.attenuation(beer.og, self._looks.values[place - 1])
        if beer.og is None or share is None or share < finish.LEAST_ATTENUATION:
            return "little_attenuation"
        at, end = self._gravity.at, self._gravity.until(now)
        low = max(bisect_right(at, now - GAP_S, 0, end) - 1, 0)
        if any(at[place + 1] - at[place] > DAY_S for place in range(low, end - 1)):
            return "gap"
        since = max((swap for swap in beer.swaps if swap <= now), default=0)
        return finish.forecast(
            at, self._gravity.values, now, max(since, beer.pitched), beer.og, beer.recipe_fg
        )


_SLOTS_OF_A_LINE = figures.LINE_HOURS * HOUR_S // GRAVITY_SLOT_S + 1


def _keep_newest(newest: Newest, at: int, value: float) -> None:
    """Put a value among the newest ones."""
    newest[:] = [pair for pair in newest if pair[0] != at]
    insort(newest, (at, value))
    del newest[:-NEWEST]


def _with_phase(insight: Insight, state: State, pitched: int) -> Insight:
    """Add what the looks have found."""
    is_fresh = insight.sg is not None
    forecast: Finish | Unknown = state.forecast if is_fresh else "gap"
    return replace(
        insight,
        rate=state.rate if is_fresh else None,
        phase=state.phase,
        phase_since=state.entered_at or pitched,
        changes=state.changes,
        fell_24h=state.fell_24h if is_fresh else None,
        fell_36h=state.fell_36h if is_fresh else None,
        fell_48h=state.fell_48h if is_fresh else None,
        ended_high=state.ended_high,
        cold_since=state.cold_since,
        crashed_at_sg=state.crashed_at_sg,
        rise=state.rise,
        finish=forecast if isinstance(forecast, Finish) else None,
        unknown=None if isinstance(forecast, Finish) else forecast,
    )


def insight(samples: Iterable[Sample], facts: Facts, now: int) -> Insight:
    """Return the figures that samples until `now` give."""
    progress = Progress(facts)
    progress.put(sample for sample in samples if sample.at <= now)
    return progress.insight(now)
