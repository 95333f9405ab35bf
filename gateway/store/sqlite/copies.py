"""Copies of a service's readings: insert new ones, and take corrections made there, member by member.

The last look at the service is the base. For a copy that is not edited here, the columns hold it; for every
other reading, `looked` has digests of the values there and of the values given out here, both at that look. A
member that changed only there since is taken. A member that changed here since stays, even if it changed
there, too. If a member was edited here before that look, the change there is later.
"""

import sqlite3
import struct
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from gateway.domain.brewsession import BrewSession
from gateway.domain.objectid import new_object_id
from gateway.domain.reading import Reading
from gateway.store.records import StoredMatch
from gateway.store.sqlite.edits import Stored, changed_columns, find, rewrite_sql, text_of, write
from gateway.store.sqlite.imports import DERIVATIONS, derived_id
from gateway.store.sqlite.rows import FIND_OID, INSERT_MIRRORED, READING_COLUMNS, imported, next_seq

MEMBERS = (
    ("gravity", "gravity_unit"), ("temp", "temp_unit"), ("name",), ("comment",), ("beer",), ("source",),
    ("ip",), ("interval",), ("created_at",), ("extra",),
)  # fmt: skip
"""Members, by their columns; the columns of a member are compared together."""

HELD = f"""
SELECT r.original, r.mirrored IS NOT NULL,
    r.mirrored IS NULL AND r.seq <= coalesce(max(d.watermark, coalesce(d.attempt_until, 0)), 0),
    {", ".join(f"r.{name}" for name in READING_COLUMNS)}
FROM readings r LEFT JOIN deliveries d ON d.target = :upstream AND d.session_id = r.session_id
WHERE r.session_id = :session_id AND {{which}}
"""
IN_TIME = HELD.format(which="r.created_at BETWEEN :first AND :last ORDER BY r.created_at, r.oid")
ONCE_IN_TIME = HELD.format(
    which="r.original IS NOT NULL AND json_extract(r.original, '$.created_at') BETWEEN :first AND :last"
)
BY_ID = HELD.format(which="r.oid = :oid")
LOOKED = "SELECT looked FROM readings WHERE seq = ?"
NOTE = "UPDATE readings SET looked = ? WHERE seq = ?"
NO_LONGER_OWED = "DELETE FROM corrections WHERE seq = ? AND target = ?"

_DIGESTS = struct.Struct(f">{2 * len(MEMBERS)}I")


@dataclass(frozen=True, slots=True)
class CopyMerge:
    """Columns to change, members that stay though they changed there, too, and the new value of `looked`."""

    stored: Stored
    changed: dict[str, Any]
    kept: frozenset[str]
    looked: bytes | None


def add(connection: sqlite3.Connection, session: BrewSession, readings: Sequence[Reading]) -> None:
    """Insert copies into the session; if an id belongs to another session, under an id derived from it."""
    place = next_seq(connection)
    for reading in readings:
        oid = _free_id(connection, session.id, bytes.fromhex(reading.oid))
        if oid is not None:
            copied = imported(place, reading._replace(oid=oid.hex()), session.id)
            connection.execute(INSERT_MIRRORED, copied)
            place += 1


def find_matches(
    connection: sqlite3.Connection, session: BrewSession, like: Sequence[Reading], upstream: str
) -> list[StoredMatch]:
    """Find the session's readings that may be these: of their times, now or before edits, or by their ids."""
    times = [reading.created_at for reading in like]
    where = {"session_id": session.id, "upstream": upstream, "first": min(times), "last": max(times)}
    found: dict[bytes, StoredMatch] = {}
    for sql in (IN_TIME, ONCE_IN_TIME):
        found |= {row[3]: _held(row) for row in connection.execute(sql, where)}
    for reading in like:
        oid = bytes.fromhex(reading.oid)
        for its in (oid, derived_id(oid, session.id)):
            known = found.get(its)
            if known is None and (row := connection.execute(BY_ID, {**where, "oid": its}).fetchone()):
                known = _held(row)
            if known is not None:
                found[its] = replace(known, there_id=reading.oid)
                break
    return list(found.values())


def differing(
    connection: sqlite3.Connection, pairs: Iterable[tuple[str, Reading]]
) -> list[tuple[str, Reading]]:
    """Return the pairs, of an id here and a reading there, that `correct` would change."""
    return [(oid, there) for oid, there in pairs if _verdict(connection, oid, there) is not None]


