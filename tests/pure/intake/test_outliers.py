"""Outliers: what is flagged in a fermentation, and that a fermentation alone never is."""

import itertools
import math
import pickle
import random
import time
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.intake.outliers import BUMP, RATE, SETTLE_S, SPIKE, WINDOW_S, OutlierFlags, Outliers
from sample_devices.fermentation import Fermentation

Series = list[tuple[int, float]]

HOUR_S = 3600
INTERVAL_S = 900
BATCHES = 50
MEMORY_BYTES = 8_000
"""Pickled; two full windows are about 5,000."""


@cache
def batch(
    seed: int, noise_sg: float = 0.0005, *, days: int = 14, decimals: int = 5
) -> tuple[tuple[int, float], ...]:
    """A fermentation's gravities every 15 minutes, with normal noise cut at three sigma."""
    beer, noise = Fermentation(str(seed)), random.Random(seed)  # noqa: S311
    return tuple(
        (
            at,
            round(
                beer.gravity_sg(at) + min(max(noise.gauss(0, noise_sg), -3 * noise_sg), 3 * noise_sg),
                decimals,
            ),
        )
        for at in range(0, days * 24 * HOUR_S, INTERVAL_S)
    )


def judged(readings: Iterable[tuple[int, float | None]]) -> dict[int, set[str]]:
    """The flags of each flagged reading, by its place in the series."""
    outliers, flags = Outliers(), dict[int, set[str]]()
    for place, (at, sg) in enumerate(readings):
        verdict = outliers.feed(at, sg, place)
        for key, flag in [*verdict.late, *((place, flag) for flag in verdict.flags)]:
            flags.setdefault(key, set()).add(flag)
    return flags


def changed(readings: Iterable[tuple[int, float]], first: int, last: int, by: float) -> Series:
    """The readings from the first to before the last changed by an SG."""
    return [(at, sg + by * (first <= place < last)) for place, (at, sg) in enumerate(readings)]


def steady(*gravities: float, every_s: int = INTERVAL_S) -> Series:
    """Readings after three hours of the first gravity, so that the device has settled."""
    before = [gravities[0]] * math.ceil(3 * HOUR_S / every_s)
    return [(place * every_s, sg) for place, sg in enumerate([*before, *gravities])]


@pytest.mark.parametrize(
    ("noise_sg", "decimals"),
    [(0.0, 5), (0.0002, 5), (0.0005, 5), (0.0002, 3), (0.0005, 3)],
    ids=["no noise", "calm", "spindle", "Tilt", "noisy Tilt"],
)
def test_fifty_fermentations_have_no_outlier(noise_sg: float, decimals: int) -> None:
    flagged = [seed for seed in range(BATCHES) if judged(batch(seed, noise_sg, decimals=decimals))]
    assert flagged == []


@pytest.mark.parametrize("every_s", [30, 300, 3 * HOUR_S])
def test_the_interval_of_the_reports_does_not_matter(every_s: int) -> None:
    beer, noise = Fermentation("interval"), random.Random(1)  # noqa: S311
    readings = [
        (at, beer.gravity_sg(at) + noise.gauss(0, 0.0004)) for at in range(0, 4 * 24 * HOUR_S, every_s)
    ]
    assert judged(readings) == {}


def test_kveik_is_not_too_fast() -> None:
    falling = [(at, 1.010 + 0.080 / (1 + math.exp((at / HOUR_S - 10) / 2.5))) for at in range(0, 86_400, 900)]
    assert min(b - a for (_, a), (_, b) in itertools.pairwise(falling)) * 4 < -0.0079
    assert judged(falling) == {}


@pytest.mark.parametrize("by", [0.010, -0.010])
@pytest.mark.parametrize("decimals", [5, 3])
def test_a_spike_is_flagged_on_its_reading_and_on_no_other(by: float, decimals: int) -> None:
    for seed in range(BATCHES):
        readings = batch(seed, 0.0005 if decimals == 5 else 0.0002, days=5, decimals=decimals)
        place = random.Random(seed).randrange(1, len(readings) - 1)  # noqa: S311
        flags = judged(changed(readings, place, place + 1, by))
        assert set(flags) == {place}
        assert SPIKE in flags[place]


def test_a_spike_is_known_when_the_next_reading_disagrees() -> None:
    outliers = Outliers()
    feeds = [outliers.feed(at, sg, at) for at, sg in steady(1.050, 1.056, 1.050)]
    assert [feed for feed in feeds if feed.flags or feed.late] == [
        OutlierFlags((RATE,), ()),
        OutlierFlags((), ((13 * INTERVAL_S, SPIKE),)),
    ]


