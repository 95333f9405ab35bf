"""`python -m tests.faults.cycle DATA LEDGER FIRST COUNT`: all that the store ever writes, as a process.

Migrate, take readings, forward and settle, checkpoint, prune, close. It notes what it was told: `yes` after a
commit, `sent` when a batch is at the upstream, which is this ledger. With a count of 0 it opens and closes.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.intake.intake import Intake
from gateway.services.build import build_services
from gateway.store.sqlite.store import SqliteStore
from tests.faults.fixtures import TARGET
from tests.faults.launcher import weaken
from tests.faults.readings import body_of, mark_of

BATCH = 5
PRUNED_AT_ONCE = 7
CHECKPOINT = "PRAGMA wal_checkpoint(TRUNCATE)"


def lines_of(ledger: Path) -> list[tuple[str, str]]:
    """Its lines as pairs of word and mark."""
    text = ledger.read_text("ascii") if ledger.exists() else ""
    return [(word, mark) for word, _, mark in (line.partition(" ") for line in text.splitlines())]


async def _cycle(data: Path, ledger: Path, first: int, count: int) -> None:
    fd = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    store = SqliteStore(data)
    services = build_services(store, data, SystemClock())
    await store.open()
    try:
        await services.access.start(first_key="first")
        if count:
            await services.intake.start()
            marks = [mark_of("h0", number) for number in range(first, first + count)]
            await _take(services.intake, marks, _note(fd))
            await _forward(store, {mark for word, mark in lines_of(ledger) if word == "sent"}, _note(fd))
            await store._database.writer.run(lambda c: c.execute(CHECKPOINT).fetchall())
            await _prune(store)
    finally:
        await store.close()


def _note(fd: int) -> Callable[[str, str], None]:
    def note(word: str, mark: str) -> None:
        os.write(fd, f"{word} {mark}\n".encode())

    return note


async def _take(intake: Intake, marks: list[str], note: Callable[[str, str], None]) -> None:
    for mark in marks:
        await intake.take(Payload(body_of(mark, "h0"), time.time(), "http /ingest"))
        note("yes", mark)


async def _forward(store: SqliteStore, sent: set[str], note: Callable[[str, str], None]) -> None:
    """As the forwarder: what may have been sent before is looked up first."""
    while (batch := await store.outbox.begin(TARGET, 1, BATCH)) is not None:
        for mark in (json.loads(row)["comment"] for row in batch.rows):
            if not (batch.unsettled and mark in sent):
                note("sent", mark)
        await store.outbox.settle(batch)


async def _prune(store: SqliteStore) -> None:
    before = int(time.time()) - 86_400
    for session in await store.upkeep.finished(before):
        while (await store.upkeep.prune(session, before, PRUNED_AT_ONCE))[0]:
            pass


if __name__ == "__main__":
    weaken()
    asyncio.run(_cycle(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
