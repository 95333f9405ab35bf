"""Targets that are no Brewing Data Service: what goes there, and a watermark for each target and device."""

import sqlite3
from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import Any

from gateway.domain.audit import AuditEntry
from gateway.domain.delivery import Backlog, Batch
from gateway.domain.quarantined import Quarantined
from gateway.domain.target import Route
from gateway.errors import StoreUnavailable
from gateway.store.sqlite.audit import audited
from gateway.store.sqlite.damaged import quarantine_rows
from gateway.store.sqlite.engine import checksum
from gateway.store.sqlite.engine.changes import Apart
from gateway.store.sqlite.engine.database import Database
from gateway.store.sqlite.engine.writer import Writer
from gateway.store.sqlite.lanes import HAS_NUMBERS, ROUTED
from gateway.store.sqlite.quarantine import keep_own
from gateway.store.sqlite.retiming import FIRST_SUSPECT

NOT_REFUSED = "NOT EXISTS (SELECT 1 FROM refusals x WHERE x.target = :target AND x.seq = r.seq)"
GOES = f"{ROUTED.format(url=':target')} AND {HAS_NUMBERS} AND {NOT_REFUSED}"

OF = "SELECT what, id FROM routes WHERE target = ? ORDER BY what, id"
ADD = """
INSERT INTO routes (target, what, id, after) VALUES (:target, :what, :id, :after)
ON CONFLICT (target, what, id) DO UPDATE SET after = min(after, excluded.after)
"""
REMOVE = "DELETE FROM routes WHERE target = ? AND what = ? AND id = ?"
HIGHEST = "SELECT coalesce(max(seq), 0) FROM readings"
MATCHES = {"all": "TRUE", "device": "r.device_id = :id", "brew": "r.session_id = :id"}
FIRST = """
SELECT coalesce(r.device_id, 0), min(r.seq) FROM readings r WHERE {matches} AND r.created_at >= :since
GROUP BY r.device_id
"""
MOVE_BACK = """
INSERT INTO lanes (target, device_id, watermark) VALUES (?, ?, ?)
ON CONFLICT (target, device_id) DO UPDATE SET watermark = min(watermark, excluded.watermark)
"""

PLACES = """
SELECT d.id, coalesce(l.watermark, :base) FROM (
    SELECT id FROM devices WHERE merged_into IS NULL UNION ALL SELECT 0) d
LEFT JOIN lanes l ON l.target = :target AND l.device_id = d.id
WHERE EXISTS (SELECT 1 FROM routes WHERE target = :target AND what <> 'device')
   OR d.id IN (SELECT id FROM routes WHERE target = :target AND what = 'device')
"""
BASE = "SELECT min(after) FROM routes WHERE target = :target"
NEAR = f"""
SELECT coalesce(r.device_id, 0), count(*), min(r.received_at), min(r.seq)
FROM readings r LEFT JOIN lanes l ON l.target = :target AND l.device_id = coalesce(r.device_id, 0)
WHERE r.seq > :lowest AND r.seq > coalesce(l.watermark, 0) AND {GOES} GROUP BY r.device_id
"""
"""What waits in lanes whose watermarks are close to the end: by place in the queue."""

BY_DEVICE = "r.device_id = :lane AND +r.seq > :watermark"
OF_NO_DEVICE = "r.device_id IS NULL AND r.seq > :watermark"
BY_PLACE = "CASE WHEN :lane THEN r.device_id = :lane ELSE r.device_id IS NULL END AND r.seq > :watermark"
FAR = """
SELECT :lane, count(*), min(received_at), min(seq) FROM (
    SELECT r.received_at, r.seq FROM readings r WHERE {which} AND {goes} LIMIT :limit)
"""
"""The same for a lane that is far behind, by the device's own index."""

CAUGHT_UP = """
INSERT INTO lanes (target, device_id, watermark) VALUES (:target, :lane, :highest)
ON CONFLICT (target, device_id) DO UPDATE SET watermark = :highest WHERE watermark = :seen
"""
"""Not where `add` or `send_again` has moved the watermark back since the look."""

WATERMARK = """
SELECT coalesce((SELECT watermark FROM lanes WHERE target = :target AND device_id = :lane), :base)
"""
ROW = f"""
CASE WHEN {checksum.intact_sql("r.")} THEN json_object(
    'id', lower(hex(r.oid)), 'at', r.created_at, 'device', d.key, 'device_id', r.device_id,
    'name', coalesce(json_extract(d.settings, '$.label'), d.name, r.name),
    'session', r.session_id, 'batchcode', s.batchcode, 'sg', r.sg, 'temp_c', r.celsius,
    'facts', json(coalesce(r.facts, '{{}}')), 'flags', json(coalesce(r.flags, '[]')),
    'comment', r.comment) END
"""
"""A reading for other kinds of targets, as JSON; NULL if it is damaged."""

