"""A glance at the names in a database, without the store: somebody waits at a prompt.

Nothing is created, locked or changed. A name that was given in the last moment may be missing.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gateway.store.sqlite.engine.files import DATABASE_NAME

ALONE = """
d.forgotten_at IS NULL AND d.id = coalesce((SELECT o.id FROM devices o WHERE o.id = d.merged_into), d.id)
"""
"""A device that is not forgotten, and no part of another one, or of one that salvage has lost."""

DEVICES = f"""
SELECT d.id, d.key, d.stable_id AS device_id, d.name, d.settings FROM devices d WHERE {ALONE} ORDER BY d.id
"""  # noqa: S608  (our own words only)
SESSIONS = "SELECT id, batchcode FROM brewsessions WHERE deleted = 0 ORDER BY id"


def devices(directory: Path) -> list[dict[str, Any]]:
    """Return the members of each device by which it can be found; none if they cannot be read."""
    found = [dict(row) for row in _rows(directory, DEVICES)]
    for record in found:
        record["label"] = json.loads(record.pop("settings") or "{}").get("label", "")
    return found


def brew_sessions(directory: Path) -> list[dict[str, Any]]:
    """Return id and batch code of each brew session; none if they cannot be read."""
    return [dict(row) for row in _rows(directory, SESSIONS)]


def _rows(directory: Path, sql: str) -> list[sqlite3.Row]:
    path = directory / DATABASE_NAME
    log = path.with_name(f"{DATABASE_NAME}-wal")
    # Immutable where there is no log: else SQLite would make one, and its index, only to read.
    mode = "mode=ro" if log.exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(sql).fetchall()
    except sqlite3.Error:
        return []
