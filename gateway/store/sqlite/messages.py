"""Channels, and messages on their way."""

import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any, get_args

from gateway.domain.alarm import AlarmEvent, Channel, ChannelKind, Message, MessageState
from gateway.domain.audit import AuditEntry
from gateway.errors import NameTaken, NotFound
from gateway.store.protocols.alarms import ChannelCounts
from gateway.store.sqlite.alarms import ALARM_COLUMNS, EVENT_COLUMNS, alarm_of, members_of
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer

CHANNEL_NAMES = tuple(field.name for field in fields(Channel))
CHANNEL_COLUMNS = ", ".join(CHANNEL_NAMES)
CHANNEL_MARKS = ", ".join(f":{name}" for name in CHANNEL_NAMES)

CHANNELS = f"SELECT {CHANNEL_COLUMNS} FROM channels ORDER BY name"
ADD_CHANNEL = f"INSERT INTO channels ({CHANNEL_COLUMNS}) VALUES ({CHANNEL_MARKS})"
PUT_CHANNEL = f"UPDATE channels SET ({CHANNEL_COLUMNS}) = ({CHANNEL_MARKS}) WHERE name = :name"
REMOVE_CHANNEL = "DELETE FROM channels WHERE name = ?"
FORGET_UNSENT = "DELETE FROM messages WHERE channel = ? AND state IN ('waiting', 'held', 'open')"

ADD_TEST = "INSERT INTO alarm_events (alarm_id, at, kind, text) VALUES (NULL, ?, 'test', ?) RETURNING id"
ADD_MESSAGE = "INSERT INTO messages (event_id, channel, state) VALUES (?, ?, 'waiting')"

MESSAGES = f"""
SELECT m.channel, m.state, m.attempts, m.next_at, m.sent_at, m.trouble, {EVENT_COLUMNS}, {ALARM_COLUMNS}
FROM messages m JOIN alarm_events e ON e.id = m.event_id LEFT JOIN alarms a ON a.id = e.alarm_id
"""
# Those that are held come last: however many they are, what may go is among the first.
TO_SEND = f"""
{MESSAGES} WHERE m.channel = ? AND m.state IN ('waiting', 'held', 'open')
ORDER BY m.state <> 'open', m.state = 'held', m.event_id LIMIT ?
"""
OF_EVENT = f"{MESSAGES} WHERE m.event_id = ? ORDER BY m.channel"
MARK = """
UPDATE messages SET state = :state, attempts = coalesce(:attempts, attempts), next_at = :next_at,
    sent_at = coalesce(:sent_at, sent_at), trouble = :trouble
WHERE channel = :channel AND event_id = :event_id
"""
SENT = """
SELECT m.sent_at FROM messages m JOIN alarm_events e ON e.id = m.event_id
WHERE m.channel = ? AND m.state = 'sent' AND m.sent_at > ? AND e.kind <> 'test' ORDER BY m.sent_at
"""
COUNTS = """
SELECT m.channel, sum(m.state IN ('waiting', 'held', 'open')),
    min(CASE WHEN m.state IN ('waiting', 'held', 'open') THEN e.at END),
    max(m.sent_at), max(CASE WHEN m.state = 'expired' THEN e.at END)
FROM messages m JOIN alarm_events e ON e.id = m.event_id GROUP BY m.channel
"""
BY_STATE = "SELECT channel, state, count(*) FROM messages GROUP BY channel, state"


class SqliteMessages:
    """The `MessageStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def channels(self) -> list[Channel]:
        rows = await self._rows(CHANNELS)
        found = (dict(zip(CHANNEL_NAMES, row, strict=True)) for row in rows)
        return [
            Channel(**each | {"settings": members_of(each["settings"]), "paused": bool(each["paused"])})
            for each in found
            if each["kind"] in get_args(ChannelKind)
        ]

    async def save_channel(self, channel: Channel, verb: str = "add") -> None:
        values = {name: getattr(channel, name) for name in CHANNEL_NAMES}
        values["settings"] = json.dumps(dict(channel.settings))

        def work(connection: sqlite3.Connection) -> None:
            try:
                changed = connection.execute(ADD_CHANNEL if verb == "add" else PUT_CHANNEL, values).rowcount
            except sqlite3.IntegrityError as error:
                raise NameTaken(f"there is a channel {channel.name} already") from error
            if not changed:
                raise NotFound(f"no channel {channel.name!r}")

        entry = AuditEntry(verb, f"channel:{channel.name}", channel.kind)
        await self._writer.run(audited(work, entry))

    async def remove_channel(self, name: str) -> None:
        def work(connection: sqlite3.Connection) -> None:
            if not connection.execute(REMOVE_CHANNEL, (name,)).rowcount:
                raise NotFound(f"no channel {name!r}")
            connection.execute(FORGET_UNSENT, (name,))

        await self._writer.run(audited(work, AuditEntry("remove", f"channel:{name}")))

    async def test(self, channel: str, event: AlarmEvent) -> int:
        def work(connection: sqlite3.Connection) -> int:
            ((event_id,),) = connection.execute(ADD_TEST, (event.at, event.text)).fetchall()
            connection.execute(ADD_MESSAGE, (event_id, channel))
            return int(event_id)

        return await self._writer.run(audited(work, AuditEntry("test", f"channel:{channel}")))

    async def to_send(self, channel: str, limit: int) -> list[Message]:
        return [_message(row) for row in await self._rows(TO_SEND, (channel, limit))]

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
        same = {"channel": channel, "next_at": next_at, "trouble": trouble}
        rows = [
            same | {"event_id": event_id, "state": state, "attempts": attempts, "sent_at": sent_at}
            for event_id in event_ids
        ] + [
            same | {"event_id": event_id, "state": "merged", "attempts": attempts, "sent_at": None}
            for event_id in merged
        ]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(MARK, rows)

        await self._writer.run(Apart(work))

    async def sent_since(self, channel: str, since: int) -> list[int]:
        return [int(at) for (at,) in await self._rows(SENT, (channel, since))]

    async def of_event(self, event_id: int) -> list[Message]:
        return [_message(row) for row in await self._rows(OF_EVENT, (event_id,))]

    async def by_state(self) -> dict[str, dict[MessageState, int]]:
        found: dict[str, dict[MessageState, int]] = {}
        for channel, state, count in await self._rows(BY_STATE):
            found.setdefault(channel, {})[state] = count
        return found

    async def counts(self) -> dict[str, ChannelCounts]:
        return {channel: ChannelCounts(*counts) for channel, *counts in await self._rows(COUNTS)}

    async def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        async with self._database.reader() as reader:
            return await reader.run(lambda c: c.execute(sql, values).fetchall())


def _message(row: Sequence[Any]) -> Message:
    channel, state, attempts, next_at, sent_at, trouble, event_id, alarm_id, at, kind, text, late, *rest = row
    event = AlarmEvent(event_id, alarm_id, at, kind, text, bool(late))
    alarm = alarm_of(rest) if alarm_id is not None and rest[0] is not None else None
    return Message(event, alarm, channel, state, attempts, next_at, sent_at, trouble)