def correct(
    connection: sqlite3.Connection,
    session: BrewSession,
    pairs: Iterable[tuple[str, Reading]],
    upstream: str,
    at: int,
) -> tuple[int, int]:
    """Take corrections made there; return how many readings changed, and how many keep a value of ours."""
    updated = kept = 0
    for oid, there in pairs:
        verdict = _verdict(connection, oid, there)
        if verdict is None:
            continue
        stored = verdict.stored
        if verdict.changed and not stored.mirrored:
            write(connection, session, stored, verdict.changed, at, known_to=upstream)
        elif verdict.changed or verdict.kept:
            _write_copy(connection, stored, there, verdict)
        updated += bool(verdict.changed)
        kept += bool(verdict.kept and not verdict.changed)
        now = find(connection, bytes.fromhex(oid))
        if now is not None and _digests(there) == _digests(now.reading):
            connection.execute(NO_LONGER_OWED, (stored.seq, upstream))
        connection.execute(NOTE, (verdict.looked, stored.seq))
    return updated, kept


def _verdict(connection: sqlite3.Connection, oid: str, there: Reading) -> CopyMerge | None:
    """Compare a stored reading with the reading there; None if nothing is to be written."""
    stored = find(connection, bytes.fromhex(oid))
    if stored is None or not stored.intact:
        return None
    if stored.mirrored and not stored.original:
        changed = changed_columns(stored, there, whole=True)
        return CopyMerge(stored, changed, frozenset(), None) if changed else None
    theirs, ours = _digests(there), _digests(stored.reading)
    ((looked,),) = connection.execute(LOOKED, (stored.seq,))
    if looked is not None:
        both = _DIGESTS.unpack(looked)
        last_theirs, last_ours = both[: len(MEMBERS)], both[len(MEMBERS) :]
    elif stored.mirrored:
        last_theirs = last_ours = _digests(stored.reading._replace(**stored.original))
    else:
        last_theirs = last_ours = theirs  # the first look: it may show what we sent before we calibrated
    taken: set[tuple[str, ...]] = set()
    kept: set[tuple[str, ...]] = set()
    for member, there_now, here_now, there_then, here_then in zip(
        MEMBERS, theirs, ours, last_theirs, last_ours, strict=True
    ):
        if there_now not in {here_now, there_then}:
            # Ours stays if both changed, because nothing tells which change was first.
            (taken if here_now == here_then else kept).add(member)
    others = {column for member in MEMBERS if member not in taken for column in member}
    changed = _said(stored, there, others) if taken else {}
    ours_then = _digests(stored.reading._replace(**changed))
    note = _DIGESTS.pack(*theirs, *ours_then)
    if note == looked:
        return None
    return CopyMerge(stored, changed, frozenset(column for member in kept for column in member), note)


def _write_copy(connection: sqlite3.Connection, stored: Stored, there: Reading, verdict: CopyMerge) -> None:
    """Write a correction to a copy: its values before edits become the source's, also under a kept edit."""
    original = {name: value for name, value in stored.original.items() if name not in verdict.changed}
    before = replace(stored, reading=stored.reading._replace(**original))
    under = _said(before, there, {column for member in MEMBERS for column in member} - verdict.kept)
    original |= {name: value for name, value in under.items() if name in original}
    columns = {**verdict.changed, "original": text_of(original) if original else None}
    connection.execute(rewrite_sql(columns), {**columns, "seq": stored.seq})


def _said(stored: Stored, there: Reading, unsaid: Set[str]) -> dict[str, Any]:
    """Return the columns that differ there, without the columns in `unsaid`."""
    changed = changed_columns(stored, there, unsaid, whole=True)
    return {name: value for name, value in changed.items() if name not in unsaid}


def _held(row: Sequence[Any]) -> StoredMatch:
    original, is_copy, was_sent, oid, *members = row
    return StoredMatch(Reading(bytes(oid).hex(), *members), original, bool(is_copy), bool(was_sent))


def _free_id(connection: sqlite3.Connection, session_id: int, oid: bytes) -> bytes | None:
    """Return the id for a copy; None if the copy is in the session already."""
    for _ in range(DERIVATIONS):
        found = connection.execute(FIND_OID, (oid,)).fetchone()
        if found is None:
            return oid
        if found[1] == session_id:
            return None
        oid = derived_id(oid, session_id)
    return bytes.fromhex(new_object_id(int.from_bytes(oid[:4], "big")))


def _digests(reading: Reading) -> tuple[int, ...]:
    """Return a digest of each member as it is given out; numbers count by their value."""
    shown = {"gravity": reading.shown_gravity, "temp": reading.shown_temp}
    digests = []
    for columns in MEMBERS:
        values: list[Any] = [
            getattr(reading, name) if shown.get(name) is None else shown[name] for name in columns
        ]
        if columns[0] in {"gravity", "temp", "interval"}:
            with suppress(ValueError):  # 1.050 and 1.05 are the same
                values[0] = repr(float(values[0]))
        digests.append(crc32(repr(values).encode("utf-8", "replace")))
    return tuple(digests)
