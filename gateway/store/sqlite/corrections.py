"""Corrections: edits of readings that a target already has, on their way there.

Corrections stand beside the queue: an edited reading keeps its place in it. A `withheld` correction is for a
target that makes its own ids: the edit would be one more reading there. Only the user sends it (`targets
resend`).
"""

import sqlite3
from collections.abc import Collection, Iterable
from typing import Any

from gateway.domain.delivery import Batch, Edit
from gateway.store.sqlite.damaged import quarantine_rows
from gateway.store.sqlite.delivery import SAYS_SOMETHING
from gateway.store.sqlite.engine import checksum
from gateway.store.sqlite.rows import READING_JSON

WAITING = f"""
SELECT r.session_id, count(*), min(r.edited_at) * 1000, min(r.seq)
FROM corrections c JOIN readings r ON r.seq = c.seq
WHERE c.target = :target AND NOT c.withheld AND {SAYS_SOMETHING} GROUP BY r.session_id
"""
DUE = f"""
SELECT r.seq, CASE WHEN {checksum.intact_sql("r.")} THEN {READING_JSON} END, c.was, c.version
FROM corrections c JOIN readings r ON r.seq = c.seq
WHERE c.target = :target AND NOT c.withheld AND r.session_id = :brewevent_id AND {SAYS_SOMETHING}
ORDER BY r.created_at, r.seq LIMIT :limit
"""
KNOWN_THERE = "DELETE FROM corrections WHERE target = ? AND seq = ? AND version = ?"
WITHHOLD = "UPDATE corrections SET withheld = 1 WHERE target = ? AND seq = ?"


def waiting(connection: sqlite3.Connection, target: str, sessions: Collection[int]) -> list[tuple[int, ...]]:
    """Return brew session, count, oldest time (Unix milliseconds) and lowest place of corrections to send."""
    found = connection.execute(WAITING, {"target": target})
    return [row for row in found if row[0] in sessions]


class DamagedReadings(Exception):
    """Readings of a batch are damaged, and were left where they are."""


def due(
    connection: sqlite3.Connection, upstream_id: int, which: dict[str, Any], *, sound: bool
) -> Batch | None:
    """Return the corrections of one brew session, oldest readings first; None if there are none.

    Damaged readings go into quarantine, or with `sound` are `DamagedReadings`.
    """
    found = connection.execute(DUE, which).fetchall()
    damaged = [seq for seq, row, *_ in found if row is None]
    if damaged and sound:
        raise DamagedReadings
    quarantine_rows(connection, damaged)
    found = [entry for entry in found if entry[1] is not None]
    if not found:
        return None
    seqs, rows, _, _ = zip(*found, strict=True)
    edits = {seq: Edit(was, version) for seq, _, was, version in found}
    return Batch(which["target"], which["brewevent_id"], upstream_id, seqs, rows, edits=edits, corrects=True)


def settle(connection: sqlite3.Connection, batch: Batch, known: Iterable[int]) -> None:
    """Forget edits, by place in the queue, that the target knows now; an edit made meanwhile stays due."""
    rows = [(batch.target, seq, batch.edits[seq].version) for seq in known if seq in batch.edits]
    connection.executemany(KNOWN_THERE, rows)


def withhold(connection: sqlite3.Connection, batch: Batch, seqs: Iterable[int]) -> None:
    """Withhold the edits of readings that the target has under ids of its own."""
    connection.executemany(WITHHOLD, [(batch.target, seq) for seq in seqs])
