"""Forwarding progress: a watermark per target and brew session, and the attempt that is open."""

import json
import sqlite3
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from gateway.domain.audit import AuditEntry
from gateway.domain.delivery import Backlog, Batch, Edit
from gateway.domain.quarantined import Quarantined
from gateway.domain.texts import shown_url
from gateway.errors import StoreUnavailable
from gateway.store.sqlite import corrections
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.damaged import quarantine_rows
from gateway.store.sqlite.delivery import TO_SEND, UPSTREAM_ID
from gateway.store.sqlite.engine import checksum
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.quarantine import keep_own
from gateway.store.sqlite.retiming import FIRST_SUSPECT
from gateway.store.sqlite.rows import READING_JSON

UPSTREAM = UPSTREAM_ID.format(url=":target", unnamed=":unnamed")
AT_TARGET = """
brewsessions s LEFT JOIN deliveries d ON d.target = :target AND d.session_id = s.id
LEFT JOIN forwardings f ON f.target = :target AND f.session_id = s.id
"""
NOT_REFUSED = "NOT EXISTS (SELECT 1 FROM refusals x WHERE x.target = :target AND x.seq = r.seq)"

HIGHEST = "SELECT coalesce(max(seq), 0) FROM readings"
PLACES = f"""
SELECT s.id, {UPSTREAM}, coalesce(d.watermark, 0), coalesce(d.attempt_until, 0) > 0
FROM {AT_TARGET} WHERE {UPSTREAM} IS NOT NULL
"""
NEAR = f"""
SELECT r.session_id, count(*), min(r.received_at), min(r.seq)
FROM readings r LEFT JOIN deliveries d ON d.target = :target AND d.session_id = r.session_id
WHERE r.seq > :lowest AND r.seq > coalesce(d.watermark, 0) AND {TO_SEND} AND {NOT_REFUSED}
GROUP BY +r.session_id
"""
"""What waits in brew sessions whose watermarks are close to the end: by place in the queue."""

FAR = f"""
SELECT :session_id, count(*), min(received_at), min(seq) FROM (
    SELECT r.received_at, r.seq FROM readings r
    WHERE r.session_id = :session_id AND +r.seq > :watermark AND {TO_SEND} AND {NOT_REFUSED} LIMIT :limit)
"""
"""The same for one that is far behind, by its own index: years of readings of others may have come since."""

CAUGHT_UP = """
INSERT INTO deliveries (target, session_id, watermark) SELECT :target, value, :highest
FROM json_each(:sessions) WHERE TRUE
ON CONFLICT (target, session_id) DO UPDATE SET watermark = max(watermark, excluded.watermark)
WHERE attempt_until IS NULL
"""
PLACE = """
SELECT coalesce(f.upstream_id, s.upstream_id), s.account_id, s.recipe_id, coalesce(d.watermark, 0),
       CASE WHEN d.session_id IS NOT NULL THEN d.attempt_until
       ELSE (SELECT nullif(value, 0) FROM counters WHERE name = 'unsettled_until') END
FROM brewsessions s LEFT JOIN deliveries d ON d.target = :target AND d.session_id = s.id
LEFT JOIN forwardings f ON f.target = :target AND f.session_id = s.id
WHERE s.id = :session_id AND coalesce(f.upstream_id, s.upstream_id) IS NOT NULL AND s.deleted = 0
"""
UNCALIBRATED = """CASE WHEN r.shown_gravity IS NOT NULL OR r.shown_temp IS NOT NULL
            THEN json_object('gravity', r.gravity, 'temp', r.temp) END"""
BY_PLACE, BY_SESSION = "/*by place*/", "/*by session*/"
WAITING = f"""
SELECT r.seq, CASE WHEN {checksum.intact_sql("r.")} THEN {READING_JSON} END,
       {UNCALIBRATED}, c.was, c.version, c.withheld
FROM readings r LEFT JOIN corrections c ON c.seq = r.seq AND c.target = :target
WHERE r.seq IN (
    SELECT r.seq FROM readings r
    WHERE {BY_PLACE}r.session_id = :brewevent_id AND {BY_SESSION}r.seq > :watermark
      AND {BY_SESSION}r.seq <= :until AND {TO_SEND} AND {NOT_REFUSED}
    ORDER BY r.seq LIMIT :limit)
ORDER BY r.seq
"""
EARLIER = f"""
SELECT {READING_JSON},
       {UNCALIBRATED}
FROM readings r
WHERE r.session_id = :brewevent_id AND +r.seq <= :watermark AND {TO_SEND} AND {NOT_REFUSED}
  AND {checksum.intact_sql("r.")}
  AND r.created_at IN (SELECT created_at FROM readings WHERE seq IN (SELECT value FROM json_each(:seqs)))
ORDER BY r.seq LIMIT :limit
"""
"""What the target has got before of the seconds of an open attempt. Damaged readings prove nothing."""
WAITING_NEAR = WAITING.replace(BY_PLACE, "+").replace(BY_SESSION, "")
WAITING_FAR = WAITING.replace(BY_PLACE, "").replace(BY_SESSION, "+")
"""With a plus, SQLite looks for another index than that of the column: see `NEAR` and `FAR`."""

