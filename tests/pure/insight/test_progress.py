"""The same samples end in the same figures, in whatever order they come."""

import itertools
import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.insight import phase
from gateway.insight import progress as module
from gateway.insight.progress import Progress, insight
from gateway.insight.records import Facts, Sample
from tests.pure.insight.brews import HOUR_S, T0, ale, between, figures_at, phases, samples

FACTS = (
    Facts(),
    Facts(pitched_at=T0, recipe_fg=1.012),
    Facts(pitched_at=T0, marks=(T0 + 130 * HOUR_S,)),
    Facts(pitched_at=T0, swaps=(T0 + 60 * HOUR_S,)),
)


def noisy(seed: int, hours: int, every_s: int) -> list[Sample]:
    """A brew with noise, a bump, a cold crash and a gap."""
    dice = random.Random(seed)  # noqa: S311
    gap = dice.uniform(0, hours), dice.uniform(0, 40)
    celsius = between((0, 20.0), (hours * 0.7, 20.0), (hours * 0.7 + 6, 4.0))
    return [
        sample._replace(
            sg=sample.sg + dice.gauss(0, 0.0006) if sample.sg and dice.random() > 0.02 else None,
            temp_c=sample.temp_c if dice.random() > 0.05 else None,
        )
        for sample in samples(ale(dice.choice((1.012, 1.024))), hours, celsius, every_s)
        if not gap[0] <= (sample.at - T0) / HOUR_S <= sum(gap)
    ]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 2**32),
    st.integers(1, 220),
    st.sampled_from((300, 900, 1800, 3600, 3 * HOUR_S)),
    st.sampled_from(FACTS),
    st.lists(st.integers(0, 10**6), min_size=1, max_size=6),
)
def test_any_order_ends_in_the_same_figures(
    seed: int, hours: int, every_s: int, facts: Facts, cuts: list[int]
) -> None:
    readings = noisy(seed, hours, every_s)
    now = T0 + hours * HOUR_S
    expected = insight(readings, facts, now)
    dice = random.Random(seed)  # noqa: S311
    dice.shuffle(readings)
    # Looked at between the parts, at times that come later and later as a clock's do.
    shuffled = Progress(facts)
    places = sorted({0, *(cut % (len(readings) + 1) for cut in cuts), len(readings)})
    for begin, end in itertools.pairwise(places):
        shuffled.put(readings[begin:end])
        shuffled.insight(now - (len(readings) - end) * 60)
    assert shuffled.insight(now) == expected
    in_order = Progress(facts)
    for number, sample in enumerate(sorted(readings)):
        in_order.put([sample])
        if number % 7 == 0:
            in_order.insight(sample.at)
    assert in_order.insight(now) == expected


@pytest.mark.parametrize("facts", FACTS)
def test_other_facts_are_as_if_they_had_been_known_before(facts: Facts) -> None:
    readings = noisy(3, 200, 900)
    progress = Progress(Facts(og_by_hand=1.070))
    progress.put(readings)
    progress.insight(T0 + 200 * HOUR_S)
    progress.facts = facts
    assert progress.facts == facts
    assert progress.insight(T0 + 200 * HOUR_S) == insight(readings, facts, T0 + 200 * HOUR_S)


def test_a_sample_of_a_time_that_is_there_takes_its_place() -> None:
    progress = Progress(Facts())
    progress.put(Sample(T0 + 60 * minute, 1.040, 10.0) for minute in range(3))
    progress.put(Sample(T0 + 60 * minute, 1.050, 20.0) for minute in range(3))
    known = progress.insight(T0 + 200)
    assert (known.sg, known.temp_c) == (1.050, 20.0)


def test_figures_of_an_earlier_time_are_those_of_then() -> None:
    progress = Progress(Facts(pitched_at=T0))
    progress.put(samples(ale(), 200))
    progress.insight(T0 + 200 * HOUR_S)
    assert progress.insight(T0 + 100 * HOUR_S) == figures_at(ale(), 100)
    assert progress.insight(T0 + 200 * HOUR_S) == figures_at(ale(), 200)


def count_looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    real: Callable[..., None] = phase.look

    def counting(state: phase.State, now: int, *rest: object) -> None:
        made.append(now)
        real(state, now, *rest)

    monkeypatch.setattr(module, "look", counting)
    return made


def test_looks_are_made_once_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_looks(monkeypatch)
    progress = Progress(Facts(pitched_at=T0))
    for sample in samples(ale(), 48):
        progress.put([sample])
        progress.insight(sample.at)
        progress.insight(sample.at + 60)
    assert made == [T0 + hour * HOUR_S for hour in range(49)]


def test_a_late_sample_costs_the_looks_since_then_and_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress(Facts(pitched_at=T0))
    readings = [sample for sample in samples(ale(), 300) if sample.at != T0 + 280 * HOUR_S]
    progress.put(readings)
    progress.insight(T0 + 300 * HOUR_S)
    made = count_looks(monkeypatch)
    progress.put([Sample(T0 + 280 * HOUR_S, 1.012, 19.0)])
    known = progress.insight(T0 + 300 * HOUR_S)
    assert 20 <= len(made) <= 20 + 25
    assert known == figures_at(ale(), 300)


def test_a_sample_weeks_late_is_seen_too() -> None:
    late = [sample for sample in samples(ale(), 800) if (sample.at - T0) // HOUR_S == 30]
    progress = Progress(Facts(pitched_at=T0))
    progress.put(sample for sample in samples(ale(), 800) if sample not in late)
    progress.insight(T0 + 800 * HOUR_S)
    progress.put(late)
    assert progress.insight(T0 + 800 * HOUR_S) == figures_at(ale(), 800)


def test_two_weeks_of_a_device_that_sends_each_minute_take_forty_kilobytes_at_most() -> None:
    progress = Progress(Facts(pitched_at=T0))
    progress.put(samples(ale(), 14 * 24, every_s=60))
    progress.insight(T0 + 14 * 24 * HOUR_S)
    kept = (progress._gravity, progress._temps, progress._looks)
    arrays = sum(
        part.buffer_info()[1] * part.itemsize for series in kept for part in (series.at, series.values)
    )
    states = sum(state.__sizeof__() + 8 * 32 for state in progress._snapshots)
    assert 10_000 < arrays + states <= 40_000


def test_the_past_of_a_long_brew_stays_bounded() -> None:
    progress = Progress(Facts(pitched_at=T0))
    progress.put(samples(ale(), 24 * 90, every_s=HOUR_S))
    known = progress.insight(T0 + 24 * 90 * HOUR_S)
    assert len(progress._looks.at) <= 18 * 24 + 1
    assert len(progress._snapshots) == module.SNAPSHOTS
    assert phases(known) == ["active", "slowing", "finished"]
