"""The ledger: every reading counted by its state, in one snapshot, so that the counts add up."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gateway.domain.target import Sending
from gateway.domain.totals import Storage, TargetTotals, Totals
from gateway.store.sqlite.delivery import OF_TARGET, TO_SEND, UPSTREAM_ID, routed_counts
from gateway.store.sqlite.engine.database import Database

COUNT = "SELECT count(*) FROM readings"
HIGHEST = "SELECT coalesce(max(seq), 0) FROM readings"
BY_SESSION = "SELECT session_id, count(*) FROM readings WHERE session_id IS NOT NULL GROUP BY session_id"
OF_SESSION = "SELECT count(*) FROM readings WHERE session_id = ?"
UNASSIGNED = """
SELECT device_id, count(*) FROM readings WHERE device_id IS NOT NULL AND session_id IS NULL GROUP BY device_id
"""
NUMBERED = "SELECT id FROM brewsessions WHERE upstream_id IS NOT NULL AND deleted = 0"
TARGETS = "SELECT url, unnamed FROM targets WHERE kind = 'service'"
WANTED = f"""
SELECT s.id, coalesce(d.watermark, 0) FROM brewsessions s
LEFT JOIN forwardings f ON f.target = :target AND f.session_id = s.id
LEFT JOIN deliveries d ON d.target = :target AND d.session_id = s.id
WHERE {UPSTREAM_ID.format(url=":target", unnamed=":unnamed")} IS NOT NULL
"""
REUSABLE = "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size"
COPIES = """
SELECT CAST(local_id AS INTEGER) FROM mirrored WHERE kind = 'brewsession'
UNION SELECT CAST(local_id AS INTEGER) FROM renumbered WHERE kind = 'brewsession'
"""
DAMAGED = "SELECT value FROM counters WHERE name = 'damaged'"
NOT_SENT = f"""
SELECT count(*), count(*) FILTER (WHERE mirrored IS NOT NULL) FROM readings r
WHERE session_id = ? AND NOT ({TO_SEND})
"""
NOT_SENT_EMPTY = f"{NOT_SENT} AND sg IS NULL AND celsius IS NULL"
"""Enough for a brew session that is no copy, in a store without damage; an index finds the candidates."""

PENDING = f"""
SELECT count(*) FROM readings r WHERE r.session_id = :session_id AND r.seq > :watermark AND {TO_SEND}
  AND NOT EXISTS (SELECT 1 FROM refusals x WHERE x.target = :target AND x.seq = r.seq)
"""
AT_TARGETS = f"""
SELECT t.name, t.url, s.id, {OF_TARGET}, coalesce(d.watermark, 0)
FROM targets t JOIN brewsessions s ON t.kind = 'service'
LEFT JOIN deliveries d ON d.target = t.url AND d.session_id = s.id
LEFT JOIN forwardings f ON f.target = t.url AND f.session_id = s.id
WHERE s.deleted = 0 AND (:session_id IS NULL OR s.id = :session_id)
  AND ({OF_TARGET} IS NOT NULL OR d.watermark > 0)
ORDER BY t.name, s.id
"""
WAITING = f"""
SELECT count(*), min(r.received_at) FROM readings r
WHERE r.session_id = :session_id AND r.seq > :watermark AND {TO_SEND}
  AND NOT EXISTS (SELECT 1 FROM refusals x WHERE x.target = :target AND x.seq = r.seq)
"""
WAITING_NEAR = WAITING.replace("r.session_id", "+r.session_id")
"""The same by place in the queue, of all brew sessions: quick where the watermark is close to the end."""

NEAR = 2000
"""Places in the queue that are looked through one by one: fewer than a brew session of weeks has."""

NEWEST_THERE = f"""
SELECT r.created_at FROM readings r
WHERE r.session_id = :session_id AND r.seq <= :watermark AND {TO_SEND}
  AND NOT EXISTS (SELECT 1 FROM refusals x WHERE x.target = :target AND x.seq = r.seq)
