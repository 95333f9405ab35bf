"""What a channel sends next: one alarm after the other, quiet hours, bounds, and what waited too long."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.alarm import Alarm, AlarmEvent, EventKind, Message, MessageState, State
from gateway.domain.quiet_hours import QuietHours, quiet_hours
from gateway.errors import InvalidInput
from gateway.notify.plan import DAY_S, EXPIRES_S, HOUR_S, TOGETHER, Plan, Rules, plan

NOW = int(datetime(2026, 11, 23, 12, 0, tzinfo=UTC).timestamp())
NIGHT = int(datetime(2026, 11, 23, 23, 30, tzinfo=UTC).timestamp())
QUIET = Rules("phone", QuietHours(22 * 60, 7 * 60))
RULES = Rules("phone")

KINDS: list[tuple[EventKind, State]] = [("fired", "firing"), ("fired", "ok"), ("cleared", "ok")]


def message(
    event_id: int,
    alarm_id: int = 0,
    rule: str = "stuck",
    *,
    at: int = NOW,
    kind: EventKind = "fired",
    state: MessageState = "waiting",
    alarm_state: State = "firing",
    subject: str = "1",
    attempts: int = 0,
    next_at: int | None = None,
) -> Message:
    alarm_id = alarm_id or event_id
    cleared_at = at + 60 if alarm_state == "ok" else None
    alarm = Alarm(alarm_id, None, rule, "brew", subject, alarm_state, at, at, cleared_at=cleared_at)
    event = AlarmEvent(event_id, alarm_id, at, kind, f"text {event_id}")
    return Message(event, alarm, "phone", state, attempts, next_at)


def a_test(event_id: int, at: int = NOW, state: MessageState = "waiting") -> Message:
    return Message(AlarmEvent(event_id, None, at, "test", "test"), None, "phone", state)


def decide(
    *messages: Message, rules: Rules = RULES, now: float = NOW, sent: tuple[int, ...] = (), known: bool = True
) -> Plan:
    return plan(messages, sent, rules, now, clock_known=known, zone=UTC)


def ids(decided: Plan) -> list[int]:
    return [each.event.id for each in decided.send]


def test_alarms_of_one_look_are_one_message() -> None:
    assert ids(decide(message(1), message(2, rule="silent"), message(3, at=NOW + 1))) == [1, 2]
    assert ids(decide(message(2, at=NOW - 5), message(1, at=NOW - 9))) == [1]


def test_what_is_open_goes_first_and_as_it_was() -> None:
    decided = decide(message(5), message(2, state="open", at=NOW - 900), message(3, state="open"), message(1))
    assert ids(decided) == [2, 3]


def test_what_is_open_wakes_nobody_in_quiet_hours() -> None:
    """It was perhaps taken in the evening, by a server that is back in the night."""
    open_one = message(1, state="open", at=NIGHT - 6_000)
    decided = decide(
        open_one, message(2, rule="keeper", at=NIGHT, next_at=NIGHT + 60), rules=QUIET, now=NIGHT
    )
    assert (ids(decided), decided.again_at) == ([], NIGHT + 900)
    assert ids(decide(open_one, rules=QUIET, now=NIGHT + 8 * HOUR_S)) == [1]
    assert ids(decide(open_one, rules=QUIET, now=NIGHT, known=False)) == [1]
    # What may go is not kept waiting behind it.
    assert ids(decide(open_one, message(2, rule="keeper", at=NIGHT), rules=QUIET, now=NIGHT)) == [1]


def test_what_is_open_is_given_up_after_a_week_too() -> None:
    """Else a server that fails at one message stops all behind it for ever."""
    week_ago = NOW - EXPIRES_S
    decided = decide(message(1, state="open", at=week_ago), message(2, state="open", at=week_ago), message(3))
    assert (ids(decided), decided.expire) == ([3], (1, 2))
    # A message of several goes again as it was until the last of them is old.
    half = decide(message(1, state="open", at=week_ago - 9), message(2, state="open", at=week_ago + 9))
    assert (ids(half), half.expire) == ([1, 2], ())
    assert ids(decide(message(1, state="open", at=week_ago), known=False)) == [1]


def test_a_test_goes_before_all_but_not_for_ever() -> None:
    assert ids(decide(message(1), a_test(9))) == [9]
    assert ids(decide(message(1, state="open"), a_test(9))) == [9]
    late = decide(message(1), a_test(9, NOW - 400))
    assert (ids(late), late.expire) == ([1], (9,))
    cut_off = decide(message(1), a_test(9, state="open"))
    assert (ids(cut_off), cut_off.expire) == ([1], (9,))


def test_quiet_hours_hold_back_all_but_what_is_critical() -> None:
    decided = decide(
        message(1, at=NIGHT),
        message(2, rule="keeper", at=NIGHT),
        message(3, rule="done", at=NIGHT),
        rules=QUIET,
        now=NIGHT,
    )
    assert (ids(decided), decided.hold) == ([2], (1, 3))
    assert decided.again_at == NIGHT + 900
    everything = decide(
        message(2, rule="keeper", at=NIGHT), rules=QUIET._replace(holds_critical=True), now=NIGHT
    )
    assert (ids(everything), everything.hold) == ([], (2,))
    assert ids(decide(a_test(1, NIGHT), rules=QUIET, now=NIGHT)) == [1]


def test_at_the_end_of_quiet_hours_one_message_tells_all() -> None:
    morning = NIGHT + 8 * HOUR_S
    held = [
        message(n, at=NIGHT + n, state="held", alarm_state="ok" if n == 2 else "firing") for n in (1, 2, 3)
    ]
    decided = decide(*held, message(4, at=morning), rules=QUIET, now=morning)
    assert ids(decided) == [1, 2, 3]


def test_with_a_clock_in_doubt_no_hours_are_quiet_and_nothing_is_old() -> None:
    decided = decide(
        message(1, at=NIGHT, state="held"),
        message(2, at=0, alarm_state="ok"),
        rules=QUIET,
        now=NIGHT,
        known=False,
    )
    assert ids(decided) == [1]
    assert (decided.expire, decided.hold) == ((), ())


def test_ten_an_hour_and_the_last_one_tells_of_all_the_rest() -> None:
    waiting = [message(n, at=NOW - 100 + n) for n in range(1, 60)]
    eight = tuple(NOW - 60 for _ in range(8))
    assert ids(decide(*waiting, sent=eight)) == [1]
    assert ids(decide(*waiting, sent=(*eight, NOW - 50))) == list(range(1, 60))
    none = decide(*waiting, sent=(*eight, NOW - 50, NOW - 40))
    assert ids(none) == []
    assert none.hold == tuple(range(1, 60))
    assert none.again_at == NOW - 60 + HOUR_S
    later = [replace(each, state="held") for each in waiting]
    assert ids(decide(*later, now=NOW - 60 + HOUR_S, sent=(*eight, NOW - 50, NOW - 40))) == list(range(1, 60))


def test_thirty_a_day() -> None:
    sent = tuple(NOW - 80_000 + 2_000 * n for n in range(30))
    none = decide(message(1), sent=sent)
    assert (ids(none), none.again_at) == ([], sent[0] + DAY_S)
    assert ids(decide(message(1), sent=sent[1:])) == [1]


def test_times_of_a_clock_that_was_wrong_take_no_room() -> None:
    assert ids(decide(message(1), sent=tuple(NOW + 1000 + n for n in range(40)))) == [1]


def test_a_message_has_a_bound() -> None:
    assert len(decide(*(message(n) for n in range(1, 300))).send) == TOGETHER


def test_after_a_day_what_is_over_is_one_message_and_what_fires_is_its_own() -> None:
    long_ago = NOW - DAY_S - 60
    decided = decide(
        message(1, 1, at=long_ago, alarm_state="ok"),
        message(2, 2, at=long_ago + 5),
        message(3, 3, at=long_ago + 9, alarm_state="ok"),
        message(4, 1, at=NOW - 100, kind="cleared", alarm_state="ok"),
        message(5, 5, at=NOW),
    )
    assert ids(decided) == [1, 3, 4]
    assert ids(decide(message(2, at=long_ago + 5), message(5))) == [2]


def test_after_a_week_nothing_is_sent() -> None:
    decided = decide(message(1, at=NOW - EXPIRES_S), message(2, at=NOW - EXPIRES_S + 1))
    assert (ids(decided), decided.expire) == ([2], (1,))


def test_reminders_that_say_nothing_new() -> None:
    decided = decide(
        message(1, 1, at=NOW - 200),
        message(2, 1, at=NOW - 100, kind="reminder"),
        message(3, 2, kind="reminder", at=NOW - 90),
        message(4, 2, kind="reminder", at=NOW - 80),
    )
    assert sorted(decided.merge) == [2, 3]
    assert ids(decided) == [1]


def test_a_channel_does_not_tell_of_itself() -> None:
    decided = decide(
        message(1, rule="sending", subject="channel phone"),
        message(2, rule="sending", subject="channel hook"),
    )
    assert (ids(decided), decided.merge) == ([2], (1,))


def test_a_message_waits_for_its_time_and_others_of_its_alarm_behind_it() -> None:
    decided = decide(
        message(1, 7, kind="cleared", next_at=NOW + 60), message(2, 7, at=NOW + 5), message(3, 8, at=NOW + 6)
    )
    assert (ids(decided), decided.hold) == ([3], ())
    alone = decide(message(1, 7, kind="cleared", next_at=NOW + 60))
    assert (ids(alone), alone.again_at) == ([], NOW + 60)
    again = decide(message(1, attempts=2, next_at=NOW + 60))
    assert ids(again) == [1]  # how long to wait after a failure is the sender's to say


@pytest.mark.parametrize("seed", range(40))
def test_whatever_comes_each_message_goes_once_and_alarms_stay_in_order(seed: int) -> None:
    """A week of chance, played to its end."""
    chance = random.Random(seed)  # noqa: S311
    rules = Rules(
        "phone", chance.choice([None, QUIET.quiet]), chance.random() < 0.3, chance.randint(1, 5), 12
    )
    queue: dict[int, Message] = {}
    sent: list[int] = []
    told: list[list[int]] = []
    alarms = [(n, chance.choice(["stuck", "keeper", "done"])) for n in range(1, 6)]
    alarm_of: dict[int, int] = {}
    made, now = 0, float(NOW)
    for _ in range(3_000):
        now += chance.choice([1, 60, 600, 3600])
        if made < 60 and chance.random() < 0.3:
            made += 1
            alarm_id, rule = chance.choice(alarms)
            kind, state = chance.choice(KINDS)
            queue[made] = message(made, alarm_id, rule, at=int(now), kind=kind, alarm_state=state)
            alarm_of[made] = alarm_id
        decided = plan(list(queue.values()), sent, rules, now, zone=UTC)
        for event_id in decided.hold:
            queue[event_id] = replace(queue[event_id], state="held")
        for event_id in (*decided.merge, *decided.expire):
            del queue[event_id]
        if decided.send and chance.random() < 0.7:
            told.append(ids(decided))
            sent.append(int(now))
            for event_id in ids(decided):
                del queue[event_id]
        elif decided.again_at is not None:
            assert decided.again_at > now
    assert made == 60
    assert not queue
    order = [event_id for each in told for event_id in each]
    assert sorted(order) == list(range(1, 61))
    for alarm_id, _ in alarms:
        of_one = [event_id for event_id in order if alarm_of[event_id] == alarm_id]
        assert of_one == sorted(of_one)
    for at in sent:
        assert sum(at <= other < at + HOUR_S for other in sent) <= rules.per_hour
        assert sum(at <= other < at + DAY_S for other in sent) <= rules.per_day


@pytest.mark.parametrize(
    ("text", "now", "left"),
    [
        ("22:00-07:00", "2026-11-23T21:59:59", 0),
        ("22:00-07:00", "2026-11-23T22:00:00", 900),
        ("22:00-07:00", "2026-11-24T06:59:00", 60),
        ("22:00-07:00", "2026-11-24T07:00:00", 0),
        ("9:30-10:00", "2026-11-24T09:45:00", 900),
        ("9:30-10:00", "2026-11-24T09:55:00", 300),
        ("9:30-10:00", "2026-11-24T10:30:00", 0),
        ("12:00-0:00", "2026-11-24T23:59:30", 30),
    ],
)
def test_quiet_hours(text: str, now: str, left: int) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC).timestamp()
    assert quiet_hours(text).left(moment, UTC) == left


def test_quiet_hours_are_those_of_the_zone_also_when_it_changes() -> None:
    berlin, hours = ZoneInfo("Europe/Berlin"), quiet_hours("22:00-07:00")
    for day, offset in (("2026-10-24", 2), ("2026-10-25", 1)):  # the clock goes back in the night between
        evening = datetime.fromisoformat(f"{day}T22:00").replace(tzinfo=UTC).timestamp() - offset * HOUR_S
        assert hours.left(evening, berlin) > 0
        assert hours.left(evening - 1, berlin) == 0
    end = datetime.fromisoformat("2026-10-25T06:00").replace(tzinfo=UTC).timestamp()
    assert hours.left(end - 1, berlin) == 1
    assert hours.left(end, berlin) == 0


@pytest.mark.parametrize(
    "text", ["", "22-7", "22:00", "24:00-07:00", "22:00-22:00", "22:60-07:00", "22:00-07:00x"]
)
def test_texts_that_are_no_quiet_hours(text: str) -> None:
    with pytest.raises(InvalidInput, match="22:00-07:00"):
        quiet_hours(text)
