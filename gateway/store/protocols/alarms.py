"""The protocols of a store's part for alarms: alarms, channels, messages, and what we published at a broker.

The rules of `gateway.store.protocol` hold here, too. Times are Unix seconds.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gateway.domain.alarm import Alarm, AlarmEvent, Channel, Message, MessageState


class AlarmChange(NamedTuple):
    """An alarm as it is from now on (id 0: a new one), and its event, if it has one.

    With `tells`, each channel that is not paused and whose account may see the alarm gets a message, which
    is not sent before `not_before`. An alarm of state `ok` that never fired is deleted. One that is open
    again takes back the messages about its end that still wait for their time.
    """

    alarm: Alarm
    event: AlarmEvent | None = None
    tells: bool = False
    not_before: int | None = None


class Signs(NamedTuple):
    """What the rules need of a device's newest readings: times, temperatures, its battery.

    `times` and the batteries are those of the newest readings, newest first. `temps` are pairs of a time and
    °C, oldest first.
    """

    times: tuple[int, ...] = ()
    temps: tuple[tuple[int, float], ...] = ()
    volts: tuple[tuple[int, float], ...] = ()
    percents: tuple[tuple[int, float], ...] = ()


class QuarantinedSource(NamedTuple):
    """A payload that no driver understood: the address it came from, when (Unix seconds), and the reason."""

    source: str
    received_at: int
    reason: str


class AlarmStore(Protocol):
    """Alarms, their events and settings, and what rules ask of devices."""

    async def instance(self) -> str:
        """Return the name of this data directory: 8 hexadecimal digits."""

    async def open(self) -> list[Alarm]:
        """Return the alarms that are not cleared: pending ones, too."""

    async def recent(self, since: int) -> list[Alarm]:
        """Return the alarms that cleared since then."""

    async def change(self, changes: Sequence[AlarmChange]) -> list[Alarm]:
        """Write alarms, events and messages in one transaction; return the alarms with their ids."""

    async def history(
        self,
        account_id: int | None,
        *,
        scope: str | None = None,
        subject: str | None = None,
        limit: int,
    ) -> list[tuple[Alarm, AlarmEvent]]:
        """Return events with their alarms, newest first; with `account_id` None those of all accounts."""

    async def told(self, scope: str, subject: str, limit: int) -> list[Alarm]:
        """Return the alarms of a subject that ever fired, newest first, without those of the temperature.

        Of these there may be hundreds, and they are told each time.
        """

    async def signs(
        self, device_ids: Sequence[int], until: int, *, arrived_by: int | None = None
    ) -> dict[int, Signs]:
        """Return the signs of devices at a time; with `arrived_by`, of readings that had arrived by then."""

    async def quarantined(self, limit: int) -> list[QuarantinedSource]:
        """Return the newest payloads in quarantine that came from outside, newest first."""

    async def heard(self, sources: Collection[str]) -> dict[str, tuple[int, int]]:
        """Return, by address, the device that was heard there last, and when (Unix seconds)."""

    async def settings(self) -> dict[tuple[str, str, str], Mapping[str, Any]]:
        """Return every setting by scope, subject and rule."""

    async def set(self, scope: str, subject: str, rule: str, setting: Mapping[str, Any] | None) -> None:
        """Keep a setting; None takes it back. Both are in the audit log."""

    async def prune(self, before: int, keep: int) -> int:
        """Delete events older than `before`, and the oldest beyond `keep`; return how many."""


class ChannelCounts(NamedTuple):
    """Messages of a channel: how many wait and since when, the last that was sent, the last that expired."""

    waiting: int
    oldest_at: int | None
    sent_at: int | None
    expired_at: int | None


class MessageStore(Protocol):
    """Channels, and messages on their way."""

    async def channels(self) -> list[Channel]:
        """Return all channels, by name."""

    async def save_channel(self, channel: Channel, verb: str = "add") -> None:
        """Write a channel, with a row of the audit log. `NameTaken` if one is added that is there.

        With another verb than `add`, a channel is changed; `NotFound` if there is none.
        """

    async def remove_channel(self, name: str) -> None:
        """Delete a channel and its unsent messages; `NotFound` if there is none."""

    async def test(self, channel: str, event: AlarmEvent) -> int:
        """Insert an event of kind `test`, its one message and a row of the audit log; return its id."""

    async def to_send(self, channel: str, limit: int) -> list[Message]:
        """Return messages of a channel: those that are open, then waiting, then held, each by event."""

    async def mark(
        self,
        channel: str,
        event_ids: Collection[int],
        state: MessageState,
        *,
        attempts: int | None = None,
        next_at: int | None = None,
        sent_at: int | None = None,
        trouble: str = "",
        merged: Collection[int] = (),
    ) -> None:
        """Write the state of messages in one transaction; those of `merged` went with them as one message."""

    async def sent_since(self, channel: str, since: int) -> list[int]:
        """Return when a channel sent messages since then, in order; merged ones and tests are none."""

    async def of_event(self, event_id: int) -> list[Message]:
        """Return the messages of one event."""

    async def counts(self) -> dict[str, ChannelCounts]:
        """Return the counts of each channel that has messages."""

    async def by_state(self) -> dict[str, dict[MessageState, int]]:
        """Return how many messages of each channel are in each state."""


class PublishedStore(Protocol):
    """Retained messages of ours on the user's broker, and the last alarm event that was published there."""

    async def all(self) -> dict[str, frozenset[str]]:
        """Return the topics; for a configuration the names of all components that it ever had."""

    async def add(self, topics: Mapping[str, Collection[str]]) -> None:
        """Remember topics with their components, before they are published."""

    async def remove(self, topics: Collection[str]) -> None:
        """Forget topics that are cleared."""

    async def last_event(self) -> int | None:
        """Return the id of the last event that was published, None if there was none yet."""

    async def note_event(self, event_id: int) -> None:
        """Remember the id of the last event that was published."""
