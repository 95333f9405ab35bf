"""Alarms, their events and their settings.

A change of alarms is one work of the writer: the state, its event and a message for each channel are all on
the medium, or none of them is.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import RULES, Alarm, AlarmEvent
from gateway.domain.audit import AuditEntry
from gateway.domain.texts import decimal_digits
from gateway.store.protocols.alarms import AlarmChange, QuarantinedSource, Signs
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer

NUMBERED = frozenset({"brew", "device"})
"""Scopes whose subject is an id."""

PRUNED = 1_000
"""Events that one deletion takes at most, so that readings do not wait for it."""

SIGNS = 13
"""Newest readings of a device that rules look at: gaps, batteries, rare temperatures."""

TEMPS_S, TEMPS_MOST = 3 * 3_600, 1_080
"""Seconds of temperatures that rules look at, and readings at most: one each 10 s."""

COLUMN_NAMES = tuple(field.name for field in fields(Alarm))
COLUMNS = ", ".join(COLUMN_NAMES)
ALARM_COLUMNS = ", ".join(f"a.{name}" for name in COLUMN_NAMES)
EVENT_COLUMNS = "e.id, e.alarm_id, e.at, e.kind, e.text, e.late"
NEW_COLUMNS, NEW_MARKS = ", ".join(COLUMN_NAMES[1:]), ", ".join(f":{name}" for name in COLUMN_NAMES[1:])

# The last one: what is salvaged of a damaged file goes behind the name of the new file.
INSTANCE = "SELECT id FROM instance ORDER BY rowid DESC LIMIT 1"
OPEN = f"SELECT {COLUMNS} FROM alarms WHERE cleared_at IS NULL ORDER BY id"
RECENT = f"SELECT {COLUMNS} FROM alarms WHERE cleared_at >= ? ORDER BY cleared_at, id"
ADD = f"INSERT INTO alarms ({NEW_COLUMNS}) VALUES ({NEW_MARKS}) RETURNING id"
KEEP = f"UPDATE alarms SET ({NEW_COLUMNS}) = ({NEW_MARKS}) WHERE id = :id"
FORGET = "DELETE FROM alarms WHERE id = ? AND NOT EXISTS (SELECT 1 FROM alarm_events WHERE alarm_id = ?)"
ADD_EVENT = "INSERT INTO alarm_events (alarm_id, at, kind, late, text) VALUES (?, ?, ?, ?, ?) RETURNING id"
# A channel that fails is told of on the others alone.
TELL = """
INSERT INTO messages (event_id, channel, state, next_at)
SELECT :event, name, 'waiting', :not_before FROM channels
WHERE NOT paused AND (account_id IS NULL OR account_id = :account_id) AND name <> :but
"""
# The same trouble came again before anybody was told that it was over.
DO_NOT_TELL_OF_THE_END = """
UPDATE messages SET state = 'merged', next_at = NULL
WHERE state IN ('waiting', 'held') AND attempts = 0 AND next_at IS NOT NULL
AND event_id IN (SELECT id FROM alarm_events WHERE alarm_id = ? AND kind = 'cleared')
"""
HISTORY = f"""
SELECT {EVENT_COLUMNS}, {ALARM_COLUMNS} FROM alarm_events e JOIN alarms a ON a.id = e.alarm_id
WHERE (:account_id IS NULL OR a.account_id = :account_id)
AND (:scope IS NULL OR a.scope = :scope) AND (:subject IS NULL OR a.subject = :subject)
ORDER BY e.id DESC LIMIT :limit
"""
TOLD = f"""
SELECT {COLUMNS} FROM alarms WHERE scope = ? AND subject = ? AND fired_at IS NOT NULL
AND rule <> 'temperature' ORDER BY fired_at DESC, id DESC LIMIT ?
"""
OF_DEVICE = """
device_id = :device AND created_at <= :until AND (:arrived_ms IS NULL OR received_at <= :arrived_ms)
"""
NEWEST = f"""
SELECT created_at, celsius, json_extract(facts, '$.battery'), json_extract(facts, '$.battery_percent')
FROM readings WHERE {OF_DEVICE} ORDER BY created_at DESC, seq DESC LIMIT {SIGNS}
"""
TEMPS = f"""
SELECT created_at, celsius FROM readings WHERE {OF_DEVICE} AND created_at > :until - {TEMPS_S} AND celsius IS
NOT NULL ORDER BY created_at DESC, seq DESC LIMIT {TEMPS_MOST}
"""
QUARANTINED = """
SELECT source, received_at / 1000, reason FROM quarantine WHERE share IS NOT NULL ORDER BY id DESC LIMIT ?
"""
HEARD = """
SELECT d.id, r.ip, r.received_at / 1000 FROM devices d JOIN readings r ON r.seq = (
    SELECT seq FROM readings WHERE device_id = d.id ORDER BY created_at DESC, seq DESC LIMIT 1)
