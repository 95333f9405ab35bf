"""D13: backups while devices report, and a restore of the last."""

import asyncio
import shutil
import sqlite3
import sys
import tarfile
from contextlib import closing
from pathlib import Path

from gateway.store.sqlite.engine.database import DATABASE_NAME
from tests.faults.cloud import Upstream
from tests.faults.devices import Fleet
from tests.faults.drain import drained
from tests.faults.frame import Run, Scenario
from tests.faults.gateways import Gateway, prepare, running
from tests.faults.ledger import Ledger
from tests.program.program import PROJECT, environment

PAUSE_S = 0.04
"""Four devices then send about 100 readings a second."""

BETWEEN = 100
"""Yeses before each backup."""

STALL_P99_S = 0.25
JUDGED_FROM = 20
"""Backups from which on the time is judged: a busy machine has slow moments of its own."""

BACKUP_S = 60.0


async def play_d13(run: Run) -> None:
    """Every backup is whole and has all that was acknowledged before it began."""
    upstream, ledger = Upstream(), Ledger(run.ledgers / "ledger")
    await upstream.start()
    data = run.sub("data")
    await prepare(data)
    gateway = Gateway(data, upstream)
    try:
        async with running(gateway):
            async with Fleet(ledger, gateway.http_port, gateway.mqtt_port, pause_s=PAUSE_S) as fleet:
                for number in range(run.n):
                    await fleet.more(BETWEEN)
                    await _backup(run, data, ledger, run.folder / f"{number}.tar")
                    run.step()
            p99 = ledger.wait_s(0.99, BETWEEN)
            run.figure("ingest_p99_s", round(p99, 3))
            if run.n >= JUDGED_FROM:
                run.expect(p99 <= STALL_P99_S, f"ingest p99 is {p99:.3f} s")
            await drained(run, gateway, upstream, ledger)
        if not run.mutated:
            await _restore(run, run.folder / f"{run.n - 1}.tar", gateway, upstream, ledger)
    finally:
        await upstream.stop()
        ledger.close()


async def _backup(run: Run, data: Path, ledger: Ledger, target: Path) -> None:
    promised = ledger.before()
    if run.mutated:
        await asyncio.to_thread(_copy_the_file, data, target)
    else:
        status, said = await _command("backup", str(target), "--data-dir", str(data))
        if not run.expect(status == 0, f"backup: {status}: {said}"):
            return
    with_in = await asyncio.to_thread(_marks_in, target, run.folder / f"{target.name}.unpacked")
    lost = promised - with_in
    run.count("missing", len(lost))
    run.expect(not lost, f"{target.name}: {len(lost)} of {len(promised)} are not in it")


def _copy_the_file(data: Path, target: Path) -> None:
    """The way that loses what is in the log."""
    with tarfile.open(target, "w") as archive:
        archive.add(data / DATABASE_NAME, DATABASE_NAME)


def _marks_in(archive: Path, folder: Path) -> set[str]:
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    (database,) = folder.rglob("*.sqlite3")
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise AssertionError(f"{archive.name}: {found}")
        marks = {mark for (mark,) in connection.execute("SELECT comment FROM readings")}
    shutil.rmtree(folder)
    return marks


async def _restore(run: Run, archive: Path, before: Gateway, upstream: Upstream, ledger: Ledger) -> None:
    """On another machine, so to say; what the upstream has already is not sent again."""
    data = run.folder / "restored"
    status, said = await _command("restore", str(archive), "--data-dir", str(data))
    if not run.expect(status == 0, f"restore: {status}: {said}"):
        return
    # The same upstream still has all of it, the part that came after the backup, too.
    async with running(Gateway(data, upstream, key_file=run.folder / "restored.key")) as gateway:
        await drained(run, gateway, upstream, ledger, where="restored: ")


async def _command(*arguments: str) -> tuple[int | None, str]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", *arguments, "--config", "/dev/null"),
        cwd=PROJECT,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(BACKUP_S):
        said, _ = await child.communicate()
    return child.returncode, said.decode("utf-8", "replace").strip()


SCENARIOS = (
    Scenario(
        "D13",
        "backup under load at 100 readings/s, restore drill",
        unit="backups",
        full=100,
        small=2,
        play=play_d13,
        mutation="a plain copy of the file",
        mutation_n=1,
    ),
)
