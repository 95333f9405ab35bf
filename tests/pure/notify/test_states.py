"""The states of alarms: every transition, and who is told."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.alarm import OPEN, Alarm
from gateway.notify.states import LATE_S, REMIND_S, REMINDERS, next_states
from gateway.notify.views import Finding
from gateway.services.alarms import AGAIN_S
from gateway.store.protocols.alarms import AlarmChange
from tests.pure.notify.views import DAY_S, HOUR_S, NOW, alarm, finding

PENDING = alarm(state="pending", fired_at=None, since=NOW - 600)
FIRING = alarm()
ACKED = alarm(state="acknowledged", acked_at=NOW - 60, acked_by="me")
SNOOZED = alarm(state="snoozed", snoozed_until=NOW + 60)
ENDED = alarm(state="ok", cleared_at=NOW - 600)
HELD = {"held_s": 1800, "rule": "temperature"}
FIRES, QUIETLY, REMINDS = ("firing", "fired", True), ("firing", "fired", False), ("firing", "reminder", True)
UNTOLD_END, TOLD_END = ("ok", "cleared", False), ("ok", "cleared", True)
AWAKE = alarm(state="snoozed", snoozed_until=NOW)
LONG_AGO, LATER = replace(ENDED, cleared_at=NOW - AGAIN_S - 1), replace(ENDED, cleared_at=NOW + DAY_S)
ENDED_ACKED, ENDED_NOTE = replace(ENDED, acked_at=NOW - 900), replace(ENDED, evidence={"note": True})

TRANSITIONS: list[
    tuple[str, Alarm | None, Alarm | None, Finding, tuple[str, str | None, bool] | None]
] = [
    ("it holds, no time asked", None, None, finding(), FIRES),
    ("it holds, not for long", None, None, finding(**HELD, since=NOW - 60), ("pending", None, False)),
    ("it holds for long already", None, None, finding(**HELD), FIRES),
    ("it does not hold", None, None, finding(holds=False), None),
    ("nothing is known", None, None, finding(holds=None), None),
    ("it was told", None, None, finding(told=True), None),
    ("a note", None, None, finding(note=True), ("ok", "fired", True)),
    ("a note that was told", None, None, finding(note=True, told=True), None),
    ("history", None, None, finding(note=True, late_until=NOW - 60), ("ok", "fired", False)),
    ("pending, not for long", PENDING, None, finding(held_s=1800, since=NOW), None),
    ("pending, for long", PENDING, None, finding(held_s=600, since=NOW), FIRES),
    ("pending, over", PENDING, None, finding(holds=False), ("ok", None, False)),
    ("pending, unknown", PENDING, None, finding(holds=None), None),
    ("firing, still", FIRING, None, finding(), None),
    ("firing, unknown", FIRING, None, finding(holds=None), None),
    ("firing, over", FIRING, None, finding(holds=False), TOLD_END),
    ("firing, switched off", FIRING, None, finding(holds=False, off=True), UNTOLD_END),
    ("info, over", alarm(rule="done"), None, finding(rule="done", holds=False), UNTOLD_END),
    ("once, over", alarm(rule="resumed"), None, finding(rule="resumed", holds=False), UNTOLD_END),
    ("a day old", alarm(fired_at=NOW - REMIND_S), None, finding(), REMINDS),
    ("a day old, just reminded", alarm(fired_at=NOW - DAY_S, reminded_at=NOW - 60), None, finding(), None),
    ("reminded seven times", alarm(fired_at=NOW - 9 * DAY_S, reminders=REMINDERS), None, finding(), None),
    ("acknowledged, a day old", replace(ACKED, fired_at=NOW - DAY_S), None, finding(), None),
    ("acknowledged, over", ACKED, None, finding(holds=False), TOLD_END),
    ("snoozed, still", replace(SNOOZED, fired_at=NOW - 3 * DAY_S), None, finding(), None),
    ("snoozed, time is up", AWAKE, None, finding(), REMINDS),
    ("snoozed, unknown", AWAKE, None, finding(holds=None), None),
    ("pending, of another account", PENDING, None, finding(account_id=2), ("ok", None, False)),
    ("firing, of another account", FIRING, None, finding(account_id=2), UNTOLD_END),
    ("unknown, of another account", FIRING, None, finding(account_id=2, holds=None), UNTOLD_END),
    ("again, of another account", None, ENDED, finding(since=NOW, account_id=2), FIRES),
    ("snoozed, over", SNOOZED, None, finding(holds=False), TOLD_END),
    ("again within 30 min", None, ENDED, finding(since=NOW), QUIETLY),
    ("again after 30 min", None, LONG_AGO, finding(since=NOW), FIRES),
    ("again, was acknowledged", None, ENDED_ACKED, finding(since=NOW), ("acknowledged", "fired", False)),
    ("again, another rule", None, replace(ENDED, rule="silent"), finding(since=NOW), FIRES),
    ("again, the clock went back", None, LATER, finding(since=NOW), FIRES),
    ("again, it was a note", None, ENDED_NOTE, finding(since=NOW), FIRES),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "ended", "found", "expected"),
    [row[1:] for row in TRANSITIONS],
    ids=[row[0] for row in TRANSITIONS],
)
def test_transition(
    before: Alarm | None,
    ended: Alarm | None,
    found: Finding,
    expected: tuple[str, str | None, bool] | None,
) -> None:
    changes = next_states([before] if before else [], [ended] if ended else [], [found], NOW)
    got = [(c.alarm.state, c.event.kind if c.event else None, c.tells) for c in changes]
    assert got == ([expected] if expected else [])
    for change in changes:
        assert (change.alarm.state == "ok") == (change.alarm.cleared_at is not None)
        assert not change.tells or change.event is not None
        late = change.event is not None and change.event.late
        assert late == (found.late_until is not None)


def test_an_alarm_goes_along_with_its_device_to_another_account() -> None:
    """Who has the device in a brew now is told; who had it sees nothing of another's brew."""
    (ended,) = next_states([FIRING], [], [finding(account_id=2)], NOW)
    (begun,) = next_states([], [ended.alarm], [finding(account_id=2)], NOW + 5)
    assert (begun.alarm.id, begun.alarm.account_id, begun.alarm.state, begun.tells) == (0, 2, "firing", True)


