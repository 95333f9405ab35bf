"""A message as a channel sends it: of one alarm, or of several that go together."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from gateway.domain.alarm import Message, Severity
from gateway.domain.times import iso
from gateway.notify.plan import severity_of
from gateway.notify.states import NOTE

TITLES: Mapping[str, str] = {
    "started": "Fermentation has started",
    "not_started": "Fermentation has not started",
    "stuck": "Fermentation is stuck",
    "done": "Fermentation is done",
    "resumed": "Fermentation goes on again",
    "reached": "Reached",
    "temperature": "Temperature",
    "silent": "A hydrometer is silent",
    "battery": "Battery is low",
    "sending": "Sending fails",
    "keeper": "The gateway needs you",
}
"""Titles of messages by rule."""

TEST = "Test message"

LATE_S = 3_600
"""Seconds after which a message says when its alarm was."""

LINES = 40
"""Alarms that the text of a message names at most."""

WORST_FIRST: tuple[Severity, ...] = ("critical", "warning", "info")

BREW_PATH = "/ui/brews/{id}"


@dataclass(frozen=True, slots=True)
class Note:
    """A message: its id, its title and text, how serious it is, and the page to open; times are Unix seconds.

    `items` are its alarms with all their members, the first one is the one that the id names.
    """

    id: str
    at: int
    title: str
    text: str
    severity: Severity
    click: str
    items: tuple[Mapping[str, Any], ...]


def note_of(
    messages: Sequence[Message], instance: str, page: str, now: float, zone: tzinfo | None = None
) -> Note:
    """Return the message of one or several events, oldest first. `page` is the page's address, or empty."""
    first = messages[0]
    items = tuple(_item(message, instance, page) for message in messages)
    severity = min((severity_of(message) for message in messages), key=WORST_FIRST.index)
    if len(messages) == 1:
        title, text = _title(first), first.event.text
        if _is_over(first):
            [text] = _lines(messages, zone)
        elif now - first.event.at >= LATE_S:
            text = f"{text} ({_minute(first.event.at, zone)})"
    else:
        title, text = f"{len(messages)} messages", "\n".join(_lines(messages, zone))
    return Note(items[0]["id"], first.event.at, title, text, severity, items[0]["url"], items)


def _lines(messages: Sequence[Message], zone: tzinfo | None) -> list[str]:
    """Return a line for each event; an alarm that fired and cleared is one line, which says `was`."""
    ends = {
        message.event.alarm_id: message.event.at for message in messages if message.event.kind == "cleared"
    }
    lines, begun = [], set()
    for message in messages:
        event = message.event
        at = _minute(event.at, zone)
        if _is_over(message):
            end = ends.get(event.alarm_id)
            lines.append(f"was, {at}{f' to {_minute(end, zone)}' if end is not None else ''}: {event.text}")
            begun.add(event.alarm_id)
        elif event.kind != "cleared" or event.alarm_id not in begun:
            lines.append(f"{at}: {event.text}")
    more = len(lines) - LINES
    return [*lines[:LINES], f"and {more} more"] if more > 0 else lines


def _is_over(message: Message) -> bool:
    """Whether an alarm fired and has ended since. What happens at once, such as a begin, is no such one."""
    alarm = message.alarm
    if message.event.kind != "fired" or alarm is None:
        return False
    return alarm.state == "ok" and NOTE not in alarm.evidence


def _item(message: Message, instance: str, page: str) -> dict[str, Any]:
    event, alarm = message.event, message.alarm
    brew = alarm.subject if alarm is not None and alarm.scope == "brew" else None
    return {
        "id": f"hg-{instance}-{event.id}",
        "at": iso(event.at),
        "kind": event.kind,
        "rule": alarm.rule if alarm is not None else None,
        "severity": severity_of(message),
        "scope": alarm.scope if alarm is not None else None,
        "subject": alarm.subject if alarm is not None else None,
        "brew": int(brew) if brew is not None and brew.isdecimal() else None,
        "title": _title(message),
        "text": event.text,
        "url": page + BREW_PATH.format(id=brew) if page and brew is not None else page,
        "figures": _finite(alarm.evidence) if alarm is not None else {},
    }


def _finite(evidence: Mapping[str, Any]) -> Any:
    """Return the figures with null for what JSON has no number for."""
    return json.loads(json.dumps(dict(evidence)), parse_constant=lambda _: None)


def _title(message: Message) -> str:
    if message.alarm is None:
        return TEST
    title = TITLES.get(message.alarm.rule, message.alarm.rule)
    return {"cleared": f"Over: {title}", "reminder": f"Still: {title}"}.get(message.event.kind, title)


def _minute(at: int, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M")
