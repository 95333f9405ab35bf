"""The states of alarms: what is open, and what the rules found, says what changes and who is told. Pure.

    ok -> pending -> firing -> acknowledged -> ok;  snoozed is firing with a time

There is one open alarm for each rule and subject. One that ends and comes again within 30 min is the same
one, and nobody is told twice; therefore the message of an end waits for as long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from gateway.domain.alarm import RULES, Alarm, AlarmEvent, EventKind, State
from gateway.notify.views import Finding
from gateway.services.alarms import AGAIN_S
from gateway.store.protocols.alarms import AlarmChange

Key = tuple[str, str, str]

REMIND_S = 86_400
"""Seconds between two reminders of an alarm that nobody has acknowledged."""

REMINDERS = 7
"""Reminders of an alarm at most."""

LATE_S = 120
"""Seconds by which the message of an end waits longer than its alarm may come again.

A look comes each minute and takes time, so what comes again in the last minute is found a little later.
"""

NOTE = "note"
"""The member of the evidence of an alarm that was told of and was over at once."""


def next_states(
    alarms: Sequence[Alarm],
    recent: Sequence[Alarm],
    findings: Sequence[Finding],
    now: int,
    *,
    gone: Mapping[int, str] | None = None,
    known_since: int = 0,
    stood_still_s: int = 0,
) -> list[AlarmChange]:
    """Return what changes. `alarms` are not cleared, `recent` were cleared a short time ago.

    `gone` are the reasons why alarms end, by their id, because their subject has ended. `known_since` is the
    time since which the clock has been known, if it was in doubt: no reminder is due by its jump. For
    `stood_still_s` seconds of doubt pending alarms have waited for nothing.
    """
    changes: list[AlarmChange] = []
    by_key: dict[Key, Alarm] = {alarm.key: alarm for alarm in alarms}
    ended: dict[Key, Alarm] = {alarm.key: alarm for alarm in recent if NOTE not in alarm.evidence}
    for alarm in alarms:
        if gone and alarm.id in gone:
            changes.append(_end(alarm, gone[alarm.id], now))
    for finding in findings:
        if finding.note:
            changes += _note(finding, now)
            continue
        open_alarm, before = by_key.get(finding.key), ended.get(finding.key)
        if open_alarm is None:
            changes += _begin(finding, before, now)
        elif not gone or open_alarm.id not in gone:
            if open_alarm.state == "pending" and stood_still_s:
                open_alarm = replace(open_alarm, since=open_alarm.since + stood_still_s)
            changes += _go_on(open_alarm, finding, before, now, known_since)
    return [change for change in changes if change.event is not None or change.alarm not in alarms]


def _event(alarm: Alarm, kind: EventKind, text: str, now: int, *, late: bool = False) -> AlarmEvent:
    return AlarmEvent(0, alarm.id, now, kind, text, late)


def _note(finding: Finding, now: int) -> list[AlarmChange]:
    """Something has happened, and is over. Late, it is history alone."""
    if finding.holds is not True or finding.told:
        return []
    alarm = _alarm(finding, finding.since, {**finding.evidence, NOTE: True})
    if finding.late_until is None:
        alarm = replace(alarm, state="ok", fired_at=now, cleared_at=now)
        return [AlarmChange(alarm, _event(alarm, "fired", finding.text, now), tells=True)]
    alarm = replace(alarm, state="ok", fired_at=finding.since, cleared_at=finding.late_until)
    return [AlarmChange(alarm, _event(alarm, "fired", finding.text, finding.since, late=True))]


def _alarm(finding: Finding, since: int, evidence: Mapping[str, object]) -> Alarm:
    return Alarm(
        0, finding.account_id, finding.rule, finding.scope, finding.subject, "pending", since,
        evidence=evidence, text=finding.text,
    )  # fmt: skip


def _begin(finding: Finding, before: Alarm | None, now: int) -> list[AlarmChange]:
    """No alarm is open."""
    if finding.holds is not True or finding.told:
        return []
    alarm = _alarm(finding, min(finding.since, now), finding.evidence)
    if not finding.fires(now):
        return [AlarmChange(alarm)]
    if _is_same(before, alarm, finding, now):
        return [_again(before, finding, now)]
    return [_fire(alarm, finding, now)]


def _is_same(before: Alarm | None, alarm: Alarm, finding: Finding, now: int) -> TypeGuard[Alarm]:
    """Whether an alarm is the one before; never by a clock that went back.

    Nor once the message of its end may be out, for instance because the gateway was off: who read that it is
    over must be told anew.
    """
    if before is None or before.cleared_at is None or now < before.cleared_at:
        return False
    if before.account_id != finding.account_id:
        return False
    if now >= before.cleared_at + AGAIN_S + finding.held_s + LATE_S // 2:
        return False
    return alarm.since - before.cleared_at <= AGAIN_S


def _again(before: Alarm, finding: Finding, now: int) -> AlarmChange:
    state: State = "acknowledged" if before.acked_at is not None else "firing"
    alarm = replace(
        before, state=state, cleared_at=None, snoozed_until=None, times=before.times + 1, text=finding.text
    )
    return AlarmChange(alarm, _event(alarm, "fired", finding.text, now))


def _fire(alarm: Alarm, finding: Finding, now: int) -> AlarmChange:
    fired = replace(alarm, state="firing", fired_at=now, evidence=finding.evidence, text=finding.text)
    return AlarmChange(fired, _event(fired, "fired", finding.text, now), tells=True)


def _go_on(
    alarm: Alarm, finding: Finding, before: Alarm | None, now: int, known_since: int
) -> list[AlarmChange]:
    """An alarm is open, or pending."""
    if finding.off:
        return [_end(alarm, "the rule was switched off", now)]
    if alarm.account_id != finding.account_id:
        # The next look begins anew: those whose it is now are told, and no others see it any more.
        return [_end(alarm, "The device is somebody else's now.", now)]
    if finding.holds is None:
        return [AlarmChange(alarm)]
    if finding.holds is False:
        return [_clear(alarm, finding, now)]
    if alarm.state == "pending":
        pending = replace(alarm, since=min(alarm.since, finding.since, now))
        if now - pending.since < finding.held_s:
            return [AlarmChange(pending)]
        if _is_same(before, pending, finding, now):
            return [AlarmChange(replace(pending, state="ok", cleared_at=now)), _again(before, finding, now)]
        return [_fire(pending, finding, now)]
    return _remind(alarm, finding, now, known_since)


def _clear(alarm: Alarm, finding: Finding, now: int) -> AlarmChange:
    ended = replace(alarm, state="ok", cleared_at=now, snoozed_until=None)
    if alarm.state == "pending":
        return AlarmChange(ended)
    rule = RULES[alarm.rule]
    text = finding.ended or finding.why_not or "it is over"
    tells = rule.severity != "info" and not rule.once
    not_before = now + AGAIN_S + finding.held_s + LATE_S if tells else None
    return AlarmChange(ended, _event(alarm, "cleared", text, now), tells, not_before)


def _end(alarm: Alarm, reason: str, now: int) -> AlarmChange:
    """Nobody needs to be told of what a person has done."""
    ended = replace(alarm, state="ok", cleared_at=now, snoozed_until=None)
    return AlarmChange(ended, None if alarm.state == "pending" else _event(alarm, "cleared", reason, now))


def _remind(alarm: Alarm, finding: Finding, now: int, known_since: int) -> list[AlarmChange]:
    if alarm.state == "snoozed":
        if alarm.snoozed_until is not None and now < alarm.snoozed_until:
            return []
        awake = replace(alarm, state="firing", snoozed_until=None, reminded_at=now, text=finding.text)
        return [AlarmChange(awake, _event(alarm, "reminder", f"Still so: {finding.text}", now), tells=True)]
    last = max(alarm.fired_at or 0, alarm.reminded_at or 0, known_since)
    if alarm.state != "firing" or now - last < REMIND_S or alarm.reminders >= REMINDERS:
        return []
    reminded = replace(alarm, reminders=alarm.reminders + 1, reminded_at=now, text=finding.text)
    return [AlarmChange(reminded, _event(alarm, "reminder", f"Still so: {finding.text}", now), tells=True)]
