"""What really changed in the readings of brew sessions, by triggers of the tests' own."""

import sqlite3

from gateway.store.sqlite.store import SqliteStore

SCRIPT = (
    "CREATE TEMP TABLE noted (session_id)",
    "CREATE TEMP TRIGGER added AFTER INSERT ON readings BEGIN INSERT INTO noted VALUES (new.session_id); END",
    "CREATE TEMP TRIGGER gone AFTER DELETE ON readings BEGIN INSERT INTO noted VALUES (old.session_id); END",
    """CREATE TEMP TRIGGER changed AFTER UPDATE ON readings BEGIN
        INSERT INTO noted VALUES (old.session_id), (new.session_id); END""",
    """CREATE TEMP TRIGGER known AFTER UPDATE OF key, session_id, merged_into ON devices BEGIN
        INSERT INTO noted SELECT id FROM brewsessions WHERE id IN (old.session_id, new.session_id)
        AND (old.key, old.session_id, old.merged_into) IS NOT (new.key, new.session_id, new.merged_into);
        END""",
)
TAKE = "SELECT DISTINCT session_id FROM noted WHERE session_id IS NOT NULL"


async def note_changes(store: SqliteStore) -> None:
    """Note from now on which brew sessions have other readings, or readings of other devices."""
    await store._writer.run(lambda connection: [connection.execute(sql) for sql in SCRIPT] and None)


def count_noted(connection: sqlite3.Connection) -> int:
    count: int = connection.execute("SELECT count(*) FROM noted").fetchone()[0]
    return count


async def take_noted(store: SqliteStore) -> set[int]:
    """The brew sessions that were noted since the last call."""

    def work(connection: sqlite3.Connection) -> set[int]:
        found = {session_id for (session_id,) in connection.execute(TAKE)}
        connection.execute("DELETE FROM noted")
        return found

    return await store._database.writer.run(work)  # past the writer, which would count it
