"""Edits of stored readings: what an import or a mirror says anew goes over what was, and can be taken back.

The row keeps its device, its raw bytes, its arrival and its place in the queue. The columns hold what is
given out; `original` keeps those that were edited as they were before, and `edited_at` says when. A target
that has the reading as it was before is owed a correction: the outbox sends it under the same `_id` where the
target keeps ids, and never a second time where it makes its own.
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
"""Columns of a measurement: text, unit, text as calibrated, number; what makes the number of these."""

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
"""What was edited back is there as it is here. One that may be under way is read back first instead."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A reading in the table: its place in the queue, its brew session, and what it was before edits.

    `reading` is what the columns hold. `intact` says whether it has the checksum that it was stored with.
    """

    seq: int
    session_id: int | None
    device_id: int | None
    mirrored: bool
    intact: bool
    reading: Reading
    original: Mapping[str, Any] = field(default_factory=dict)


def find(connection: sqlite3.Connection, oid: bytes) -> Stored | None:
    """The reading with this id, wherever it is."""
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
    """Columns that the reading says differently from what is given out; members that are `unsaid` stay.

    Extra members that it does not name stay, too, unless it is the `whole` reading. Numbers are compared as
    numbers: 1.05 says the same as 1.050, and the text that a device sent stays (of a whole reading that came
    from no device the text counts). What the device sent says the same as what a calibration made of it: an
    export may be older than the calibration.
    """
    old = stored.reading
    alike = str.__eq__ if whole and stored.device_id is None else same_number
    changed: dict[str, Any] = {}
    for text, unit, shown, number, numeral in QUANTITIES:
        sent = getattr(old, text)
        given_out = sent if getattr(old, shown) is None else getattr(old, shown)
        new_text = given_out if text in unsaid else getattr(said, text)
        new_unit = getattr(old if unit in unsaid else said, unit)
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
    """Write an edit made at that time (Unix seconds); `known_to` is the target that it came from, if one."""
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
    """SQL that writes these columns of the reading at `:seq`, and the checksum that follows.

    A damaged reading is left as it is: a new checksum would make it look sound.
    """
    return (
        f"UPDATE readings SET {', '.join(f'{name} = :{name}' for name in columns)}, "
        f"crc = {checksum.stored_sql(checksum.content_sql(replaced=tuple(columns)), 'session_id')} "
        f"WHERE seq = :seq AND {checksum.intact_sql()}"
    )


def write_under(connection: sqlite3.Connection, seq: int, columns: Mapping[str, Any], original: str) -> None:
    """Write columns as they are understood anew; where they were edited, the edit stays on top of them."""
    before = json.loads(original)
    under = {name: value for name, value in columns.items() if name in before}
    over = {name: value for name, value in columns.items() if name not in before}
    over["original"] = text_of({**before, **under})
    connection.execute(rewrite_sql(over), {**over, "seq": seq})


def same_number(one: str, other: str) -> bool:
    """Whether two texts are the same, or the same number."""
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
    """Columns by name as JSON."""
    return json.dumps(members, ensure_ascii=False, separators=(",", ":"))