def test_an_alarm_that_comes_again_is_the_same_one() -> None:
    (change,) = next_states([], [ENDED], [finding(since=NOW, text="Again.")], NOW)
    assert (change.alarm.id, change.alarm.times, change.alarm.cleared_at) == (ENDED.id, 2, None)
    assert change.alarm.text == "Again."


def test_what_must_hold_and_comes_again_is_the_same_one_too() -> None:
    """Temperature: it was over 5 min ago, was outside again at once, and has been so for 30 min."""
    before = replace(ENDED, rule="temperature", cleared_at=NOW - 1900)
    pending = alarm(id=6, rule="temperature", state="pending", fired_at=None, since=NOW - 1800)
    dropped, again = next_states([pending], [before], [finding(**HELD, since=NOW - 1800)], NOW)
    assert (dropped.alarm.id, dropped.alarm.state, dropped.event) == (6, "ok", None)
    assert (again.alarm.id, again.alarm.times, again.tells) == (before.id, 2, False)


def test_the_message_of_an_end_waits_until_it_cannot_come_again_untold() -> None:
    (change,) = next_states([FIRING], [], [finding(holds=False)], NOW)
    assert change.not_before == NOW + AGAIN_S + LATE_S
    (change,) = next_states([replace(FIRING, rule="temperature")], [], [finding(**HELD, holds=False)], NOW)
    assert change.not_before == NOW + AGAIN_S + 1800 + LATE_S