ROW_TABLES = """
readings r LEFT JOIN devices d ON d.id = r.device_id LEFT JOIN brewsessions s ON s.id = r.session_id
"""
WAITING = f"""
SELECT r.seq, {ROW} FROM {ROW_TABLES}
WHERE r.seq IN (
    SELECT r.seq FROM readings r
    WHERE {{which}} AND r.seq < :suspect AND {GOES} ORDER BY r.seq LIMIT :limit)
ORDER BY r.seq
"""
SETTLE = """
INSERT INTO lanes (target, device_id, watermark) VALUES (:target, :lane, :last)
ON CONFLICT (target, device_id) DO UPDATE SET watermark = :last WHERE watermark = :after
"""
"""Not where `add` or `send_again` has moved the watermark meanwhile."""

REFUSE = "INSERT OR REPLACE INTO refusals (target, seq, reason, refused_at) VALUES (?, ?, ?, ?)"
SENT_SINCE = f"""
SELECT coalesce(r.device_id, 0), min(r.seq), count(*)
FROM readings r JOIN lanes l ON l.target = :target AND l.device_id = coalesce(r.device_id, 0)
WHERE r.created_at >= :since AND r.seq <= l.watermark AND (:lane IS NULL OR coalesce(r.device_id, 0) = :lane)
  AND {GOES} GROUP BY r.device_id
"""
FAR_READINGS = 10_000
"""Waiting readings of a lane that are counted at most, if it is far behind."""

CAUGHT_UP_AFTER = 20_000
"""A watermark further than this from the end of the queue is moved up, or looked at by itself."""