@pytest.mark.parametrize("decimals", [5, 3])
@pytest.mark.parametrize("hours", [36, 48, 72, 84])
def test_a_bump_during_fermentation_is_flagged_while_it_lasts(hours: int, decimals: int) -> None:
    first, last = (hours * HOUR_S // INTERVAL_S, (hours + 6) * HOUR_S // INTERVAL_S)
    seen = 0
    for seed in range(BATCHES):
        readings = changed(batch(seed, 0.0002, days=5, decimals=decimals), first, last, 0.006)
        bump = [place for place, flags in judged(readings).items() if BUMP in flags]
        seen += bool(bump)
        if hours >= 72:
            assert bump == [*range(first, last)]
        else:  # the beer falls below its lowest value while foam still lifts the device
            assert min(bump) <= first + 2
            assert max(bump) < last + 4
    assert seen == BATCHES


def after_a_fall(*levels: tuple[float, float]) -> Series:
    """A fall from 1.060 to 1.030 within 20 hours, then (hours, SG) after it."""
    sgs = [1.060] * 12 + [1.060 - 0.030 * step / 80 for step in range(81)]
    for hours, sg in levels:
        sgs += [sg] * int(hours * HOUR_S / INTERVAL_S)
    return [(place * INTERVAL_S, sg) for place, sg in enumerate(sgs)]


def places(readings: Series, since_h: float, until_h: float, *, lead: int = 93) -> list[int]:
    """The readings of some hours after the fall."""
    return [n for n, (at, _) in enumerate(readings) if since_h <= (at / INTERVAL_S - lead) / 4 < until_h]


def test_the_first_reading_of_a_bump_is_flagged_with_the_second_and_its_end_is_no_jump() -> None:
    readings = after_a_fall((4, 1.030), (6, 1.036), (4, 1.030))
    flags = judged(readings)
    assert [*flags] == places(readings, 4, 10)
    assert {flag for each in flags.values() for flag in each} == {BUMP, RATE}
    assert [place for place in flags if RATE in flags[place]] == places(readings, 4, 10)[:1]


def test_one_raised_reading_is_no_bump_and_without_a_fall_there_is_none() -> None:
    once = after_a_fall((4, 1.030), (0.25, 1.0348), (4, 1.0305))
    assert BUMP not in {flag for each in judged(once).values() for flag in each}
    assert judged(steady(1.050, *[1.0545] * 20, 1.050)) == {}
    assert judged(steady(1.053, *[1.050] * 20, *[1.0545] * 20)) == {}


def test_one_low_reading_does_not_make_the_others_a_bump() -> None:
    assert judged(after_a_fall((4, 1.030), (0.25, 1.0265), (8, 1.0308))) == {}


def test_a_higher_gravity_that_lasts_is_the_new_truth() -> None:
    readings = after_a_fall((4, 1.030), (80, 1.0345), (20, 1.033))
    bump = [*judged(readings)]
    assert bump == places(readings, 4, 4 + WINDOW_S / HOUR_S + 0.25)


def test_another_beer_in_the_same_vessel_is_said_once() -> None:
    readings = after_a_fall((4, 1.030), (60, 1.065), (60, 1.064))
    assert judged(readings) == {places(readings, 4, 4.25)[0]: {RATE}}


@pytest.mark.parametrize("to", [1.030, 1.070])
def test_a_jump_that_stays_is_flagged_once(to: float) -> None:
    assert judged(steady(1.050, *[to] * 200)) == {13: {RATE}}


def test_after_a_jump_the_new_gravity_is_what_counts() -> None:
    stayed = steady(1.060, *[1.040] * 20)
    jump = {13: {RATE}}
    at = stayed[-1][0]
    hours = range(INTERVAL_S, 4 * HOUR_S, INTERVAL_S)
    assert judged([*stayed, *((at + later, 1.045) for later in hours)]) == jump
    ramp = [(at + later, 1.040 - 0.025 * later / HOUR_S) for later in hours]
    assert set(judged([*stayed, *ramp])) > {13}


def test_a_device_that_stuck_to_the_wall_is_flagged_at_both_ends() -> None:
    assert judged(steady(1.050, *[1.030] * 20, *[1.050] * 200)) == {13: {RATE}, 33: {RATE}}


@pytest.mark.parametrize(
    ("per_hour", "flagged"), [(-0.030, True), (-0.011, False), (0.020, True), (0.005, False)]
)
@pytest.mark.parametrize("every_s", [30, 300, 900, HOUR_S])
def test_a_rate_is_seen_at_any_interval(per_hour: float, flagged: bool, every_s: int) -> None:
    steps = 2 * HOUR_S // every_s
    ramp = [1.060 + per_hour * every_s / HOUR_S * step for step in range(steps + 1)]
    flags = judged(steady(*ramp, *[ramp[-1]] * 5, every_s=every_s))
    assert bool(flags) == flagged
    assert {flag for each in flags.values() for flag in each} <= {RATE}


def test_the_first_hours_in_the_wort_are_not_judged_by_rate() -> None:
    dunked = [(0, 1.000), (900, 1.080), (1800, 1.066), (2700, 1.058), (3600, 1.052), (SETTLE_S + 900, 1.051)]
    assert judged(dunked) == {}
    assert judged([*dunked, (SETTLE_S + 1800, 1.080), (SETTLE_S + 2700, 1.080)]) == {6: {RATE}}


def test_after_a_long_silence_everything_begins_anew() -> None:
    readings = after_a_fall((4, 1.030))
    later = readings[-1][0] + 24 * HOUR_S + 1
    new = [(later + place * INTERVAL_S, sg) for place, sg in enumerate([1.055, 1.070, 1.062, *[1.061] * 30])]
    assert judged([*readings, *new]) == {}
    soon = [(at - 23 * HOUR_S, sg) for at, sg in new]
    assert judged([*readings, *soon]) != {}


def test_what_comes_late_twice_or_without_gravity_is_passed_over() -> None:
    readings = steady(1.050, 1.0495, 1.056, 1.0495, 1.049)
    woven: list[tuple[int, float | None]] = []
    for at, sg in readings:
        woven += [
            (at, sg),
            (at, 1.2),
            (at - 600, 0.9),
            (at + 1, None),
            (at + 2, math.nan),
            (at + 3, math.inf),
        ]
    assert judged(woven) == {6 * place: flags for place, flags in judged(readings).items()} != {}


def test_a_clock_that_was_set_back_does_not_silence_the_judge() -> None:
    ahead = [(10**9 + at, sg) for at, sg in steady(1.050)]
    assert judged([*ahead, *steady(1.050, 1.060, 1.050)]) == {len(ahead) + 13: {RATE, SPIKE}}


@given(
    st.lists(
        st.tuples(
            st.integers(-(10**6), 10**6) | st.sampled_from([0, 1, 900, 3600]),
            st.none() | st.floats() | st.floats(0.99, 1.1) | st.sampled_from([1.05, 1.056, 1.04]),
        ),
        max_size=80,
    )
)
def test_any_sequence_gets_known_flags_on_its_own_readings(steps: list[tuple[int, float | None]]) -> None:
    at, outliers = 10**9, Outliers()
    for place, (step, sg) in enumerate(steps):
        at += step
        verdict = outliers.feed(at, sg, place)
        assert set(verdict.flags) <= {RATE, BUMP}
        assert all(0 <= key < place and flag in {SPIKE, BUMP} for key, flag in verdict.late)


@pytest.mark.parametrize("every_s", [1, 30, 1801])
@pytest.mark.parametrize("slope", [-1e-7, 1e-7, 0.0])
def test_memory_is_bounded(every_s: int, slope: float) -> None:
    outliers = Outliers()
    for place in range(6_000):
        outliers.feed(place * every_s, 1.05 + slope * place, place)
    assert len(pickle.dumps(outliers)) < MEMORY_BYTES


def test_a_machine_goes_on_where_its_pickle_was_made() -> None:
    readings = after_a_fall((4, 1.030), (6, 1.036), (4, 1.030))
    through, carried = Outliers(), Outliers()
    for at, sg in readings:
        carried = pickle.loads(pickle.dumps(carried))  # noqa: S301 our own
        assert carried.feed(at, sg, at) == through.feed(at, sg, at)


def test_a_reading_is_judged_in_ten_microseconds() -> None:
    readings = batch(0)

    def seconds(_: Any) -> float:
        outliers, began = Outliers(), time.thread_time()
        for at, sg in readings:
            outliers.feed(at, sg, at)
        return time.thread_time() - began

    assert min(map(seconds, range(5))) / len(readings) < 10e-6
