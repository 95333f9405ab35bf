"""Move readings with a wrong checksum to quarantine: they are never forwarded."""

import base64
import json
import logging
import sqlite3
from collections.abc import Sequence
from typing import Any

from gateway.domain.quarantined import Quarantined
from gateway.store.sqlite.engine import checksum
from gateway.store.sqlite.engine.codes import is_damage
from gateway.store.sqlite.quarantine import keep_own

log = logging.getLogger(__name__)

CHANNEL = "damaged"
"""The channel of damaged readings in quarantine; no driver understands them, so no replay takes them."""

REASON = "its checksum is wrong: the file was damaged after it was stored"

COLUMNS = ("oid", "device_id", "session_id", *checksum.MEMBERS, "raw")
ROW = f"SELECT {', '.join(f'CAST({name} AS BLOB)' for name in COLUMNS)} FROM readings WHERE seq = ?"
IS_KEPT = "SELECT 1 FROM quarantine WHERE channel = ? AND label = ? LIMIT 1"
DELETE = "DELETE FROM readings WHERE seq = ?"
GIVE_UP = "UPDATE readings SET crc = NULL WHERE seq = ?"
COUNT = "UPDATE counters SET value = value + ? WHERE name = 'damaged'"


def quarantine_rows(connection: sqlite3.Connection, seqs: Sequence[int]) -> int:
    """Move readings to quarantine, in the open transaction; return how many were not there yet."""
    fresh = 0
    for seq in seqs:
        row = connection.execute(ROW, (seq,)).fetchone()
        if row is None:
            continue
        fresh += quarantine_row(connection, seq, dict(zip(COLUMNS, row, strict=True)))
        connection.execute("SAVEPOINT removal")
        try:
            connection.execute(DELETE, (seq,))
        except sqlite3.DatabaseError as error:
            connection.execute("ROLLBACK TO removal")
            if not is_damage(error):
                raise
            connection.execute(GIVE_UP, (seq,))  # a flipped bit in a key: its index entry is not found
        connection.execute("RELEASE removal")
    if fresh:
        log.warning(
            "store: %d readings are damaged and in quarantine, the first was number %d", fresh, seqs[0]
        )
    return fresh


def quarantine_row(connection: sqlite3.Connection, seq: int, values: dict[str, Any]) -> bool:
    """Quarantine the values of a damaged reading and count it, once; return whether it is new there."""
    label = f"reading {seq}"
    if connection.execute(IS_KEPT, (CHANNEL, label)).fetchone() is not None:
        return False
    shown = {name: _text(value) for name, value in values.items() if name != "raw"}
    raw = values.get("raw")
    shown["raw_base64"] = base64.b64encode(raw).decode() if isinstance(raw, bytes) else None
    received = (shown.get("received_at") or "").lstrip("-")
    keep_own(
        connection,
        Quarantined(
            body=json.dumps({"damaged_reading": {"seq": seq, **shown}}).encode(),
            reason=REASON,
            received_at=int(received) if received.isdecimal() and len(received) < 16 else 0,
            channel=CHANNEL,
            source=f"brew session {shown.get('session_id')}",
            label=label,
        ),
    )
    connection.execute(COUNT, (1,))
    return True


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    return None if value is None else str(value)