ORDER BY r.created_at DESC LIMIT 1
"""
REFUSED = f"""
SELECT r.session_id, count(*) FROM refusals x JOIN readings r ON r.seq = x.seq
WHERE x.target = ? AND {TO_SEND} GROUP BY r.session_id
"""


@dataclass(frozen=True, slots=True)
class _Session:
    """Counts of a brew session's readings: own, mirrored, and the own ones that are never sent."""

    own: int
    mirrored: int
    not_sent: int


class AtTarget(NamedTuple):
    """A brew session at a target: the counts of `_Session`, and of the own readings that are sent.

    `refused` ones are known to be. `above` the watermark are those that are neither sent nor refused, the
    first of which arrived at `oldest_at` (Unix milliseconds).
    """

    name: str
    url: str
    session_id: int
    upstream_id: int | None
    watermark: int
    own: int
    mirrored: int
    not_sent: int
    refused: int
    above: int
    oldest_at: int | None


class SqliteTotals:
    """The `TotalsStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def totals(self, targets: Mapping[str, bool]) -> Totals:
        def work(connection: sqlite3.Connection) -> Totals:
            connection.execute("BEGIN")  # one snapshot of the database: the counts must add up
            try:
                return _totals(connection, targets)
            finally:
                connection.execute("COMMIT")

        async with self._database.reader() as reader:
            return await reader.run(work)

    async def sending(self, session_id: int | None = None) -> list[Sending]:
        def work(connection: sqlite3.Connection) -> list[Sending]:
            connection.execute("BEGIN")  # one snapshot of the database: the counts must add up
            try:
                return _sending(connection, session_id)
            finally:
                connection.execute("COMMIT")

        async with self._database.reader() as reader:
            return await reader.run(work)

    async def own_readings(self) -> dict[int, int]:
        async with self._database.reader() as reader:
            sessions = await reader.run(_sessions)
        return {session: counts.own for session, counts in sessions.items()}

    async def unassigned(self) -> dict[int, int]:
        async with self._database.reader() as reader:
            return dict(await reader.run(lambda connection: connection.execute(UNASSIGNED).fetchall()))

    async def storage(self) -> Storage:
        async with self._database.reader() as reader:
            reusable: int = await reader.run(lambda connection: connection.execute(REUSABLE).fetchone()[0])
        return await asyncio.to_thread(_storage, self._database.path, reusable)


def _totals(connection: sqlite3.Connection, targets: Mapping[str, bool]) -> Totals:
    ((stored,),) = connection.execute(COUNT)
    sessions = _sessions(connection)
    numbered = {session for (session,) in connection.execute(NUMBERED)}
    every = {**targets, **dict(connection.execute(TARGETS))}
    wanted = {
        url: dict(connection.execute(WANTED, {"target": url, "unnamed": unnamed}))
        for url, unnamed in every.items()
    }
    taken = {session for watermarks in wanted.values() for session in watermarks}
    return Totals(
        stored=stored,
        unassigned=stored - sum(counts.own + counts.mirrored for counts in sessions.values()),
        kept_here=_own(sessions, sessions.keys() - numbered - taken),
        mirrored=sum(counts.mirrored for counts in sessions.values()),
        without_target=_own(sessions, numbered - taken),
        to_forward=_own(sessions, taken),
        targets=(
            *(_of_target(connection, url, sessions, wanted[url]) for url in every),
            *_routed(connection),
        ),
    )


def _routed(connection: sqlite3.Connection) -> list[TargetTotals]:
    """Count the readings of targets that are no Brewing Data Service."""
    urls = dict(connection.execute("SELECT name, url FROM targets WHERE kind <> 'service' ORDER BY name"))
    if not urls:
        return []
    counted: dict[str, list[int]] = {name: [0, 0, 0, 0, 0] for name in urls}
    for name, _, pending, forwarded, refused, left, _, superseded, _ in routed_counts(connection):
        for place, count in enumerate((forwarded, refused, pending, left, superseded)):
            counted[name][place] += count
    return [TargetTotals(urls[name], sum(counts), *counts) for name, counts in counted.items()]


def _own(sessions: Mapping[int, _Session], some: Set[int]) -> int:
    return sum(sessions[session].own for session in some & sessions.keys())


def _sessions(connection: sqlite3.Connection, session_id: int | None = None) -> dict[int, _Session]:
    """Count the readings of one brew session, or of each that has any."""
    copies = {session for (session,) in connection.execute(COPIES)}
    ((damaged,),) = connection.execute(DAMAGED)
    if session_id is None:
        counts = connection.execute(BY_SESSION).fetchall()
    else:
        counts = [(session_id, *connection.execute(OF_SESSION, (session_id,)).fetchone())]
    found = {}
    for session, count in counts:
        sql = NOT_SENT if damaged or session in copies else NOT_SENT_EMPTY
        not_sent, mirrored = connection.execute(sql, (session,)).fetchone()
        found[session] = _Session(count - mirrored, mirrored, not_sent - mirrored)
    return found


def _of_target(
    connection: sqlite3.Connection, url: str, sessions: Mapping[int, _Session], watermarks: Mapping[int, int]
) -> TargetTotals:
    refusals: dict[int, int] = dict(connection.execute(REFUSED, (url,)))
    pending = 0
    for session, watermark in watermarks.items():
        where = {"target": url, "session_id": session, "watermark": watermark}
        pending += connection.execute(PENDING, where).fetchone()[0]
    its = [sessions[session] for session in watermarks.keys() & sessions.keys()]
    readings, not_sent = sum(counts.own for counts in its), sum(counts.not_sent for counts in its)
    refused = sum(refusals.get(session, 0) for session in watermarks)
    return TargetTotals(url, readings, readings - not_sent - refused - pending, refused, pending, not_sent)


def at_targets(connection: sqlite3.Connection, session_id: int | None) -> Iterator[AtTarget]:
    """Yield each brew session at each Brewing Data Service that takes it or took it, by both names."""
    places = connection.execute(AT_TARGETS, {"session_id": session_id}).fetchall()
    counts = _sessions(connection, session_id) if places else {}
    refusals = {url: dict(connection.execute(REFUSED, (url,))) for _, url, *_ in places}
    ((highest,),) = connection.execute(HIGHEST)
    for name, url, session, upstream_id, watermark in places:
        where = {"target": url, "session_id": session, "watermark": watermark}
        near = watermark > highest - NEAR
        above, oldest_at = connection.execute(WAITING_NEAR if near else WAITING, where).fetchone()
        of = counts.get(session, _Session(0, 0, 0))
        refused = refusals[url].get(session, 0)
        yield AtTarget(
            name, url, session, upstream_id, watermark,
            of.own, of.mirrored, of.not_sent, refused, above, oldest_at,
        )  # fmt: skip


def _sending(connection: sqlite3.Connection, session_id: int | None) -> list[Sending]:
    found = [
        Sending(name, session, 0, sent, waiting, refused, oldest_at, newest_at, passed)
        for name, session, waiting, sent, refused, _, oldest_at, passed, newest_at in routed_counts(
            connection, session_id
        )
    ]
    for place in at_targets(connection, session_id):
        where = {"target": place.url, "session_id": place.session_id, "watermark": place.watermark}
        sent = place.own - place.not_sent - place.refused - place.above
        newest = connection.execute(NEWEST_THERE, where).fetchone() if sent else None
        found.append(
            Sending(
                target=place.name,
                session_id=place.session_id,
                upstream_id=place.upstream_id,
                sent=sent,
                waiting=0 if place.upstream_id is None else place.above,
                refused=place.refused,
                oldest_at=None if place.upstream_id is None else place.oldest_at,
                newest_at=newest and newest[0],
            )
        )
    return found


def _storage(path: Path, reusable: int) -> Storage:
    disk = os.statvfs(path.parent)
    wal = path.with_name(f"{path.name}-wal")
    return Storage(
        database_bytes=path.stat().st_size,
        reusable_bytes=reusable,
        wal_bytes=wal.stat().st_size if wal.exists() else 0,
        disk_bytes=disk.f_blocks * disk.f_frsize,
        free_bytes=disk.f_bavail * disk.f_frsize,
    )