class SqliteRoutes:
    """The `RouteStore` protocol on SQLite; the protocol describes the methods."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def of(self, target: str) -> list[Route]:
        return [Route(what, id) for what, id in await self._read(OF, (target,))]

    async def add(self, target: str, route: Route, since: int | None) -> None:
        def work(connection: sqlite3.Connection) -> None:
            ((after,),) = connection.execute(HIGHEST)
            values = {"target": target, "what": route.what, "id": route.id, "since": since}
            if since is not None:
                first = connection.execute(FIRST.format(matches=MATCHES[route.what]), values).fetchall()
                connection.executemany(MOVE_BACK, [(target, lane, seq - 1) for lane, seq in first])
                after = min([after, *(seq - 1 for _, seq in first)])
            connection.execute(ADD, {**values, "after": after})

        said = f"to {target}" + ("" if since is None else ", earlier readings, too")
        await self._writer.run(audited(work, AuditEntry("map", _about(route), said)))

    async def remove(self, target: str, route: Route) -> bool:
        return await self._writer.run(
            audited(
                lambda connection: connection.execute(REMOVE, (target, route.what, route.id)).rowcount > 0,
                AuditEntry("map", _about(route), f"to {target} no longer"),
            )
        )

    async def backlogs(self, target: str, *, unnamed: bool = True) -> list[Backlog]:
        if self._database.salvaging:
            raise StoreUnavailable("readings are still being salvaged; forwarding goes on after that")
        async with self._database.reader() as reader:
            found, highest, finished = await reader.run(_look, target)
        if finished:
            await self._catch_up(target, highest, finished)
        return found

    async def _catch_up(self, target: str, highest: int, lanes: Mapping[int, int]) -> None:
        # Safe at any time: what is stored meanwhile lies above `highest`.
        which = {"target": target, "highest": highest}
        rows = [{**which, "lane": lane, "seen": watermark} for lane, watermark in lanes.items()]
        await self._writer.run(Apart(lambda connection: connection.executemany(CAUGHT_UP, rows) and None))

    async def begin(self, target: str, lane: int, limit: int) -> Batch | None:
        while True:
            async with self._database.reader() as reader:
                watermark, rows = await reader.run(_waiting, target, lane, limit)
            damaged = [seq for seq, row in rows if row is None]
            if not damaged:
                break
            await self._writer.run(partial(quarantine_rows, seqs=damaged))
        if not rows:
            return None
        seqs, texts = zip(*rows, strict=True)
        return Batch(target, lane, 0, seqs, texts, after=watermark)

    async def settle(
        self,
        batch: Batch,
        sent: Set[int] | None = None,
        *,
        withheld: Set[int] = frozenset(),
    ) -> None:
        values = {
            "target": batch.target,
            "lane": batch.session_id,
            "last": batch.last_seq,
            "after": batch.after,
        }
        await self._writer.run(Apart(lambda connection: connection.execute(SETTLE, values) and None))

    async def refuse(self, batch: Batch, item: Quarantined) -> None:
        def work(connection: sqlite3.Connection) -> None:
            refused_at = item.received_at // 1000
            connection.execute(REFUSE, (batch.target, batch.last_seq, item.reason, refused_at))
            keep_own(connection, item)

        await self._writer.run(work, grows=True)

    async def release(self, batch: Batch) -> None:
        pass

    async def send_again(self, target: str, since: int, *, lane: int | None = None) -> dict[int, int]:
        def work(connection: sqlite3.Connection) -> dict[int, int]:
            values = {"target": target, "since": since, "lane": lane}
            found = connection.execute(SENT_SINCE, values).fetchall()
            connection.executemany(MOVE_BACK, [(target, device, first - 1) for device, first, _ in found])
            return {device: count for device, _, count in found}

        def entry(found: dict[int, int]) -> AuditEntry:
            return AuditEntry("resend", f"target:{target}", f"{sum(found.values())} readings")

        return await self._writer.run(audited(work, entry))

    async def _read(self, sql: str, values: Sequence[Any]) -> list[Any]:
        async with self._database.reader() as reader:
            return await reader.run(lambda connection: connection.execute(sql, values).fetchall())


def _about(route: Route) -> str:
    names = {"all": "readings", "device": f"device:{route.id}", "brew": f"session:{route.id}"}
    return names[route.what]


def _look(connection: sqlite3.Connection, target: str) -> tuple[list[Backlog], int, dict[int, int]]:
    """Return what waits, the highest place in the queue, and lanes far behind with nothing waiting.

    The last are watermarks by lane.
    """
    which: dict[str, Any] = {"target": target}
    ((base,),) = connection.execute(BASE, which)
    if base is None:
        return [], 0, {}
    ((highest,),) = connection.execute(HIGHEST)
    places = dict(connection.execute(PLACES, {**which, "base": base}))
    near = {lane for lane, watermark in places.items() if watermark >= highest - CAUGHT_UP_AFTER}
    found: list[Any] = []
    if near:
        counted = connection.execute(NEAR, {**which, "lowest": min(places[lane] for lane in near)})
        found += [row for row in counted if row[0] in near]
    for lane in places.keys() - near:
        sql = FAR.format(which=BY_DEVICE if lane else OF_NO_DEVICE, goes=GOES)
        values = {**which, "lane": lane, "watermark": places[lane], "limit": FAR_READINGS}
        found += connection.execute(sql, values)
    waiting = sorted((row for row in found if row[1]), key=lambda row: int(row[3]))
    finished = {lane: places[lane] for lane in places.keys() - near - {row[0] for row in waiting}}
    backlogs = [Backlog(lane, 0, count, oldest, unsettled=False) for lane, count, oldest, _ in waiting]
    return backlogs, highest, finished


def _waiting(
    connection: sqlite3.Connection, target: str, lane: int, limit: int
) -> tuple[int, list[tuple[int, str | None]]]:
    """Return the lane's watermark, and place and JSON of the oldest readings above it."""
    which: dict[str, Any] = {"target": target, "lane": lane, "limit": limit}
    ((base,),) = connection.execute(BASE, which)
    if base is None:
        return 0, []
    ((watermark,),) = connection.execute(WATERMARK, {**which, "base": base})
    ((suspect,),) = connection.execute(FIRST_SUSPECT)
    ((highest,),) = connection.execute(HIGHEST)
    values = {**which, "watermark": watermark, "suspect": suspect}
    if not lane or watermark >= highest - CAUGHT_UP_AFTER:
        return watermark, connection.execute(WAITING.replace("{which}", BY_PLACE), values).fetchall()
    # Far behind: first among the next places, because by device all its readings would be sorted each time.
    near = {**values, "suspect": min(suspect, watermark + CAUGHT_UP_AFTER)}
    found = connection.execute(WAITING.replace("{which}", BY_PLACE), near).fetchall()
    return watermark, found or connection.execute(WAITING.replace("{which}", BY_DEVICE), values).fetchall()
