"""Edits of stored readings: new values of an import or a mirror replace the old ones, and can be undone.

The row keeps its device, its raw bytes, its arrival and its place in the queue. The columns hold the values
that are given out; `original` keeps the edited columns as they were, and `edited_at` the time. A target that
has the reading as it was is owed a correction: the outbox sends the reading under the same `_id` if the
target keeps ids, and never a second time if the target makes its own.
"""

import json
import math
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import Reading
from gateway.formats.readings.rows import NumberLiteral, celsius, extras, specific_gravity
from gateway.store.sqlite.delivery import TO_SEND
from gateway.store.sqlite.engine import checksum
from gateway.store.sqlite.rows import READING_COLUMNS, READING_JSON

QUANTITIES = (
    ("gravity", "gravity_unit", "shown_gravity", "sg", specific_gravity),
    ("temp", "temp_unit", "shown_temp", "celsius", celsius),
)
"""Columns of a measurement: text, unit, calibrated text, number; and the function for the number."""

_LITERAL = json.JSONDecoder(parse_int=NumberLiteral, parse_float=NumberLiteral)

TEXTS = ("name", "comment", "beer", "source", "ip", "interval", "created_at")

FIND = f"""
SELECT seq, session_id, device_id, mirrored, original, {checksum.intact_sql()}, {", ".join(READING_COLUMNS)}
FROM readings WHERE oid = ?
"""
AS_SENT = f"SELECT {READING_JSON} FROM readings WHERE seq = :seq"
OWED = f"""
INSERT INTO corrections (seq, target, was)
SELECT r.seq, d.target, :was FROM readings r JOIN deliveries d ON d.session_id = r.session_id
WHERE r.seq = :seq AND r.seq <= max(d.watermark, coalesce(d.attempt_until, 0)) AND {TO_SEND}
  AND d.target IS NOT :known_to
  AND NOT EXISTS (SELECT 1 FROM refusals x WHERE x.target = d.target AND x.seq = r.seq)
ON CONFLICT (seq, target) DO UPDATE SET version = version + 1
"""
OWED_TO_SOURCE = """
INSERT INTO corrections (seq, target, was)
SELECT r.seq, t.url, :was FROM readings r JOIN brewsessions s ON s.id = r.session_id
JOIN targets t ON t.url = s.upstream OR s.upstream IS NULL AND t.unnamed
WHERE r.seq = :seq AND r.mirrored IS NOT NULL AND s.upstream_id IS NOT NULL AND t.url IS NOT :known_to
ON CONFLICT (seq, target) DO UPDATE SET version = version + 1
"""
"""A copied reading is at the service that it was copied from, and nowhere else."""

NOT_OWED = f"""
DELETE FROM corrections WHERE seq = :seq AND withheld
AND was = (SELECT {READING_JSON} FROM readings WHERE seq = :seq)
"""
"""A reading that was edited back is the same there. A correction under way stays, and is read back first."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A reading in the table: its place in the queue, its brew session, and its columns before edits.

    `reading` has the values of the columns. `intact` is True if the checksum is right.
    """

    seq: int
    session_id: int | None
    device_id: int | None
    mirrored: bool
    intact: bool
    reading: Reading
    original: Mapping[str, Any] = field(default_factory=dict)


def find(connection: sqlite3.Connection, oid: bytes) -> Stored | None:
    """Return the reading with this id, in any brew session or in none; None if there is none."""
    row = connection.execute(FIND, (oid,)).fetchone()
    if row is None:
        return None
    seq, session_id, device_id, mirrored, original, intact, identity, *members = row
    reading = Reading(bytes(identity).hex(), *members)
    before = json.loads(original or "{}")
    return Stored(seq, session_id, device_id, bool(mirrored), bool(intact), reading, before)


