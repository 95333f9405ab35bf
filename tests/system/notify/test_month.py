"""A month of the demo's brewery: how much is told, what a restart changes, what `alarms check` says."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from gateway.domain.alarm import OPEN, Alarm
from gateway.notify.check import Check, check
from gateway.notify.states import NOTE
from tests.system.notify.month import BEGIN, DAY_S, HOUR_S, Brew, demo_brews, new_month

DAYS = 30
UNTIL = BEGIN + DAYS * DAY_S


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")


def outages(brew: Brew) -> list[tuple[float, float]]:
    """Times from a report to the next one where more than two intervals lie between them."""
    times = [payload.received_at for payload in brew.payloads]
    return [(a, b) for a, b in pairwise(times) if b - a > 2.1 * 900]


async def test_a_month_is_quiet_and_nothing_that_is_told_is_wrong(tmp_path: Path) -> None:
    brews = demo_brews(DAYS)
    async with new_month(tmp_path) as month:
        await month.play(brews, UNTIL, every_s=HOUR_S)
        messages, history = await month.messages(), await month.history()
    days = sum(((brew.ended_at or UNTIL) - brew.pitched_at) / DAY_S for brew in brews)
    assert 0 < len(messages) <= days, "one message per brew and day on average"
    by_rule = {rule: [row for row in messages if row[1] == rule] for rule in {row[1] for row in messages}}
    assert by_rule.keys() <= {"started", "done", "silent"}, "no beer is stuck, too warm, or late"
    assert [row[2] for row in by_rule["started"]] == ["1", "2", "3", "4"], "each beer once, in its turn"
    for at, _, subject, kind, text in by_rule["done"]:
        course = brews[int(subject) - 1].batch.course
        assert course is not None
        assert abs(float(text.split(" at ")[1][:5]) - course.fg) <= 0.002, "it is done"
        assert kind in {"fired", "reminder"}
        assert at - brews[int(subject) - 1].pitched_at > 3 * DAY_S
    lost = [span for brew in brews for span in outages(brew)]
    for at, _, _, kind, _ in by_rule.get("silent", []):
        assert kind == "cleared" or any(begin < at < end + HOUR_S for begin, end in lost), "it was silent"
    assert not [event for _, event in history if event.late], "nothing was noticed too late"


async def test_a_restart_each_hour_tells_nothing_more(tmp_path: Path) -> None:
    brews, until, told = demo_brews(8), BEGIN + 8 * DAY_S, []
    for name, restart_s in (("one", None), ("many", HOUR_S)):
        (tmp_path / name).mkdir()
        async with new_month(tmp_path / name) as month:
            await month.play(brews, until, every_s=HOUR_S, restart_s=restart_s)
            told.append([row[1:4] for row in await month.messages()])
    assert told[0] == told[1]
    assert told[0], "it looks at nothing"


def recorded(history: Sequence[Alarm], at: int) -> set[tuple[str, str, str]]:
    """The rules that fired at a time, by what is stored; what is only told of lasts for a day."""
    found = set()
    for one in history:
        if one.fired_at is None or one.fired_at > at:
            continue
        if NOTE in one.evidence:
            begin = one.evidence["at"]
            found |= {one.key} if one.rule == "started" and begin <= at <= begin + DAY_S else set()
        elif one.cleared_at is None or one.cleared_at > at:
            found.add(one.key)
    return found


async def test_check_says_of_any_time_what_was_recorded_then(tmp_path: Path) -> None:
    """Without an end of any brew: `check` asks about those that are open."""
    brews, times = (
        [replace(brew, ended_at=None) for brew in demo_brews(DAYS)],
        list(range(BEGIN, UNTIL, 13 * HOUR_S)),
    )
    fired: set[str] = set()
    async with new_month(tmp_path) as month:
        alarms = month.services.alarms
        await alarms.set("temperature", {"hi": 19.6}, "all", "")
        await alarms.set("reached", {"attenuation": 50, "text": "dry hops"}, "all", "")
        await month.play(brews, UNTIL, every_s=HOUR_S)
        history = list({one.id: one for one, _ in await month.history()}.values())
        assert {one.state for one in history} & set(OPEN)
        for at in times[1:]:
            at -= at % HOUR_S
            checks: list[Check] = await check(month.services, at=at)
            # What has not held for long enough begins an alarm no more than it ends one.
            known = {
                (one.rule, one.scope, one.subject)
                for one in checks
                if one.known and (one.fires or one.since is None)
            }
            fires = {(one.rule, one.scope, one.subject) for one in checks if one.fires}
            assert fires == recorded(history, at) & known, (at - BEGIN) / DAY_S
            fired |= {rule for rule, _, _ in fires}
    assert fired >= {"started", "done", "temperature", "reached", "silent"}, "the month was too calm"
