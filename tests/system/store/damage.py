"""A small brewery in a database file, ways to damage it, and what must hold afterwards."""

import json
import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.domain.delivery import Batch
from gateway.domain.device import Device
from gateway.store.sqlite.engine.connections import PAGE_BYTES
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from tests.system.store.conftest import SECOND, arrival, new_session, report

READINGS = 400
TARGET = "http://cloud"
UPSTREAM_ID = 4101

Damage = Callable[[Path, random.Random], None]


async def fill(directory: Path, *, keep_log: bool = False) -> None:
    """Two devices, one in a forwarded session, half of its readings settled; the log stays where asked."""
    store = SqliteStore(directory)
    await store.open()
    await store.keys.owner(SECOND)
    session = await new_session(store, upstream_id=UPSTREAM_ID)
    for stable_id in ("1", "2"):
        await store.devices.save(device_of(stable_id))
    await store.devices.assign(1, session.id, None)
    for first in range(0, READINGS, 50):
        await store.readings.add(
            [
                arrival(
                    f"n{first + n}", device=f"ispindel:{1 + n % 2}", at=SECOND + first + n, raw=raw(first + n)
                )
                for n in range(50)
            ]
        )
    batch = await store.outbox.begin(TARGET, session.id, READINGS // 4)
    assert batch is not None
    await store.outbox.settle(batch)
    if keep_log:
        shutil.copy(directory / f"{DATABASE_NAME}-wal", directory / "kept-wal")
        shutil.copy(directory / DATABASE_NAME, directory / "kept")
    await store.close()
    if keep_log:
        (directory / "kept-wal").rename(directory / f"{DATABASE_NAME}-wal")
        (directory / "kept").rename(directory / DATABASE_NAME)


def device_of(stable_id: str) -> Device:
    return Device.first_seen(report(stable_id, f"S{stable_id}"), SECOND)


def raw(number: int) -> bytes:
    return json.dumps({"name": f"n{number}", "angle": 25.0 + number / 1000}).encode()


@asynccontextmanager
async def repaired(directory: Path) -> AsyncIterator[SqliteStore]:
    """The store as a gateway opens it."""
    store = SqliteStore(directory, repair=True)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def accepts(store: SqliteStore) -> None:
    """A new reading of a device that may have to register again is stored."""
    await store.keys.owner(SECOND)
    before = await store.readings.count()
    await store.devices.save(device_of("1"))
    await store.readings.add([arrival("fresh", device="ispindel:1", at=SECOND + 10 * READINGS)])
    assert await store.readings.count() == before + 1


async def sent(store: SqliteStore) -> list[dict[str, str]]:
    """What a forwarder would send, until nothing waits."""
    found: list[dict[str, str]] = []
    for session in await store.sessions.all():
        while (batch := await _next(store, session.id)) is not None:
            found += [json.loads(row) for row in batch.rows]
            await store.outbox.settle(batch)
    return found


async def _next(store: SqliteStore, session_id: int) -> Batch | None:
    return await store.outbox.begin(TARGET, session_id, 100)


def is_as_sent(reading: dict[str, str]) -> bool:
    """Whether a forwarded reading says what `fill` or `accepts` had stored."""
    name = reading["name"]
    number = 10 * READINGS if name == "fresh" else int(name[1:])
    return (
        reading["gravity"] == "1.0410"
        and reading["temp"] == "66.5"
        and reading["beer"] == "Porter"
        and reading["interval"] == "46085.5"
        and reading["created_at"].startswith(("2026-03-04T",))
        and 0 <= number <= 10 * READINGS
    )


def chance(seed: str) -> random.Random:
    """The same damage every time."""
    return random.Random(seed)  # noqa: S311


def flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def wipe(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = rng.randrange(len(data) // PAGE_BYTES) * PAGE_BYTES
    data[start : start + PAGE_BYTES] = bytes(PAGE_BYTES)
    path.write_bytes(data)


def scribble(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = rng.randrange(len(data) - PAGE_BYTES)
    data[start : start + PAGE_BYTES] = rng.randbytes(PAGE_BYTES)
    path.write_bytes(data)


def cut(path: Path, rng: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))])


def leaf_of_readings(path: Path) -> int:
    """The number of a leaf in the middle of the readings' tree."""
    connection = sqlite3.connect(path)
    pages = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = 'readings' AND pagetype = 'leaf' ORDER BY path"
    ).fetchall()
    connection.close()
    number: int = pages[len(pages) // 2][0]
    return number
