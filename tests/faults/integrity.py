"""Whether a database is whole, without touching it: on a copy, as what looks may also recover."""

import shutil
import sqlite3
import tempfile
from pathlib import Path


def integrity_of(database: Path, beside: Path) -> str:
    """What `PRAGMA integrity_check` says of a copy with its log; `ok` where all is well. Blocks."""
    with tempfile.TemporaryDirectory(dir=beside) as folder:
        for suffix in ("", "-wal"):
            source = database.with_name(database.name + suffix)
            if source.exists():
                shutil.copyfile(source, Path(folder) / source.name)
        try:
            connection = sqlite3.connect(Path(folder) / database.name)
            try:
                return "; ".join(row[0] for row in connection.execute("PRAGMA integrity_check(3)"))
            finally:
                connection.close()
        except sqlite3.Error as error:
            return str(error)