@pytest.mark.parametrize("held_s", [0, 1800])
def test_what_comes_again_is_told_once_its_end_may_have_been_told(held_s: int) -> None:
    """The gateway was off, or a look came late: who has read that it is over hears that it is not."""
    rule = {"rule": "temperature", "held_s": held_s}
    (ended,) = next_states([replace(FIRING, rule="temperature")], [], [finding(**rule, holds=False)], NOW)
    assert ended.not_before is not None
    since = NOW + AGAIN_S  # as late as it may come again
    for late_s in range(0, 300, 10):
        at = since + held_s + late_s
        *_, change = next_states([], [ended.alarm], [finding(**rule, since=since)], at)
        assert change.event is not None
        assert change.tells == (late_s >= LATE_S // 2)
        assert change.tells or at < ended.not_before, "told that it is over, and not that it is so again"


def test_a_subject_that_has_gone_ends_its_alarms_and_nobody_is_told() -> None:
    gone = {5: "The brew was ended."}
    (change,) = next_states([FIRING], [], [finding()], NOW, gone=gone)
    assert change.event is not None
    assert (change.alarm.state, change.event.text, change.tells) == ("ok", "The brew was ended.", False)
    (change,) = next_states([PENDING], [], [], NOW, gone=gone)
    assert (change.alarm.state, change.event) == ("ok", None)


def test_seven_reminders_and_no_more() -> None:
    one, told = FIRING, 0
    for hour in range(24 * 12):
        for change in next_states([one], [], [finding()], NOW + hour * HOUR_S):
            one, told = change.alarm, told + change.tells
    assert told == REMINDERS == 7


def test_pending_stands_still_while_the_clock_is_in_doubt() -> None:
    held = finding(held_s=3600, since=NOW + 7200)
    before = replace(PENDING, since=NOW - 600)
    (change,) = next_states([before], [], [held], NOW + 7200, stood_still_s=7000)
    assert (change.alarm.state, change.alarm.since) == ("pending", NOW + 6400)
    (change,) = next_states([before], [], [held], NOW + 7200)
    assert change.alarm.state == "firing", "without doubt it would have fired"


def test_no_reminder_is_due_by_a_jump_of_the_clock() -> None:
    old = replace(FIRING, fired_at=3600)  # fired in 1970
    assert next_states([old], [], [finding()], NOW, known_since=NOW) == []
    assert next_states([old], [], [finding()], NOW + DAY_S, known_since=NOW)[0].tells


class Book:
    """A store in memory: alarms by id, and what was told."""

    def __init__(self) -> None:
        self.alarms: dict[int, Alarm] = {}
        self.told: list[tuple[int, str, int]] = []

    def look(self, findings: Sequence[Finding], now: int) -> None:
        alarms = [one for one in self.alarms.values() if one.cleared_at is None]
        recent = [one for one in self.alarms.values() if (one.cleared_at or 0) >= now - AGAIN_S - HOUR_S]
        for change in next_states(alarms, recent, findings, now):
            self._write(change, now)
        keys = [one.key for one in self.alarms.values() if one.cleared_at is None]
        assert len(keys) == len(set(keys)), "one open alarm of each rule and subject"

    def _write(self, change: AlarmChange, now: int) -> None:
        one = change.alarm if change.alarm.id else replace(change.alarm, id=len(self.alarms) + 1)
        self.alarms[one.id] = one
        if change.tells and change.event is not None:
            self.told.append((one.id, change.event.kind, now))

    def firing(self) -> set[tuple[str, str, str]]:
        return {one.key for one in self.alarms.values() if one.state in OPEN}


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=60), st.integers(1, 40))
def test_nothing_is_told_twice(held: list[bool | None], step_min: int) -> None:
    book, was, fires = Book(), False, 0
    for place, holds in enumerate(held):
        now = NOW + place * step_min * 60
        book.look([finding(holds=holds, since=now)], now)
        book.look([finding(holds=holds, since=now)], now)  # a look without news changes nothing
        fires += holds is True and not was
        was = was if holds is None else holds
        assert (book.firing() != set()) == was
    assert len(book.told) == len(set(book.told))
    assert sum(kind == "fired" for _, kind, _ in book.told) <= fires
    assert sum(one.times for one in book.alarms.values()) == fires