OPEN_ATTEMPT = """
INSERT INTO deliveries (target, session_id, attempt_until) VALUES (?, ?, ?)
ON CONFLICT (target, session_id)
DO UPDATE SET attempt_until = max(coalesce(attempt_until, 0), excluded.attempt_until)
"""
SETTLE = """
UPDATE deliveries SET watermark = max(watermark, :last),
    attempt_until = CASE WHEN attempt_until > :last THEN attempt_until END
WHERE target = :target AND session_id = :session_id AND watermark = :after
"""
"""Not where `send_again` has moved the watermark meanwhile. What salvage leaves unsettled may be more than a
batch; the rest stays so."""
RELEASE = """
INSERT INTO deliveries (target, session_id) VALUES (?, ?)
ON CONFLICT (target, session_id) DO UPDATE SET attempt_until = NULL
"""
FORWARDED = f"""
SELECT d.session_id,
       (SELECT count(*) FROM readings r
        WHERE r.session_id = d.session_id AND r.seq <= d.watermark AND {TO_SEND} AND {NOT_REFUSED})
FROM deliveries d WHERE d.target = :target
"""
REFUSE = "INSERT OR REPLACE INTO refusals (target, seq, reason, refused_at) VALUES (?, ?, ?, ?)"
DELIVERED_SINCE = f"""
SELECT s.id, min(r.seq), count(*)
FROM {AT_TARGET} JOIN readings r ON r.session_id = s.id AND r.seq <= d.watermark
WHERE {UPSTREAM} IS NOT NULL AND (:session_id IS NULL OR s.id = :session_id)
  AND r.created_at >= :since AND {TO_SEND} AND {NOT_REFUSED} GROUP BY s.id
"""
MOVE_BACK = """
UPDATE deliveries SET attempt_until = max(coalesce(attempt_until, 0), watermark), watermark = ? - 1
WHERE target = ? AND session_id = ?
"""

NO_LIMIT = 2**62

ATTEMPT_READINGS = 10_000
"""Of an open attempt that come at once: as many as a batch may have. Salvage leaves longer ones open."""

CAUGHT_UP_AFTER = 20_000
"""A watermark further than this from the end of the queue is moved up, or looked at by itself."""


class SqliteOutbox:
    """The `OutboxStore` protocol on SQLite."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        """What waits for this target, the longest waiting brew session first."""
        if self._database.salvaging:
            raise StoreUnavailable("readings are still being salvaged; forwarding goes on after that")
        async with self._database.reader() as reader:
            look = await reader.run(_look, {"target": target, "unnamed": unnamed})
        if look.finished:
            await self._catch_up(target, look)
        return look.backlogs

    async def _catch_up(self, target: str, look: "Look") -> None:
        """Let the watermarks of finished brew sessions follow, or each look would begin at theirs.

        Safe at any time: what is stored meanwhile lies above `highest`.
        """
        values = {"target": target, "highest": look.highest, "sessions": json.dumps(look.finished)}
        await self._writer.run(Apart(lambda connection: connection.execute(CAUGHT_UP, values) and None))

    async def begin(self, target: str, session_id: int, limit: int) -> Batch | None:
        """The oldest readings above the watermark, else corrections; see the protocol."""
        try:
            return await self._writer.run(Apart(lambda c: _begin(c, target, session_id, limit, sound=True)))
        except corrections.DamagedReadings:
            # Not apart, because it takes the damaged readings out of their brew session.
            return await self._writer.run(lambda c: _begin(c, target, session_id, limit, sound=False))

    async def settle(
        self, batch: Batch, sent: Set[int] | None = None, *, withheld: Set[int] = frozenset()
    ) -> None:
        """Move the watermark past the batch and close the attempt; see the protocol."""
        known = [
            seq
            for seq, edit in batch.edits.items()
            if seq not in withheld and (batch.corrects or edit.withheld or sent is None or seq in sent)
        ]
        parameters = {
            "last": batch.last_seq,
            "target": batch.target,
            "session_id": batch.session_id,
            "after": batch.after,
        }

        def work(connection: sqlite3.Connection) -> None:
            corrections.settle(connection, batch, known)
            corrections.withhold(connection, batch, withheld)
            if not batch.corrects:
                connection.execute(SETTLE, parameters)

        await self._writer.run(Apart(work))

    async def release(self, batch: Batch) -> None:
        """Close the attempt, watermark unmoved."""
        parameters = (batch.target, batch.session_id)
        await self._writer.run(Apart(lambda connection: connection.execute(RELEASE, parameters) and None))

    async def refuse(self, batch: Batch, item: Quarantined) -> None:
        """Note that the target never takes the batch's only reading, and keep it in quarantine."""

        def work(connection: sqlite3.Connection) -> None:
            refused_at = item.received_at // 1000
            connection.execute(REFUSE, (batch.target, batch.last_seq, item.reason, refused_at))
            keep_own(connection, item)

        await self._writer.run(work, grows=True)

    async def send_again(
        self, target: str, since: int, *, unnamed: bool, session_id: int | None = None
    ) -> dict[int, int]:
        """Move watermarks back and leave an attempt open up to where they were; see the protocol."""
        which = {"target": target, "unnamed": unnamed, "since": since, "session_id": session_id}

        def work(connection: sqlite3.Connection) -> dict[int, int]:
            found = connection.execute(DELIVERED_SINCE, which).fetchall()
            connection.executemany(MOVE_BACK, [(first, target, session) for session, first, _ in found])
            return {session: count for session, _, count in found}

        return await self._writer.run(
            audited(
                work,
                lambda found: AuditEntry(
                    "resend", f"target:{shown_url(target)}", f"{sum(found.values())} readings"
                ),
            )
        )

    async def forwarded(self, target: str) -> dict[int, int]:
        """Readings at or below the watermark, by brew session id."""
        async with self._database.reader() as reader:
            return dict(await reader.run(_all, FORWARDED, {"target": target}))


