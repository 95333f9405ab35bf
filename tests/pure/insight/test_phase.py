"""Each phase, its edges, and what must not be mistaken for it."""

import pytest

from gateway.insight import phase
from gateway.insight.progress import Progress, insight
from gateway.insight.records import Facts, Sample
from tests.pure.insight.brews import HOUR_S, T0, ale, between, figures_at, phases, samples, story

PITCHED = Facts(pitched_at=T0)


def test_an_ale_starts_slows_and_is_done() -> None:
    assert phases(figures_at(ale(), 100)) == ["active", "slowing"]
    assert phases(figures_at(ale(), 220)) == ["active", "slowing", "finished"]
    (_, began), _, (_, done) = story(figures_at(ale(), 220))
    assert 16 <= began <= 24
    # Not before the window is flat, and not days later.
    assert 96 + 24 <= done <= 96 + 48


def test_a_phase_is_entered_at_the_third_look() -> None:
    change = figures_at(ale(), 90).changes[0]
    hour = (change.at - T0) // HOUR_S
    assert figures_at(ale(), hour - 0.01).phase == "lag"
    known = figures_at(ale(), hour)
    assert (known.phase, known.phase_since, known.changes) == ("active", change.at, (change,))


def test_a_brew_that_never_starts_stays_in_lag() -> None:
    known = figures_at(between((0, 1.050)), 240)
    assert (known.phase, known.phase_since, known.changes) == ("lag", T0, ())


def test_a_device_in_water_is_not_done() -> None:
    assert figures_at(between((0, 1.000)), 240, Facts(pitched_at=T0, recipe_fg=1.010)).phase == "lag"


@pytest.mark.parametrize(
    ("end", "recipe_fg", "expected"),
    [
        # OG 1.050: 59, 61, 64.9 and 65.1 % without a recipe.
        (1.0205, None, "stuck"),
        (1.0195, None, "ended high"),
        (1.0176, None, "ended high"),
        (1.0174, None, "finished"),
        # 61 %, and 1, 5 and 7 points above the recipe's.
        (1.0195, 1.0185, "finished"),
        (1.0195, 1.0145, "ended high"),
        (1.0195, 1.0125, "stuck"),
        # Both gates hold: 70 %, and 5 and 8 points above.
        (1.0150, 1.0100, "finished"),
        (1.0150, 1.0070, "stuck"),
        # 72.2 %: done, however low the recipe goes.
        (1.0139, 1.0010, "finished"),
        # A sweet stout: 50 %, as its recipe says.
        (1.0250, 1.0240, "finished"),
        (1.0250, 1.0200, "stuck"),
    ],
)
def test_gates(end: float, recipe_fg: float | None, expected: str) -> None:
    known = figures_at(ale(end), 220, Facts(pitched_at=T0, recipe_fg=recipe_fg))
    assert ("ended high" if known.ended_high else known.phase) == expected
    assert known.phase == ("finished" if expected == "ended high" else expected)


def test_stuck_comes_after_two_days_at_the_earliest() -> None:
    quick = between((2, 1.050), (14, 1.030))
    known = figures_at(quick, 120)
    assert story(known)[-1][0] == "stuck"
    assert 48 <= story(known)[-1][1] <= 60


def test_done_comes_after_sixty_hours_at_the_earliest() -> None:
    quick = between((2, 1.050), (14, 1.010))
    assert 60 <= dict(story(figures_at(quick, 120)))["finished"] <= 72


@pytest.mark.parametrize("rule_is_broken", [False, True])
def test_foam_that_holds_the_device_up_is_not_stuck(
    monkeypatch: pytest.MonkeyPatch, rule_is_broken: bool
) -> None:
    gravity = between((10, 1.050), (50, 1.030), (54, 1.036), (82, 1.036), (84, 1.020), (130, 1.012))
    if rule_is_broken:
        monkeypatch.setattr(phase, "STUCK_ABOVE_LOWEST_SG", 1.0)
    assert ("stuck" in phases(figures_at(gravity, 240))) == rule_is_broken


def test_stuck_beer_that_falls_again_is_active() -> None:
    known = figures_at(between((10, 1.050), (60, 1.028), (160, 1.028), (200, 1.016)), 200)
    assert phases(known) == ["active", "slowing", "stuck", "active"]
    assert not known.changes[-1].resumed