def changed_columns(
    stored: Stored, said: Reading, unsaid: Collection[str] = (), *, whole: bool = False
) -> dict[str, Any]:
    """Return the columns in which `said` differs from the values given out; members in `unsaid` stay.

    Extra members that `said` does not name stay, too, unless it is the `whole` reading. Numbers are compared
    by value: 1.05 equals 1.050, and the text that a device sent stays. Only for a whole reading of no device
    the text counts. A value as the device sent it, before calibration, is no change.
    """
    old = stored.reading
    alike = str.__eq__ if whole and stored.device_id is None else same_number
    changed: dict[str, Any] = {}
    for text, unit, shown, number, numeral in QUANTITIES:
        sent = getattr(old, text)
        given_out = sent if getattr(old, shown) is None else getattr(old, shown)
        new_text = given_out if text in unsaid else getattr(said, text)
        new_unit = getattr(old if unit in unsaid else said, unit)
        # Both count as the same, because an export may be older than the calibration.
        same = alike(new_text, given_out) or alike(new_text, sent)
        if not same or new_unit != getattr(old, unit):
            value = numeral(new_text, new_unit) if new_text else None
            changed |= {text: new_text, unit: new_unit, shown: None, number: value}
    for name in TEXTS:
        new, was = getattr(said, name), getattr(old, name)
        if name not in unsaid and new != was and not (name == "interval" and alike(new, was)):
            changed[name] = new
    extra = said.extra
    if not whole and old.extra is not None and extra != old.extra:
        # Members that are not named stay, and digits stay as sent.
        extra = (
            old.extra if extra is None else extras({**_LITERAL.decode(old.extra), **_LITERAL.decode(extra)})
        )
    if extra != old.extra and json.loads(extra or "{}") != json.loads(old.extra or "{}"):
        changed["extra"] = extra
    return changed


def write(
    connection: sqlite3.Connection,
    session: BrewSession,
    stored: Stored,
    changed: Mapping[str, Any],
    at: int,
    *,
    known_to: str | None = None,
) -> None:
    """Write an edit of time `at` (Unix seconds); the target `known_to` has it and needs no correction."""
    original = {name: getattr(stored.reading, name) for name in changed} | dict(stored.original)
    columns = dict(changed)
    for text, unit, shown, number, _ in QUANTITIES:
        if text in changed and changed[unit] == original[unit]:
            first = original[text] if original[shown] is None else original[shown]
            if same_number(changed[text], first):  # as it was before all edits, calibration included
                columns |= {name: original.pop(name) for name in (text, unit, shown, number)}
    for name in (*TEXTS, "extra"):
        if name in changed and changed[name] == original[name]:
            del original[name]
    _update(connection, session, stored, columns, original, at, known_to)


def take_back(connection: sqlite3.Connection, session: BrewSession, stored: Stored, at: int) -> None:
    """Give the reading out again as it was before all edits."""
    _update(connection, session, stored, dict(stored.original), {}, at, None)


def rewrite_sql(columns: Collection[str]) -> str:
    """Return SQL that writes these columns of the reading at `:seq`, and the new checksum.

    A damaged reading is left as it is: a new checksum would make it look sound.
    """
    return (
        f"UPDATE readings SET {', '.join(f'{name} = :{name}' for name in columns)}, "
        f"crc = {checksum.stored_sql(checksum.content_sql(replaced=tuple(columns)), 'session_id')} "
        f"WHERE seq = :seq AND {checksum.intact_sql()}"
    )


def write_under(connection: sqlite3.Connection, seq: int, columns: Mapping[str, Any], original: str) -> None:
    """Write newly computed columns; an edited column keeps its edit, and `original` gets the new value."""
    before = json.loads(original)
    under = {name: value for name, value in columns.items() if name in before}
    over = {name: value for name, value in columns.items() if name not in before}
    over["original"] = text_of({**before, **under})
    connection.execute(rewrite_sql(over), {**over, "seq": seq})


def same_number(one: str, other: str) -> bool:
    """Return whether two texts are the same, or the same number."""
    if one == other:
        return True
    try:
        return math.isfinite(float(one)) and float(one) == float(other)
    except ValueError:
        return False


def _update(
    connection: sqlite3.Connection,
    session: BrewSession,
    stored: Stored,
    columns: Mapping[str, Any],
    original: Mapping[str, Any],
    at: int,
    known_to: str | None,
) -> None:
    where = {
        "seq": stored.seq,
        "known_to": known_to,
        "login_id": session.account_id,
        "brewevent_id": session.id,
        "recipe_id": session.recipe_id,
    }
    ((where["was"],),) = connection.execute(AS_SENT, where)
    connection.execute(OWED_TO_SOURCE if stored.mirrored else OWED, where)
    written = {**columns, "original": text_of(original) if original else None, "edited_at": at}
    connection.execute(rewrite_sql(written), {**written, "seq": stored.seq})
    connection.execute(NOT_OWED, where)


def text_of(members: Mapping[str, Any]) -> str:
    """Return columns by name as JSON."""
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))