@dataclass(frozen=True, slots=True)
class Look:
    """What waits, and which brew sessions are far behind without anything waiting."""

    backlogs: list[Backlog]
    highest: int
    finished: list[int]


def _look(connection: sqlite3.Connection, which: dict[str, Any]) -> Look:
    ((highest,),) = connection.execute(HIGHEST)
    places = {session: rest for session, *rest in connection.execute(PLACES, which)}
    behind = highest - CAUGHT_UP_AFTER
    near = {session: watermark for session, (_, watermark, _) in places.items() if watermark >= behind}
    found: list[Any] = []
    if near:
        counted = connection.execute(NEAR, {**which, "lowest": min(near.values())})
        found += [row for row in counted if row[0] in near]
    for session in places.keys() - near.keys():
        values = {**which, "session_id": session, "watermark": places[session][1], "limit": ATTEMPT_READINGS}
        found += connection.execute(FAR, values)
    waiting = sorted((row for row in found if row[1]), key=lambda row: int(row[3]))
    finished = sorted(places.keys() - near.keys() - {row[0] for row in waiting})
    queued = {row[0] for row in waiting}
    owed = corrections.waiting(connection, which["target"], places.keys() - queued)
    backlogs = [
        Backlog(session, places[session][0], count, oldest, bool(places[session][2]))
        for session, count, oldest, _ in [*waiting, *owed]
    ]
    return Look(backlogs, highest, finished)


def _begin(
    connection: sqlite3.Connection, target: str, session_id: int, limit: int, *, sound: bool
) -> Batch | None:
    """Begin a batch. Damaged readings go into quarantine, or with `sound` are `DamagedReadings`."""
    while True:
        place = connection.execute(PLACE, {"target": target, "session_id": session_id}).fetchone()
        if place is None:
            return None
        upstream_id, account_id, recipe_id, watermark, attempt_until = place
        ((suspect,),) = connection.execute(FIRST_SUSPECT)
        which = {
            "target": target,
            "login_id": account_id,
            "brewevent_id": session_id,
            "recipe_id": recipe_id,
            "watermark": watermark,
            "until": min(attempt_until or NO_LIMIT, suspect - 1),
            "limit": ATTEMPT_READINGS if attempt_until else limit,
        }
        ((highest,),) = connection.execute(HIGHEST)
        near = watermark >= highest - CAUGHT_UP_AFTER
        found = connection.execute(WAITING_NEAR if near else WAITING_FAR, which).fetchall()
        rows = [row for row in found if row[1] is not None]
        if len(rows) < len(found):
            if sound:
                raise corrections.DamagedReadings
            quarantine_rows(connection, [seq for seq, row, *_ in found if row is None])
        if rows:
            break
        if not found:
            if suspect == NO_LIMIT:
                connection.execute(RELEASE, (target, session_id))
            if suspect < NO_LIMIT or attempt_until is None:
                return corrections.due(connection, upstream_id, {**which, "limit": limit}, sound=sound)
    seqs, texts, *_ = zip(*rows, strict=True)
    edits = {seq: Edit(was, version, bool(withheld)) for seq, _, _, was, version, withheld in rows if was}
    uncalibrated = {seq: members for seq, _, members, *_ in rows if members}
    open_until = max(attempt_until or 0, seqs[-1])
    connection.execute(OPEN_ATTEMPT, (target, session_id, open_until))
    unsettled = attempt_until is not None
    earlier = connection.execute(EARLIER, {**which, "seqs": json.dumps(seqs)}) if unsettled else ()
    return Batch(
        target, session_id, upstream_id, seqs, texts, unsettled, watermark, edits, uncalibrated,
        earlier=tuple(earlier),
    )  # fmt: skip


def _all(connection: sqlite3.Connection, sql: str, parameters: Any) -> list[Any]:
    return connection.execute(sql, parameters).fetchall()