@pytest.mark.parametrize(("fall", "told"), [(0.0015, False), (0.003, True)])
def test_a_later_fall_resumes_a_finished_brew(fall: float, told: bool) -> None:
    known = figures_at(between((10, 1.050), (80, 1.012), (200, 1.012), (240, 1.012 - fall)), 250)
    assert any(change.resumed for change in known.changes) == told
    assert phases(known)[:3] == ["active", "slowing", "finished"]


def test_a_brew_that_resumed_is_done_again() -> None:
    known = figures_at(between((10, 1.050), (80, 1.012), (200, 1.012), (240, 1.006)), 340)
    assert [change.resumed for change in known.changes].count(True) == 1
    assert known.phase == "finished"
    assert known.changes[-1].sg == pytest.approx(1.006, abs=0.0002)


def test_a_device_that_touches_the_wall_does_not_resume_a_brew() -> None:
    def gravity(hour: float) -> float:
        return 1.012 - (0.004 if 200 <= hour < 206 else 0) if hour > 96 else ale()(hour)

    assert phases(figures_at(gravity, 240)) == ["active", "slowing", "finished"]


COLD = between((0, 20.0), (150, 20.0), (160, 3.0))


def test_a_cold_crash_after_done() -> None:
    known = figures_at(ale(), 260, celsius=COLD)
    assert phases(known) == ["active", "slowing", "finished", "cold_crash"]
    assert known.cold_since is not None
    assert 150 <= (known.cold_since - T0) / HOUR_S <= 160
    assert known.crashed_at_sg is None


def test_a_cold_crash_before_done_says_so_is_never_stuck_and_may_be_done() -> None:
    early = between((0, 20.0), (60, 20.0), (66, 3.0))
    high = figures_at(between((10, 1.050), (60, 1.024), (62, 1.024)), 300, celsius=early)
    assert phases(high) == ["active", "cold_crash"]
    assert high.crashed_at_sg == pytest.approx(1.024, abs=0.001)
    done = figures_at(between((10, 1.050), (60, 1.013), (62, 1.013)), 300, celsius=early)
    assert phases(done) == ["active", "cold_crash", "finished"]
    assert done.crashed_at_sg == pytest.approx(1.013, abs=0.002)
    assert done.cold_since is not None


def test_warmed_up_again_the_brew_is_in_the_phase_before() -> None:
    back = between((0, 20.0), (60, 20.0), (66, 3.0), (100, 3.0), (106, 20.0))
    known = figures_at(between((10, 1.050), (60, 1.024), (110, 1.024), (150, 1.012)), 130, celsius=back)
    assert phases(known)[:3] == ["active", "cold_crash", "active"]
    assert known.cold_since is None


def test_a_cold_spindle_that_warms_up_does_not_resume_the_brew() -> None:
    back = between((0, 20.0), (60, 20.0), (66, 3.0), (200, 3.0), (212, 20.0))
    gravity = between((10, 1.050), (60, 1.010), (66, 1.013), (200, 1.013), (212, 1.010))
    known = figures_at(gravity, 300, celsius=back)
    assert "finished" in phases(known)
    assert not any(change.resumed for change in known.changes)


