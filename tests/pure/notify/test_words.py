"""Messages in words: alone, late, together, and what is over."""

from dataclasses import replace
from datetime import UTC

from gateway.domain.alarm import Alarm, AlarmEvent, EventKind, Message, State
from gateway.notify.states import NOTE
from gateway.notify.words import LINES, note_of

NOW = 1_772_616_600  # 2026-03-04T09:30:00Z


def message(
    event_id: int, alarm_id: int, kind: EventKind, at: int, state: State = "firing", rule: str = "stuck"
) -> Message:
    alarm = Alarm(alarm_id, None, rule, "brew", str(alarm_id), state, at, at, evidence={"sg": 1.022})
    return Message(AlarmEvent(event_id, alarm_id, at, kind, f"text {event_id}"), alarm, "phone", "waiting")


def text_of(*messages: Message, page: str = "", now: int = NOW) -> str:
    return note_of(messages, "0a1b2c3d", page, now, UTC).text


def test_a_message_that_is_late_says_when_it_was() -> None:
    one = message(1, 1, "fired", NOW)
    assert text_of(one, now=NOW + 3_599) == "text 1"
    assert text_of(one, now=NOW + 3_600) == "text 1 (2026-03-04 09:30)"


def test_titles_and_the_worst_of_several() -> None:
    fired, cleared = message(1, 1, "fired", NOW), message(2, 1, "cleared", NOW, "ok")
    reminder, critical = message(3, 3, "reminder", NOW), message(4, 4, "fired", NOW, rule="keeper")
    notes = [note_of([each], "0a1b2c3d", "http://x", NOW, UTC) for each in (fired, cleared, reminder)]
    assert [note.title for note in notes] == [
        "Fermentation is stuck", "Over: Fermentation is stuck", "Still: Fermentation is stuck"
    ]  # fmt: skip
    assert notes[0].click == "http://x/ui/brews/1"
    both = note_of([fired, critical], "0a1b2c3d", "", NOW, UTC)
    assert (both.id, both.severity, both.title, both.click) == ("hg-0a1b2c3d-1", "critical", "2 messages", "")
    assert [item["id"] for item in both.items] == ["hg-0a1b2c3d-1", "hg-0a1b2c3d-4"]


def test_what_fired_and_cleared_is_one_line() -> None:
    assert text_of(
        message(1, 1, "fired", NOW - 7_200, "ok"),
        message(2, 2, "fired", NOW - 7_000),
        message(3, 1, "cleared", NOW - 3_600, "ok"),
        message(4, 4, "cleared", NOW - 60, "ok"),
        message(5, 5, "fired", NOW - 30, "ok"),
    ).splitlines() == [
        "was, 2026-03-04 07:30 to 2026-03-04 08:30: text 1",
        "2026-03-04 07:33: text 2",
        "2026-03-04 09:29: text 4",
        "was, 2026-03-04 09:29: text 5",
    ]


def test_what_is_over_when_it_is_told_is_not_told_as_if_it_were_so() -> None:
    """It fired in quiet hours and ended shortly before their end: the message of its end comes later."""
    over = message(1, 1, "fired", NOW - 7_200, "ok")
    assert text_of(over) == "was, 2026-03-04 07:30: text 1"


def test_what_happens_at_once_is_not_said_to_be_over() -> None:
    """`started` has no end, though its alarm is over at once."""
    begun = message(1, 1, "fired", NOW - 7_200, "ok", rule="started")
    assert begun.alarm is not None
    begun = replace(begun, alarm=replace(begun.alarm, evidence={NOTE: True}))
    assert text_of(begun) == "text 1 (2026-03-04 07:30)"
    assert text_of(begun, message(2, 2, "fired", NOW)).splitlines()[0] == "2026-03-04 07:30: text 1"


def test_the_lines_are_bounded() -> None:
    lines = text_of(*(message(n, n, "fired", NOW) for n in range(1, 101))).splitlines()
    assert (len(lines), lines[-1]) == (LINES + 1, "and 60 more")


def test_a_figure_that_is_no_number_is_null() -> None:
    one = message(1, 1, "fired", NOW)
    assert one.alarm is not None
    odd = replace(one, alarm=replace(one.alarm, evidence={"sg": float("nan"), "days": [float("inf"), 1]}))
    assert note_of([odd], "0a1b2c3d", "", NOW, UTC).items[0]["figures"] == {"sg": None, "days": [None, 1]}
