"""D4: power cuts that tear and reorder sectors, around our storage's own SQL, in this process."""

import asyncio
import random
import sqlite3
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

from gateway.domain.objectid import new_object_id
from gateway.domain.reading import Reading
from gateway.store.records import Arrival
from gateway.store.sqlite import rows
from gateway.store.sqlite.engine import checksum, connections
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.engine.schema import migrate, transaction
from gateway.store.sqlite.outbox import SqliteOutbox
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import prepare
from tests.faults.readings import mark_of, texts_of

if TYPE_CHECKING:
    from tests.faults.disk import Disk

CUTS_EACH = 40
"""Cuts of one recorded life: the same writes, cut at other moments and with other damage."""

COMMITS = 24
CHECKPOINT_PAGES = 30
"""So that the life of a disk has some; the gateway has 1,024."""

KNOWN_MAX = 2000
"""Readings, after which the next life begins with an empty database: the check reads all of them."""

BATCH = 50

TARGET = "http://cloud"
STORED = f"SELECT comment, {checksum.intact_sql()} FROM readings WHERE session_id = 1"  # noqa: S608
NOW = 1_770_000_000
LOG = f"{DATABASE_NAME}-wal"


async def play_d4(run: Run) -> None:
    """Lives of a disk, each begun where a cut has left an earlier one."""
    data = run.sub("data")
    await prepare(data)
    base = data / DATABASE_NAME
    files = first = await asyncio.to_thread(_contents, base)
    known: set[str] = set()
    for life in range(0, run.n, CUTS_EACH):
        chance = random.Random(run.seed * 100_000 + life)  # noqa: S311 - no secrets
        files, known = await _life(run, base, files, known, life, min(CUTS_EACH, run.n - life), chance)
        if len(known) > KNOWN_MAX:
            files, known = first, set()


def _contents(base: Path) -> dict[str, bytes]:
    log = base.with_name(LOG)
    return {base.name: base.read_bytes(), **({LOG: log.read_bytes()} if log.exists() else {})}


async def _life(
    run: Run,
    base: Path,
    files: dict[str, bytes],
    known: set[str],
    life: int,
    cuts: int,
    chance: random.Random,
) -> tuple[dict[str, bytes], set[str]]:
    """Record one, cut it many times; what the last good cut left, and the readings in it."""
    from tests.faults.disk import Disk

    disk = Disk(files)
    connection = _open(disk, base)
    issued = await _live(disk, connection, life, chance, off=run.mutated)
    after = files, known
    for _ in range(cuts):
        moment = chance.randrange(len(disk.events) + 1)
        left = disk.after_cut(moment, chance)
        found = _look(run, base, left, known, disk.acknowledged(moment), issued)
        if found is not None:
            after = left, found
        run.step()
    connection.close()  # only now: closing would write
    return after


async def _live(
    disk: "Disk", connection: sqlite3.Connection, life: int, chance: random.Random, *, off: bool
) -> list[list[str]]:
    """Commits of groups, of batches begun and settled; what was in them, in order."""
    issued: list[list[str]] = []
    if off:
        connection.execute("PRAGMA synchronous = OFF")
    migrate(connection)
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    for number in range(COMMITS):
        size = chance.choice((1, 1, 2, 5, 16))
        marks = [mark_of("h0", (life * COMMITS + number) * 100 + place) for place in range(size)]
        issued.append(marks)
        rows.insert_rows(connection, [rows.row_of(_arrival(mark)) for mark in marks])
        disk.said(marks)
        if number % 5 == 4:
            await _forward(connection)
    return issued


class Direct:
    """What the outbox asks of a writer: each piece of work is a transaction of its own."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def run(self, work: Callable[[sqlite3.Connection], Any], **_: Any) -> Any:
        """Commit it, now."""
        with transaction(self._connection):
            return work(self._connection)


async def _forward(connection: sqlite3.Connection) -> None:
    outbox = SqliteOutbox(cast(Any, None), cast(Any, Direct(connection)))
    batch = await outbox.begin(TARGET, 1, BATCH)
    if batch is not None:
        await outbox.settle(batch)


def _look(
    run: Run,
    base: Path,
    files: dict[str, bytes],
    known: set[str],
    promised: list[list[str]],
    issued: list[list[str]],
) -> set[str] | None:
    """After the cut: whole, with all that was promised, groups entire or not at all; the marks in it."""
    from tests.faults.disk import Disk

    try:
        connection = _open(Disk(files), base)
        migrate(connection)
        said = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        rows = connection.execute(STORED).fetchall()
        connection.close()
    except Exception as error:
        said, rows = f"{type(error).__name__}: {error}", []
    run.count("corrupt", said != "ok")
    if not run.expect(said == "ok", f"corrupt: {said}"):
        return None
    there = {mark for mark, _ in rows}
    damaged = [mark for mark, sound in rows if not sound]
    due = {mark for group in promised for mark in group}
    lost = (due | known) - there
    torn = [group for group in issued if 0 < len(there.intersection(group)) < len(group)]
    run.count("looked_for", len(due))
    run.count("lost", len(lost))
    run.expect(not lost, f"lost: {sorted(lost)[:3]} of {len(due)}")
    run.expect(not damaged and not torn, f"damaged {damaged[:3]}, half groups {torn[:3]}")
    run.expect(len(there) == len(rows), "a reading is there twice")
    return there


def _open(disk: "Disk", base: Path) -> sqlite3.Connection:
    """The store's own way to open it, but on this disk; no shared memory, as there is one process.

    `base` is a file for those who look whether there is one.
    """
    import apsw

    class Bridge(apsw.Connection):
        """apsw, called as `sqlite3` is."""

        def create_function(
            self, name: str, count: int, function: Callable[..., Any], *, deterministic: bool = False
        ) -> None:
            self.create_scalar_function(name, function, count, deterministic=deterministic)

    def connect(path: Path, **_: Any) -> Any:
        connection = Bridge(path.name, vfs=disk.vfs_name)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        return connection

    with patch.object(sqlite3, "connect", connect):
        return connections.open_writer(base)


def _arrival(mark: str) -> Arrival:
    gravity, temp = texts_of(mark)
    reading = Reading(
        oid=new_object_id(NOW),
        created_at=NOW,
        received_at=NOW * 1000,
        name="h0",
        gravity=gravity,
        gravity_unit="P",
        temp=temp,
        temp_unit="C",
        comment=mark,
        beer="",
        interval="900",
        source="iSpindel",
        ip="",
        sg=1.05,
        celsius=20.0,
    )
    return Arrival(reading, "ispindel:h0", mark.encode(), "http /ingest")


def _apsw() -> str | None:
    return None if find_spec("apsw") else "apsw is not installed: pip install apsw"


SCENARIOS = (
    Scenario(
        "D4",
        "power cut that tears and reorders sectors",
        unit="cuts",
        full=10_000,
        small=400,
        play=play_d4,
        mutation="synchronous=OFF",
        mutation_n=80,
        needs=(_apsw,),
    ),
)