@pytest.mark.parametrize(
    ("celsius", "name"),
    [
        (between((0, 28.0), (10, 28.0), (16, 12.0)), "warm wort is cooled after pitching"),
        (between((0, 19.0), (70, 23.5), (80, 17.0)), "the yeast's own heat is gone"),
        (between((0, 36.0), (60, 36.0), (70, phase.COLD_C + 0.5)), "a kveik at room temperature"),
        (between((0, 19.0), (70, 19.0), (80, 16.0)), "3 K only"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_cold_crash(celsius: object, name: str) -> None:
    assert callable(celsius)
    assert "cold_crash" not in phases(figures_at(ale(), 140, celsius=celsius)), name


def test_without_a_temperature_there_is_no_cold_crash() -> None:
    readings = [sample._replace(temp_c=None) for sample in samples(ale(), 220)]
    assert phases(insight(readings, PITCHED, T0 + 220 * HOUR_S)) == ["active", "slowing", "finished"]


def test_a_warmer_chamber_makes_a_slow_brew_active_again() -> None:
    gravity = between((10, 1.060), (40, 1.035), (100, 1.032), (130, 1.012))
    assert phases(figures_at(gravity, 125))[:3] == ["active", "slowing", "active"]


def test_a_mark_restarts_the_windows() -> None:
    usual = dict(story(figures_at(ale(), 220)))["finished"]
    marked = figures_at(ale(), 260, Facts(pitched_at=T0, marks=(T0 + (usual - 1) * HOUR_S,)))
    assert dict(story(marked))["finished"] >= usual - 1 + 28
    assert marked.og == figures_at(ale(), 220).og


def test_a_mark_takes_back_what_was_said() -> None:
    stuck = between((10, 1.050), (60, 1.028))
    marked = figures_at(stuck, 220, Facts(pitched_at=T0, marks=(T0 + 150 * HOUR_S,)))
    assert phases(marked) == ["active", "slowing", "stuck", "slowing", "stuck"]
    assert story(marked)[3] == ("slowing", 150)


def test_a_gap_of_a_day_empties_the_windows() -> None:
    done = dict(story(figures_at(ale(), 220)))["finished"]
    readings = [s for s in samples(ale(), 260) if not 100 <= (s.at - T0) / HOUR_S <= 130]
    known = insight(readings, PITCHED, T0 + 260 * HOUR_S)
    assert dict(story(known))["finished"] >= 130 + 28 > done


def test_a_swap_of_the_device_is_no_fall_and_keeps_the_original_gravity() -> None:
    swap = T0 + 180 * HOUR_S
    facts = Facts(pitched_at=T0, swaps=(swap,))
    readings = [s._replace(sg=s.sg - 0.004) if s.at >= swap and s.sg else s for s in samples(ale(), 260)]
    known = insight(readings, facts, T0 + 260 * HOUR_S)
    assert phases(known) == ["active", "slowing", "finished"]
    assert known.og == figures_at(ale(), 220).og
    assert any(change.resumed for change in insight(readings, PITCHED, T0 + 260 * HOUR_S).changes)


def test_after_a_swap_the_current_gravity_is_of_the_new_device() -> None:
    swap = T0 + 180 * HOUR_S
    readings = [s._replace(sg=s.sg - 0.004) if s.at >= swap and s.sg else s for s in samples(ale(), 181)]
    known = insight(readings, Facts(pitched_at=T0, swaps=(swap,)), T0 + 181 * HOUR_S)
    assert known.sg == pytest.approx(1.008)


@pytest.mark.parametrize(("points", "asked"), [(0.0025, False), (0.005, True)])
def test_a_rise_that_stays_is_perhaps_sugar(points: float, asked: bool) -> None:
    gravity = between((10, 1.050), (80, 1.012), (150, 1.012), (151, 1.012 + points))
    early, known = figures_at(gravity, 160), figures_at(gravity, 175)
    assert early.rise is None
    assert (known.rise is not None) == asked
    if known.rise is not None:
        assert known.rise.sg == pytest.approx(points, abs=0.0003)
        assert 150 <= (known.rise.since - T0) / HOUR_S <= 156


def test_a_rise_that_goes_away_is_none() -> None:
    gravity = between((10, 1.050), (80, 1.012), (150, 1.012), (151, 1.020), (158, 1.020), (159, 1.012))
    assert figures_at(gravity, 200).rise is None


def test_a_device_that_came_late_knows_a_finished_brew() -> None:
    facts = Facts(pitched_at=T0 - 240 * HOUR_S, og_by_hand=1.050)
    known = figures_at(between((0, 1.011)), 60, facts)
    assert phases(known) == ["finished"]


def test_without_original_gravity_and_recipe_nothing_is_called_done() -> None:
    facts = Facts(pitched_at=T0 - 240 * HOUR_S)
    assert figures_at(between((0, 1.030), (20, 1.011)), 160, facts).phase == "slowing"


def test_a_far_sample_does_not_cost_a_look_for_each_hour() -> None:
    progress = Progress(PITCHED)
    progress.put(samples(ale(), 30))
    progress.put([Sample(T0 + 20 * 365 * 24 * HOUR_S, 1.010, None)])
    assert progress.insight(T0 + 20 * 365 * 24 * HOUR_S).phase == "active"
