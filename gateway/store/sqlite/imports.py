"""Imports into a brew session: new readings go in, known ones stay or are edited, none is stored twice."""

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.domain.account import OWNER_ID
from gateway.domain.brewsession import BrewSession
from gateway.domain.objectid import new_object_id
from gateway.domain.reading import Reading
from gateway.errors import NotFound
from gateway.store.sqlite.delivery import OF_TARGET
from gateway.store.sqlite.edits import Stored, changed_columns, find, take_back, write
from gateway.store.sqlite.engine.checksum import MOVED_SQL
from gateway.store.sqlite.rows import DELETE_SEQ, INSERT_IMPORTED, imported, next_seq

DERIVATIONS = 8
"""Derived ids that are tried, each from the one before: one for each session a reading was copied through."""

DELETE_SESSION = "DELETE FROM readings WHERE session_id = ?"
DELETE_OID = "DELETE FROM readings WHERE oid = ?"
IDS = "SELECT oid FROM readings WHERE session_id = ?"
EDITED = "SELECT oid FROM readings WHERE session_id = ? AND original IS NOT NULL"
IS_DELETED = "SELECT 1 FROM brewsessions WHERE id = ? AND deleted AND account_id = ?"
CLAIM = f"""
UPDATE readings SET seq = :place, session_id = :session_id, crc = {MOVED_SQL},
    mirrored = CASE WHEN EXISTS (
        SELECT 1 FROM brewsessions a JOIN brewsessions b ON b.id = :session_id
        WHERE a.id = readings.session_id AND a.upstream IS b.upstream AND a.upstream_id IS b.upstream_id
    ) THEN mirrored END
WHERE seq = :seq
"""
READ_BACK_FIRST = f"""
INSERT INTO deliveries (target, session_id, attempt_until)
SELECT t.url, s.id, :until FROM targets t JOIN brewsessions s ON t.kind = 'service'
LEFT JOIN forwardings f ON f.target = t.url AND f.session_id = s.id
WHERE s.id = :session_id AND {OF_TARGET} IS NOT NULL
ON CONFLICT (target, session_id)
DO UPDATE SET attempt_until = max(coalesce(attempt_until, 0), excluded.attempt_until)
"""
"""A restored brew session may go to the deleted one's target: only readings missing there are sent."""
MOVE = "UPDATE readings SET seq = ? WHERE seq = ?"


@dataclass(frozen=True, slots=True)
class ImportContent:
    """The arguments of an import; see `ReadingStore.import_readings`."""

    readings: Sequence[Reading]
    reset: bool
    unsaid: Mapping[str, frozenset[str]]
    later: Sequence[str]


def import_readings(connection: sqlite3.Connection, session: BrewSession, body: ImportContent) -> None:
    """Import readings; see `ReadingStore.import_readings`."""
    readings = list({reading.oid: reading for reading in body.readings}.values())
    if body.reset:
        _delete_others(connection, session, [*(reading.oid for reading in readings), *body.later])
    first = next_seq(connection)
    connection.execute("SAVEPOINT all_new")
    try:
        rows = [imported(place, reading, session.id) for place, reading in enumerate(readings, first)]
        connection.executemany(INSERT_IMPORTED, rows)
    except sqlite3.IntegrityError:  # some ids are known
        connection.execute("ROLLBACK TO all_new")
        _one_by_one(connection, session, readings, body, first)
    connection.execute("RELEASE all_new")


def take_back_edits(
    connection: sqlite3.Connection, session: BrewSession, ids: Iterable[str], now: int
) -> int:
    """Undo edits of readings; see `ReadingStore.take_back`."""
    oids = [bytes.fromhex(oid) for oid in ids]
    if not oids:
        oids = [oid for (oid,) in connection.execute(EDITED, (session.id,)).fetchall()]
    count = 0
    for oid in oids:
        stored = find(connection, oid)
        if stored is None or stored.session_id != session.id:
            raise NotFound(f"brew session {session.id} has no reading {oid.hex()}")
        if stored.original:
            take_back(connection, session, stored, now)
            count += 1
    return count


def derived_id(oid: bytes, session_id: int) -> bytes:
    """Return the id for a reading's copy in another brew session: always the same, and of the same second."""
    return oid[:4] + hashlib.sha256(b"%b%d" % (oid, session_id)).digest()[:8]


def _delete_others(connection: sqlite3.Connection, session: BrewSession, ids: Iterable[str]) -> None:
    """Delete the session's readings, except readings with these ids or with ids derived from them."""
    held = {oid for (oid,) in connection.execute(IDS, (session.id,))}
    gone = set(held)
    for oid in map(bytes.fromhex, ids) if held else ():
        gone.discard(oid if oid in held else _identity(connection, session, oid)[0])
    if gone == held:
        connection.execute(DELETE_SESSION, (session.id,))
    else:
        connection.executemany(DELETE_OID, [(oid,) for oid in gone])


def _one_by_one(
    connection: sqlite3.Connection,
    session: BrewSession,
    readings: Iterable[Reading],
    body: ImportContent,
    place: int,
) -> None:
    restored = 0
    for reading in readings:
        oid, stored = _identity(connection, session, bytes.fromhex(reading.oid))
        if stored is not None and not stored.intact:
            connection.execute(DELETE_SEQ, (stored.seq,))
            stored = None
        if stored is None:
            new = reading._replace(oid=oid.hex())
            connection.execute(INSERT_IMPORTED, imported(place, new, session.id))
            place += 1
            continue
        if stored.session_id != session.id:
            where = {"seq": stored.seq, "place": place, "session_id": session.id}
            connection.execute(CLAIM, where)
            restored = place if stored.session_id is not None else restored
            stored = replace(stored, seq=place, session_id=session.id)
            place += 1
        unsaid = body.unsaid.get(reading.oid, frozenset())
        if body.reset:  # a broker hides a device's address, and the caller's is another one
            unsaid = (
                unsaid & {"ip"} if stored.device_id is not None and not stored.reading.ip else frozenset()
            )
        if changed := changed_columns(stored, reading, unsaid, whole=body.reset):
            write(connection, session, stored, changed, reading.received_at // 1000)
            old = stored.reading
            if not (old.gravity or old.temp or old.comment):  # never sent; now there is a value to send
                connection.execute(MOVE, (place, stored.seq))
                place += 1
    if restored:
        connection.execute(READ_BACK_FIRST, {"session_id": session.id, "until": restored})


def _identity(
    connection: sqlite3.Connection, session: BrewSession, oid: bytes
) -> tuple[bytes, Stored | None]:
    """Return the id that a reading with this id has or gets in the session, and its stored reading."""
    for _ in range(DERIVATIONS):
        stored = find(connection, oid)
        if stored is None or _is_for(connection, session, stored):
            return oid, stored
        oid = derived_id(oid, session.id)
    return bytes.fromhex(new_object_id(int.from_bytes(oid[:4], "big"))), None


def _is_for(connection: sqlite3.Connection, session: BrewSession, stored: Stored) -> bool:
    """Return whether the reading is the session's own, or free for it: of a deleted session, or of none."""
    if stored.session_id is None:
        return session.account_id == OWNER_ID
    if stored.session_id == session.id:
        return True
    found = connection.execute(IS_DELETED, (stored.session_id, session.account_id))
    return found.fetchone() is not None
