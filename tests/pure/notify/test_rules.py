"""Every rule: when it holds, when it does not, and what it says."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.alarm import RULES
from gateway.insight.records import Insight
from gateway.notify import house, phases
from gateway.notify.gather import not_understood
from gateway.notify.rules import look_at_brew, look_at_device, look_at_keeper, look_at_target
from gateway.notify.temperatures import Limits, course
from gateway.notify.views import BrewView, DeviceView, Finding, KeeperView, TargetView, Trouble
from gateway.store.protocols.alarms import QuarantinedSource, Signs
from tests.pure.notify.views import DAY_S, HOUR_S, NOW, alarm, brew, device, insight


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def no_setting(_: str) -> Mapping[str, Any]:
    return {}


def found(view: BrewView, rule: str, told: Any = (), setting: Mapping[str, Any] | None = None) -> Finding:
    """The finding of the present; history apart."""
    return next(
        f for f in all_found(view, rule, told, setting) if f.late_until is None and "cold" not in f.limit
    )


def all_found(
    view: BrewView, rule: str, told: Any = (), setting: Mapping[str, Any] | None = None
) -> list[Finding]:
    findings = look_at_brew(view, lambda name: setting if name == rule and setting else {}, told, NOW)
    return [finding for finding in findings if finding.rule == rule]


ACTIVE = insight((60, "active"))
STUCK = insight((60, "active"), (5, "stuck"), attenuation=45.0, sg=1.0275, fell_36h=0.0004)
DONE = insight((60, "active"), (20, "slowing"), (5, "finished"), attenuation=80.0, sg=1.010)
RESUMED = insight((90, "active"), (40, "finished"), (5, "active"), sg=1.008)


def test_every_rule_speaks_about_its_subject_and_no_rule_is_forgotten() -> None:
    findings = look_at_brew(brew(DONE), no_setting, [], NOW)
    findings += look_at_device(device(), no_setting, NOW)
    findings += [look_at_target(TargetView("t", "well"), no_setting, NOW)]
    findings += look_at_keeper(KeeperView({"disk": None}), no_setting, NOW)
    assert {finding.rule for finding in findings} == RULES.keys()
    for finding in findings:
        assert finding.scope in RULES[finding.rule].scopes
        assert finding.fires(NOW) or finding.why_not, f"{finding.rule} says nothing"
    off = look_at_brew(brew(DONE), lambda _: None, [], NOW) + look_at_device(device(), lambda _: None, NOW)
    off += [look_at_target(TargetView("t", "blocked"), lambda _: None, NOW)]
    off += look_at_keeper(KeeperView({"disk": Trouble(NOW, "full")}), lambda _: None, NOW)
    assert all(finding.off and finding.holds is False for finding in off)


def test_started_is_told_once_while_it_is_news() -> None:
    one = found(brew(insight((5, "active"))), "started")
    assert (one.holds, one.note, one.late_until) == (True, True, None)
    assert one.text == "B1 Stout has been fermenting since Wed 04 Mar 04:20."
    (late,) = all_found(brew(insight((25, "active"))), "started")
    assert late.late_until == NOW - 25 * HOUR_S, "history"
    told = [alarm(rule="started")]
    assert found(brew(insight((5, "active"))), "started", told).holds is False
    assert found(brew(insight()), "started").holds is False


@pytest.mark.parametrize(
    ("figures", "cold", "setting", "holds"),
    [
        (insight(day=2.9), False, {}, False),
        (insight(day=3.0), False, {}, True),
        (insight(day=3.5), True, {}, False),
        (insight(day=4.0), True, {}, True),
        (insight(day=2.0), False, {"hours": 48}, True),
        (insight(day=5.0, sg=None), False, {}, None),
        (insight((60, "active"), day=5.0), False, {}, False),
    ],
)
def test_not_started(figures: Insight, cold: bool, setting: dict[str, Any], holds: bool | None) -> None:
    one = found(brew(figures, cold_yeast=cold), "not_started", setting=setting)
    assert one.holds is holds
    if holds:
        assert "has not begun to ferment" in one.text


def test_stuck_and_its_end() -> None:
    one = found(brew(STUCK), "stuck")
    assert (one.holds, one.since, one.evidence["sg"]) == (True, NOW - 5 * HOUR_S, 1.0275)
    assert one.text == (
        "B1 Stout is stuck at 1.028, 45 % attenuated, since Wed 04 Mar 04:20. It fell by 0.4 points in 36 h."
    )
    assert found(brew(replace(STUCK, sg=None)), "stuck").holds is None, "nobody knows without readings"
    again = insight((60, "active"), (30, "stuck"), (2, "active"))
    assert found(brew(again), "stuck").ended == "B1 Stout ferments again: 1.020."
    crashed = insight((60, "active"), (20, "stuck"), (2, "cold_crash"))
    assert found(brew(crashed), "stuck").holds is True, "cold ends no phase"


def test_what_was_over_before_anybody_was_told_is_history() -> None:
    figures = insight((90, "active"), (60, "stuck"), (40, "active"), (5, "finished"))
    past, now = all_found(brew(figures), "stuck")
    assert (past.since, past.late_until, past.note) == (NOW - 60 * HOUR_S, NOW - 40 * HOUR_S, True)
    assert now.holds is False
    for told in (alarm(evidence={"at": NOW - 55 * HOUR_S}), alarm(evidence={}, fired_at=NOW - 60 * HOUR_S)):
        assert len(all_found(brew(figures), "stuck", [told])) == 1


def test_done_asks_and_says_what_is_special() -> None:
    one = found(brew(DONE), "done")
    assert one.holds is True
    assert one.text == "B1 Stout stands still at 1.010, 80 % attenuated. Is it done?"
    high = replace(DONE, ended_high=True, sg=1.018)
    text = found(brew(high, recipe_fg=1.012), "done").text
    assert (
        text == "B1 Stout ended high: 1.018, the recipe says 1.012. It stands still since Wed 04 Mar 04:20."
    )
    cold = replace(DONE, cold_since=NOW - 26 * HOUR_S)
    assert "It is cold since Tue 03 Mar 07:20" in found(brew(cold), "done").text
    assert found(brew(DONE, asks=False), "done").why_not == "you said that it is not done yet"
    assert found(brew(RESUMED), "done").holds is False


def test_a_crash_before_it_is_done_is_said_once() -> None:
    figures = insight((60, "active"), (5, "cold_crash"), cold_since=NOW - 7 * HOUR_S, crashed_at_sg=1.016)
    (note,) = [f for f in all_found(brew(figures), "done") if f.note]
    assert (note.holds, note.late_until) == (True, None)
    assert "crashed at 1.016, not yet done" in note.text
    told = [alarm(rule="done", evidence=note.evidence)]
    assert not [f for f in all_found(brew(figures), "done", told) if f.note]
    finished = insight((60, "active"), (30, "cold_crash"), (1, "finished"), crashed_at_sg=1.016)
    finished = replace(finished, cold_since=NOW - 30 * HOUR_S)
    assert found(brew(finished), "done", told).holds is True, "the note is not the end"


def test_resumed_is_told_for_each_time() -> None:
    one = found(brew(RESUMED), "resumed")
    assert (one.holds, one.since) == (True, NOW - 5 * HOUR_S)
    assert one.text == "B1 Stout ferments again: it stood still at 1.020, now it is at 1.008."
    assert found(brew(RESUMED), "resumed", [alarm(rule="resumed", evidence=one.evidence)]).told is True
    earlier = alarm(rule="resumed", evidence={"at": NOW - 90 * HOUR_S})
    assert found(brew(RESUMED), "resumed", [earlier]).told is False, "another time"
    over = insight((190, "active"), (140, "finished"), (90, "active"), (5, "finished"))
    past, now = all_found(brew(over), "resumed")
    assert (past.late_until, now.holds) == (NOW - 5 * HOUR_S, False)


@pytest.mark.parametrize(
    ("limits", "holds"),
    [
        ({"sg": 1.020}, True),
        ({"sg": 1.0199}, False),
        ({"attenuation": 60}, True),
        ({"attenuation": 60.1}, False),
        ({"day": 5}, True),
        ({"day": 5.1}, False),
        ({"sg": 1.01, "day": 5}, True),
    ],
)
def test_reached(limits: dict[str, float], holds: bool) -> None:
    one = found(brew(ACTIVE), "reached", setting={**limits, "text": "dry hops"})
    assert (one.holds, one.held_s) == (holds, 3600 if holds else 0)
    if holds:
        assert one.text.startswith("B1 Stout: dry hops (")
        told = [alarm(rule="reached", evidence={"limits": limits})]
        assert found(brew(ACTIVE), "reached", told, setting=limits).told is True
        other = [alarm(rule="reached", evidence={"limits": {"day": 1}})]
        assert found(brew(ACTIVE), "reached", other, setting=limits).told is False


def temps(*values: float, step_s: int = 900) -> tuple[tuple[int, float], ...]:
    """A series that ends now."""
    return tuple((NOW - (len(values) - 1 - place) * step_s, value) for place, value in enumerate(values))


@pytest.mark.parametrize(
    ("values", "holds", "kind", "since"),
    [
        ((20, 20, 20, 20, 20), False, "", -1800),
        ((20, 20, 30, 20, 20), False, "", -1800),  # one odd value
        ((20, 20, 24, 24, 24), True, "warm", -900),
        ((20, 24, 24, 24, 24), True, "warm", -1800),
        ((20, 15, 15, 15, 15), True, "cold", -1800),
        ((24, 24, 24, 21.8, 21.8), None, "", 0),  # inside, but not by 0.5 K
        ((24, 24, 24, 21, 21, 21), None, "", -900),  # not for 30 min
        ((24, 24, 24, 21, 21, 21, 21), False, "", -1800),
        ((18, 18, 18, 21.4, 21.4, 21.4), True, "moved", -900),
        ((20, 20), None, None, 0),
    ],
)
def test_course_of_temperatures(
    values: tuple[float, ...], holds: bool | None, kind: str | None, since: int
) -> None:
    seen = course(temps(*values), Limits(17, 22, NOW - DAY_S))
    if kind is None:
        assert seen is None
        return
    assert seen is not None
    assert (seen.holds, seen.kind) == (holds, kind)
    assert seen.since - NOW == since or holds is None


def test_temperature_of_a_brew() -> None:
    warm = Signs(temps=temps(20, 20, 24, 24, 24, 24))
    one = found(brew(ACTIVE, signs=warm, lo=17, hi=22), "temperature")
    assert (one.holds, one.held_s, one.since) == (True, 1800, NOW - 1800)
    assert one.text == "B1 Stout is too warm: 24.0 °C, at most 22 °C are meant, since Wed 04 Mar 08:50."
    slow = Signs(temps=temps(21, 22, 23, 24, 24, 24, 24, step_s=1800))
    assert found(brew(ACTIVE, signs=slow, hi=22), "temperature").holds is True
    assert found(brew(ACTIVE, signs=slow, hi=22), "temperature", setting={"hi": 25}).holds is False
    cold = Signs(temps=temps(4, 4, 4, 4, 4, 4))
    assert found(brew(ACTIVE, signs=cold, lo=17, hi=22), "temperature").holds is True
    assert found(brew(DONE, signs=cold, lo=17, hi=22), "temperature").holds is False, (
        "a done beer may be cold"
    )
    crash = replace(ACTIVE, cold_since=NOW - HOUR_S)
    falls = Signs(temps=temps(20, 20, 20, 12, 8, 4))
    assert found(brew(crash, signs=falls, lo=17), "temperature").holds is False, "a cold crash"
    assert found(brew(ACTIVE, signs=falls), "temperature").holds is True, "3 K in an hour"
    young = replace(ACTIVE, day=0.2)
    assert found(brew(young, signs=falls), "temperature").holds is False, "wort that cools"
    old = Signs(temps=tuple((at - 4 * HOUR_S, value) for at, value in warm.temps))
    assert found(brew(ACTIVE, signs=old, hi=22), "temperature").holds is None
    no_limits = found(brew(replace(ACTIVE, day=None), signs=warm), "temperature")
    assert no_limits.why_not == "no limits: set lo or hi"


def test_a_limit_beyond_the_recipes_range_leaves_nothing_of_that() -> None:
    """A yeast for 18 to 22 °C, kept below 14 °C on purpose: no temperature is right for both."""
    cool = Signs(temps=temps(12, 12, 12, 12, 12, 12))
    look = brew(ACTIVE, signs=cool, lo=18, hi=22)
    assert found(look, "temperature", setting={"hi": 14}).holds is False
    assert found(look, "temperature", setting={"hi": 20}).holds is True, "below the recipe's"
    assert found(look, "temperature", setting={"lo": 25}).holds is True


def of_device(view: DeviceView, rule: str, setting: Mapping[str, Any] | None = None) -> Finding:
    findings = look_at_device(view, lambda name: setting if name == rule and setting else {}, NOW)
    return next(finding for finding in findings if finding.rule == rule)


def times(age_s: int, gap_s: int = 900, number: int = 13) -> tuple[int, ...]:
    return tuple(NOW - age_s - place * gap_s for place in range(number))


@pytest.mark.parametrize(
    ("members", "holds"),
    [
        ({"signs": Signs(times=times(1889))}, False),
        ({"signs": Signs(times=times(1891))}, True),
        ({"signs": Signs(times=times(1891)), "brew": ""}, False),
        ({"signs": Signs(times=times(1891)), "quiet_until": NOW + 1}, None),
        ({"signs": Signs(times=times(599)), "interval_s": 60}, False),
        ({"signs": Signs(times=times(601)), "interval_s": 60}, True),
        ({"signs": Signs(times=times(3 * 3600 - 60, 3600)), "interval_s": None}, False),
        ({"signs": Signs(times=times(3 * 3600 + 60, 3600)), "interval_s": None}, True),
        ({"signs": Signs(times=times(1900, 60)), "interval_s": None}, True),
        ({"signs": Signs(times=times(86_500, 50_000)), "interval_s": None}, True),
        ({"in_brew_since": NOW - HOUR_S}, False),  # it is not in the beer yet
        ({"in_brew_since": NOW - 25 * HOUR_S}, True),
        ({"signs": Signs(times=times(9000)), "in_brew_since": NOW - HOUR_S}, False),
    ],
)
def test_silent(members: dict[str, Any], holds: bool | None) -> None:
    one = of_device(device(**members), "silent")
    assert one.holds is holds
    if holds:
        assert one.text.startswith("GREEN in B1 Stout is silent: ")


def test_a_silent_device_that_is_put_into_a_new_brew_does_not_report_again() -> None:
    reports = of_device(device(signs=Signs(times=times(60))), "silent")
    assert (reports.why_not, reports.ended) == ("it reports", "GREEN reports again.")
    moved = of_device(device(signs=Signs(times=times(9000)), in_brew_since=NOW - HOUR_S), "silent")
    assert "reports" not in moved.ended
    assert moved.ended == "GREEN is in B1 Stout now, and has not reported there yet."
    assert moved.why_not.startswith("it has until ")


def volts(*values: float) -> Signs:
    return Signs(volts=tuple((NOW - place * 900, value) for place, value in enumerate(values)))


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ((3.4, 3.4, 3.4, 3.4), True),
        ((3.5, 3.5, 3.5, 3.5), True),
        ((3.4, 3.4, 3.9, 3.9, 3.9), False),  # one median alone
        ((3.4, 3.9, 3.4, 3.4, 3.4), True),  # one odd value
        ((3.55, 3.55, 3.55, 3.4, 3.4, 3.4, 3.4), None),  # not clearly well again
        ((3.55, 3.55, 3.55, 3.9, 3.9, 3.9), False),  # it was well, and is
        ((3.6, 3.6, 3.6, 3.4, 3.4, 3.4), False),
        ((3.4, 3.4), None),
    ],
)
def test_battery_in_volts(values: tuple[float, ...], holds: bool | None) -> None:
    # Newest first.
    one = of_device(device(signs=volts(*values)), "battery")
    assert one.holds is holds
    if holds:
        assert one.text.startswith("The battery of GREEN is low: 3.")


def test_batteries_of_other_families() -> None:
    low = volts(*[3.0] * 6)
    assert of_device(device(family="gravitymon", signs=low), "battery").holds is True
    assert of_device(device(family="tilt", signs=low), "battery").holds is False, "nobody knows its battery"
    assert of_device(device(family="tilt", signs=low), "battery", {"volts": 3.1}).holds is True
    percents = Signs(percents=tuple((NOW - place * 900, 15.0) for place in range(6)))
    assert of_device(device(family="rapt", signs=percents), "battery").holds is True
    assert of_device(device(family="rapt", signs=percents), "battery", {"percent": 10}).holds is not True


def test_temperature_of_a_device_in_no_brew() -> None:
    warm = Signs(temps=temps(24, 24, 24, 24, 24, 24))
    assert of_device(device(brew="", signs=warm), "temperature", {"hi": 22}).holds is True
    assert of_device(device(brew="", signs=warm), "temperature").holds is False
    assert of_device(device(signs=warm), "temperature", {"hi": 22}).why_not == "its brew has the rule"


@pytest.mark.parametrize(
    ("view", "holds", "words"),
    [
        (TargetView("t", "well"), False, ""),
        (TargetView("t", "blocked", "no key"), True, "t does not take anything (no key)"),
        (TargetView("t", "retries", "no answer", NOW - 3599), False, ""),
        (TargetView("t", "retries", "late", NOW - 7200), True, "Nothing has gone to t for 2 hours (late)"),
        (TargetView("t", "well", "", NOW - 2800, interval_s=900), True, "Nothing has gone to t for 47"),
        (TargetView("t", "well", "", NOW - 2600, interval_s=900), False, ""),
        (TargetView("t", "well", "", None, 4, NOW - DAY_S + 1), True, "t refused a reading, 4 in all"),
        (TargetView("t", "well", "", None, 4, NOW - DAY_S), False, ""),
        (TargetView("t", "paused", "", NOW - DAY_S), False, ""),
        (TargetView("t", "held", "the clock", NOW - DAY_S), None, ""),
        (TargetView("t", "off", "", NOW - DAY_S), None, ""),
    ],
)  # fmt: skip
def test_sending(view: TargetView, holds: bool | None, words: str) -> None:
    one = look_at_target(view, no_setting, NOW)
    assert one.holds is holds
    assert one.text.startswith(words)


def test_keeper() -> None:
    view = KeeperView({"disk": Trouble(NOW, "Full."), "backup": None})
    found = {finding.subject: finding for finding in look_at_keeper(view, no_setting, NOW)}
    assert found.keys() == house.KEEPER.keys()
    assert [found[name].holds for name in ("disk", "backup", "clock")] == [True, False, None]
    assert found["disk"].text == "Full."


def test_a_device_that_is_not_understood_any_more() -> None:
    heard = {"192.0.2.1": (7, NOW - 600)}
    items = [QuarantinedSource("192.0.2.1", NOW - age, "no number") for age in (0, 300)]
    trouble = not_understood(items, heard)
    assert trouble is not None
    assert trouble.since == NOW - 300
    assert "192.0.2.1" in trouble.text
    assert not_understood(items[:1], heard) is None, "one may be a disturbance"
    assert not_understood(items, {"192.0.2.1": (7, NOW - 100)}) is None, "it was understood since"
    assert not_understood(items, {}) is None, "nobody knows who that is"


def test_limits_are_those_of_the_document() -> None:
    assert (phases.LAG_H, phases.COLD_LAG_H) == (72, 96)
    assert (house.VOLTS, house.PERCENT, house.WAITS_S) == (3.5, 15.0, 3600)
    assert isinstance(found(brew(DONE), "done"), Finding)
