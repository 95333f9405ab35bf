"""Alarms, their rules, the channels that tell of them, and the messages. Times are Unix seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Severity = Literal["info", "warning", "critical"]
Scope = Literal["brew", "device", "target", "gateway"]
SettingScope = Literal["all", "brew", "device", "target"]
State = Literal["pending", "firing", "acknowledged", "snoozed", "ok"]
EventKind = Literal["fired", "cleared", "reminder", "acknowledged", "snoozed", "test"]

OPEN: tuple[State, ...] = ("firing", "acknowledged", "snoozed")
"""States of an alarm that fires."""


class Rule(NamedTuple):
    """A rule: what it is about, how serious it is, seconds that it must hold, and names of its settings.

    A rule that fires `once` tells of something that has happened: it does not fire again for the same event,
    and no message says that it cleared.
    """

    scopes: tuple[Scope, ...]
    severity: Severity
    held_s: int
    settings: tuple[str, ...] = ()
    once: bool = False


RULES: Mapping[str, Rule] = {
    "started": Rule(("brew",), "info", 3 * 3600, once=True),
    "not_started": Rule(("brew",), "warning", 0, ("hours",)),
    "stuck": Rule(("brew",), "warning", 3 * 3600),
    "done": Rule(("brew",), "info", 3 * 3600),
    "resumed": Rule(("brew",), "warning", 3 * 3600, once=True),
    "reached": Rule(("brew",), "info", 3600, ("sg", "attenuation", "day", "text"), once=True),
    "temperature": Rule(("brew", "device"), "warning", 30 * 60, ("lo", "hi")),
    "silent": Rule(("device",), "warning", 0),
    "battery": Rule(("device",), "warning", 0, ("volts", "percent")),
    "sending": Rule(("target",), "critical", 0),
    "keeper": Rule(("gateway",), "critical", 0),
}
"""All rules, in the order in which a page lists them; `gateway/notify/rules.py` has the limits."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm about one subject: the id of a brew or device, a target's name, or a word for the gateway.

    `since`: it became true; `times`: how often it fired within its life; `reminders`: how often somebody was
    reminded, the last time at `reminded_at`. `evidence` are the figures that made it fire. `text` is the
    sentence that says what is the matter. `account_id` is None for the owner.
    """

    id: int
    account_id: int | None
    rule: str
    scope: Scope
    subject: str
    state: State
    since: int
    fired_at: int | None = None
    acked_at: int | None = None
    acked_by: str | None = None
    snoozed_until: int | None = None
    cleared_at: int | None = None
    times: int = 1
    reminders: int = 0
    reminded_at: int | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """The rule and its subject: one alarm of each can be open."""
        return self.rule, self.scope, self.subject

    @property
    def severity(self) -> Severity:
        """How serious it is."""
        return RULES[self.rule].severity


@dataclass(frozen=True, slots=True)
class AlarmEvent:
    """Something that happened to an alarm, in words. `late`: it is history only, nobody was told.

    `alarm_id` is None for a test of a channel.
    """

    id: int
    alarm_id: int | None
    at: int
    kind: EventKind
    text: str
    late: bool = False


ChannelKind = Literal["ntfy", "webhook", "email", "mqtt", "apprise"]
MessageState = Literal["waiting", "held", "open", "sent", "merged", "expired"]


@dataclass(frozen=True, slots=True)
class Channel:
    """A way to tell a person. `settings` hold no secret: that is in `secret_file`."""

    name: str
    kind: ChannelKind
    settings: Mapping[str, Any] = field(default_factory=dict)
    secret_file: str | None = None
    account_id: int | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """An event on its way through a channel, with the alarm that it is about (None: a test)."""

    event: AlarmEvent
    alarm: Alarm | None
    channel: str
    state: MessageState
    attempts: int = 0
    next_at: int | None = None
    sent_at: int | None = None
    trouble: str = ""