WHERE r.ip IN (SELECT value FROM json_each(?)) ORDER BY r.received_at
"""
SETTINGS = "SELECT scope, subject, rule, setting FROM alarm_settings"
SET = "INSERT OR REPLACE INTO alarm_settings (scope, subject, rule, setting) VALUES (?, ?, ?, ?)"
UNSET = "DELETE FROM alarm_settings WHERE scope = ? AND subject = ? AND rule = ?"
TOO_MANY = """
SELECT id FROM alarm_events WHERE at < :before
UNION SELECT id FROM (SELECT id FROM alarm_events ORDER BY id DESC LIMIT -1 OFFSET :keep)
ORDER BY id LIMIT :most
"""
PRUNE_MESSAGES = "DELETE FROM messages WHERE event_id IN (SELECT value FROM json_each(?))"
PRUNE_EVENTS = "DELETE FROM alarm_events WHERE id IN (SELECT value FROM json_each(?))"
# Those of a brew that goes on stay, or what a mead of two years reached in its first one would be told again.
PRUNE_ALARMS = """
DELETE FROM alarms WHERE cleared_at IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM alarm_events e WHERE e.alarm_id = alarms.id)
AND NOT (scope = 'brew' AND subject IN (
    SELECT CAST(id AS TEXT) FROM brewsessions WHERE NOT deleted AND ended_at IS NULL))
