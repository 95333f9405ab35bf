"""What a channel sends next, what has to wait, and what is no longer worth a message. Pure.

Messages about one alarm never overtake each other. What goes together is one message: the alarms of one look,
what was held back, and what has ended long ago.
"""

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import NamedTuple

from gateway.domain.alarm import RULES, Message, Severity
from gateway.domain.quiet_hours import QuietHours

HOUR_S, DAY_S = 3_600, 86_400

STALE_S = DAY_S
"""Seconds after which an alarm that is over is a line among others."""

EXPIRES_S = 7 * DAY_S
"""Seconds after which a message is not sent any more."""

TEST_S = 300
"""Seconds after which a test is not sent any more: nobody waits for it."""

PER_HOUR, PER_DAY = 10, 30
"""Messages of a channel in any hour and day, unless its settings say otherwise."""

TOGETHER = 100
"""Alarms in one message at most."""


class Rules(NamedTuple):
    """When a channel may send. `holds_critical`: quiet hours hold back what is critical, too."""

    name: str
    quiet: QuietHours | None = None
    holds_critical: bool = False
    per_hour: int = PER_HOUR
    per_day: int = PER_DAY


class Plan(NamedTuple):
    """The events of the next message, by id; events whose messages are marked; when to look again (Unix s).

    `merge` are messages that others make needless.
    """

    send: tuple[Message, ...] = ()
    hold: tuple[int, ...] = ()
    merge: tuple[int, ...] = ()
    expire: tuple[int, ...] = ()
    again_at: float | None = None


def plan(
    messages: Sequence[Message],
    sent: Sequence[int],
    rules: Rules,
    now: float,
    *,
    clock_known: bool = True,
    zone: tzinfo | None = None,
) -> Plan:
    """Decide about the messages of a channel that are on their way; `sent` are the times of those that went.

    With a clock in doubt no hours are quiet, and nothing is too old. What is open goes again as it was,
    before all others.
    """
    queue = sorted(messages, key=_id)
    tests = [m for m in queue if m.event.kind == "test"]
    # A test that is open was cut off by a stop, and nobody waits for it any more.
    over = _ids(m for m in tests if m.state == "open" or (clock_known and now - m.event.at >= TEST_S))
    for test in tests:
        if test.event.id not in over:
            return Plan((test,), expire=over)
    queue = [m for m in queue if m.event.kind != "test"]
    left = rules.quiet.left(now, zone) if rules.quiet is not None and clock_known else 0.0
    quiet = [m for m in queue if left and (rules.holds_critical or severity_of(m) != "critical")]
    waits = {m.event.id for m in quiet}
    under_way = tuple(m for m in queue if m.state == "open")
    if under_way and not (clock_known and now - under_way[-1].event.at >= EXPIRES_S):
        # A copy in quiet hours would wake somebody, unless there is something that may.
        may_go = any(m.event.id not in waits and not _is_early(m, now) for m in queue)
        return Plan(under_way, expire=over) if may_go else Plan(expire=over, again_at=now + left)
    expire = [m for m in queue if clock_known and now - m.event.at >= EXPIRES_S]
    merge = _needless(queue, rules.name)
    expired = {m.event.id for m in expire}
    gone = expired | {m.event.id for m in merge}
    decided = Plan(expire=over + _ids(expire), merge=_ids(m for m in merge if m.event.id not in expired))
    queue = [m for m in queue if m.event.id not in gone]
    quiet = [m for m in quiet if m.event.id not in gone]
    room, room_at = _room(sent, rules, now)
    times = [room_at] if not room else []
    times += [now + left] if quiet else []
    ready: list[Message] = []
    blocked: set[int | None] = set()
    for message in queue:
        not_before = message.next_at if message.attempts == 0 and message.state == "waiting" else None
        if not_before is not None and not_before > now:
            times.append(not_before)
            blocked.add(message.event.alarm_id)
        elif message.event.id in waits:
            blocked.add(message.event.alarm_id)
        elif message.event.alarm_id not in blocked:
            ready.append(message)
    held_back = [*quiet, *(ready if not room else [])]
    return decided._replace(
        send=tuple(_together(ready, room, now, clock_known=clock_known)[:TOGETHER]) if room else (),
        hold=_ids(m for m in held_back if m.state == "waiting" and not _is_early(m, now)),
        again_at=min(times, default=None),
    )


def _together(ready: list[Message], room: int, now: float, *, clock_known: bool) -> list[Message]:
    """Return the messages that go as one, of those that may go now."""
    if not ready or room == 1:
        return ready
    held = [m.event.id for m in ready if m.state == "held"]
    if held:
        return [m for m in ready if m.event.id <= held[-1]]
    over = {
        m.event.alarm_id
        for m in ready
        if clock_known and now - m.event.at >= STALE_S and m.alarm is not None and m.alarm.state == "ok"
    }
    if ready[0].event.alarm_id in over:
        return [m for m in ready if m.event.alarm_id in over]
    return [m for m in ready if m.event.at == ready[0].event.at and m.event.alarm_id not in over]


def _needless(queue: Sequence[Message], name: str) -> list[Message]:
    """Return reminders that another message makes needless, and what tells of the channel's own failure."""
    needless, said = [], set()
    for message in reversed(queue):
        if message.event.kind == "reminder" and message.event.alarm_id in said:
            needless.append(message)
        elif message.event.kind == "reminder":
            said.add(message.event.alarm_id)
    unsaid: set[int | None] = set()
    for message in queue:
        if message.event.kind == "fired":
            unsaid.add(message.event.alarm_id)
        elif message.event.kind == "reminder" and message.event.alarm_id in unsaid:
            needless.append(message)
        if message.alarm is not None and message.alarm.subject == subject_of(name):
            needless.append(message)
    return list({m.event.id: m for m in needless}.values())


def _room(sent: Sequence[int], rules: Rules, now: float) -> tuple[int, float]:
    """Return how many messages may go now, and when there is room for one more (Unix seconds)."""
    room, again_at = rules.per_hour + rules.per_day, now
    for span, most in ((HOUR_S, rules.per_hour), (DAY_S, rules.per_day)):
        within = [at for at in sent if now - span < at <= now]
        room = min(room, most - len(within))
        if len(within) >= most:
            again_at = max(again_at, within[-most] + span)
    return max(room, 0), again_at


def subject_of(channel: str) -> str:
    """Return the subject of an alarm about a channel that fails."""
    return f"channel {channel}"


def _is_early(message: Message, now: float) -> bool:
    return message.attempts == 0 and message.next_at is not None and message.next_at > now


def severity_of(message: Message) -> Severity:
    """Return how serious a message is; a test, which has no alarm, is not."""
    if message.alarm is None:
        return "info"
    # A row of a damaged file may name any rule, and must not stop the messages behind it.
    return message.alarm.severity if message.alarm.rule in RULES else "warning"


def _id(message: Message) -> int:
    return message.event.id


def _ids(messages: Iterable[Message]) -> tuple[int, ...]:
    return tuple(m.event.id for m in messages)