"""


class SqliteAlarms:
    """The `AlarmStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def instance(self) -> str:
        ((name,),) = await self._rows(INSTANCE)
        return str(name)

    async def open(self) -> list[Alarm]:
        return alarms_of(await self._rows(OPEN))

    async def recent(self, since: int) -> list[Alarm]:
        return alarms_of(await self._rows(RECENT, (since,)))

    async def change(self, changes: Sequence[AlarmChange]) -> list[Alarm]:
        return await self._writer.run(Apart(lambda connection: [_written(connection, c) for c in changes]))

    async def history(
        self,
        account_id: int | None,
        *,
        scope: str | None = None,
        subject: str | None = None,
        limit: int,
    ) -> list[tuple[Alarm, AlarmEvent]]:
        account_id = None if account_id == OWNER_ID else account_id
        values = {"account_id": account_id, "scope": scope, "subject": subject, "limit": limit}
        rows = await self._rows(HISTORY, values)
        return [
            (alarm, AlarmEvent(event_id, alarm_id, at, kind, text, bool(late)))
            for event_id, alarm_id, at, kind, text, late, *rest in rows
            for alarm in alarms_of([rest])
        ]

    async def told(self, scope: str, subject: str, limit: int) -> list[Alarm]:
        return alarms_of(await self._rows(TOLD, (scope, subject, limit)))

    async def signs(
        self, device_ids: Sequence[int], until: int, *, arrived_by: int | None = None
    ) -> dict[int, Signs]:
        arrived_ms = None if arrived_by is None else arrived_by * 1000 + 999
        which = {"until": until, "arrived_ms": arrived_ms}
        async with self._database.reader() as reader:
            return await reader.run(
                lambda c: {device: _signs(c, which | {"device": device}) for device in device_ids}
            )

    async def quarantined(self, limit: int) -> list[QuarantinedSource]:
        return [QuarantinedSource(*row) for row in await self._rows(QUARANTINED, (limit,))]

    async def heard(self, sources: Collection[str]) -> dict[str, tuple[int, int]]:
        rows = await self._rows(HEARD, (json.dumps(sorted(set(sources))),))
        return {source: (device_id, at) for device_id, source, at in rows}

    async def settings(self) -> dict[tuple[str, str, str], Mapping[str, Any]]:
        rows = await self._rows(SETTINGS)
        return {
            (scope, subject, rule): members_of(setting)
            for scope, subject, rule, setting in rows
            if (rule == "" or rule in RULES) and _is_subject(scope, subject)
        }

    async def set(self, scope: str, subject: str, rule: str, setting: Mapping[str, Any] | None) -> None:
        words = f"{scope} {subject}".strip()

        def work(connection: sqlite3.Connection) -> int:
            if setting is None:
                return connection.execute(UNSET, (scope, subject, rule)).rowcount
            return connection.execute(SET, (scope, subject, rule, json.dumps(setting))).rowcount

        if setting is None:
            detail = f"{words}: default"
        else:
            detail = f"{words}: {', '.join(f'{name}={value}' for name, value in setting.items())}"
        entry = AuditEntry("set", f"alarm:{rule or 'all'}", detail)
        await self._writer.run(audited(work, lambda changed: entry if changed else None))

    async def prune(self, before: int, keep: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            which = {"before": before, "keep": keep, "most": PRUNED}
            ids = json.dumps([row[0] for row in connection.execute(TOO_MANY, which)])
            connection.execute(PRUNE_MESSAGES, (ids,))
            gone = connection.execute(PRUNE_EVENTS, (ids,)).rowcount
            if gone:
                connection.execute(PRUNE_ALARMS)
            return gone

        return await self._writer.run(Apart(work))

    async def _rows(self, sql: str, values: Any = ()) -> list[Any]:
        async with self._database.reader() as reader:
            return await reader.run(lambda c: c.execute(sql, values).fetchall())


def _written(connection: sqlite3.Connection, change: AlarmChange) -> Alarm:
    """Write one change, in the transaction that is open; return the alarm with its id."""
    alarm, event = change.alarm, change.event
    values = {name: getattr(alarm, name) for name in COLUMN_NAMES} | {"evidence": json.dumps(alarm.evidence)}
    if alarm.id == 0:
        ((alarm_id,),) = connection.execute(ADD, values).fetchall()
        alarm = replace(alarm, id=alarm_id)
    elif (
        alarm.state == "ok" and alarm.fired_at is None and event is None
    ):  # it never fired: nobody asks for it
        connection.execute(FORGET, (alarm.id, alarm.id))
        return alarm
    else:
        connection.execute(KEEP, values)
    if alarm.cleared_at is None:
        connection.execute(DO_NOT_TELL_OF_THE_END, (alarm.id,))
    if event is not None:
        row = alarm.id, event.at, event.kind, event.late, event.text
        ((event_id,),) = connection.execute(ADD_EVENT, row).fetchall()
        if change.tells:
            word, _, channel = alarm.subject.partition(" ")
            values = {
                "event": event_id,
                "not_before": change.not_before,
                "account_id": OWNER_ID if alarm.account_id is None else alarm.account_id,
                # A target may be called as a channel is.
                "but": channel if alarm.scope == "target" and word == "channel" else "",
            }
            connection.execute(TELL, values)
    return alarm


def _signs(connection: sqlite3.Connection, which: Mapping[str, Any]) -> Signs:
    newest = connection.execute(NEWEST, which).fetchall()
    # A device that reports rarely has few temperatures in some hours, and one that reports often has many.
    temps = {(at, celsius) for at, celsius, *_ in newest if celsius is not None}
    temps.update(connection.execute(TEMPS, which))
    return Signs(
        times=tuple(at for at, *_ in newest),
        temps=tuple(sorted(temps)),
        volts=tuple((at, float(volts)) for at, _, volts, _ in newest if isinstance(volts, int | float)),
        percents=tuple((at, float(part)) for at, _, _, part in newest if isinstance(part, int | float)),
    )


def alarm_of(row: Sequence[Any]) -> Alarm:
    """Return the alarm of a row of `ALARM_COLUMNS`."""
    members = dict(zip(COLUMN_NAMES, row, strict=True))
    return Alarm(**members | {"evidence": members_of(members["evidence"])})


def alarms_of(rows: Iterable[Sequence[Any]]) -> list[Alarm]:
    """Return the alarms of rows. One of a damaged file may be about nothing, and must not stop the others."""
    return [
        alarm
        for alarm in map(alarm_of, rows)
        if alarm.rule in RULES and _is_subject(alarm.scope, alarm.subject)
    ]


def _is_subject(scope: str, subject: str) -> bool:
    return scope not in NUMBERED or decimal_digits(subject)


def members_of(text: str) -> dict[str, Any]:
    """Return the members of a JSON text; none of a row that is damaged."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
