"""Attack the gateway, and judge it by two honest devices: `python -m tests.hostile [--small] [ROW ...]`.

Prints a line for each row. A row passes if every honest reading was taken in time and is stored, the memory
kept within its bound, and the log has no traceback. Everything here is the standard library's.
"""

import argparse
import asyncio
import json
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from tests.hostile.attacks import ATTACKS, Attack, run
from tests.hostile.target import Device, Target, report_by_http, report_by_mqtt, serving, stored

MB, MIB = 1_000_000, 1024 * 1024
CGROUP = Path("/sys/fs/cgroup/memory")
DESCRIPTORS = 20_000

SETTLE_S = 1.5
"""Seconds before and after an attack until the memory is measured."""

SMALL_S = 4.0
"""Seconds of an attack in CI."""


@dataclass(frozen=True, slots=True)
class Row:
    """An attack and its bounds: memory in MB above that before (None: judged by `limit_mb` alone).

    `p99_ms` bounds the time of an honest yes. `limit_mb` is the memory that the whole process may have.
    """

    name: str
    what: str
    seconds: float = 60.0
    rise_mb: float | None = 20.0
    p99_ms: float | None = 300.0
    limit_mb: int | None = None


ROWS = (
    Row("flood", "MQTT messages of 60 kB from two neighbours"),
    Row("flood-subscribed", "the same, with subscribers that do not read"),
    Row("crowd-mqtt", "2,000 connections of one source, silent and half-open, MQTT", p99_ms=None),
    Row("crowd-http", "the same, HTTP", p99_ms=None),
    Row("crowd-tcp", "the same, TCP", p99_ms=None),
    Row("filters", "100,000 filters", rise_mb=10.0, p99_ms=None),
    Row("names", "20,000 client ids with will, retain, QoS 2 left open", 180.0, rise_mb=10.0, p99_ms=None),
    Row(
        "documents", "the largest documents without a key, asked for and not read", rise_mb=30.0, p99_ms=250.0
    ),
    Row("mutants", "1,000,000 mutated packets", seconds=300.0, p99_ms=None),
    Row(
        "inventions",
        "10,000 invented names, 100,000 pieces of garbage",
        seconds=600.0,
        rise_mb=None,
        p99_ms=None,
    ),
    Row("everything", "all of it at once in 160 MB", rise_mb=None, p99_ms=None, limit_mb=160),
)


@contextmanager
def limited(limit_mb: int | None) -> Iterator[list[str]]:
    """Give the command that runs a process within so much memory; without a limit, no command."""
    if limit_mb is None or not can_limit():
        yield []
        return
    group = CGROUP / f"hostile-{time.monotonic_ns()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit_mb * MIB))
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        with suppress(OSError):
            group.rmdir()


def can_limit() -> bool:
    """Whether memory can be limited here: the first version of cgroups, writable."""
    return (CGROUP / "cgroup.procs").exists() and (CGROUP / "memory.limit_in_bytes").exists()


async def trial(row: Row, size: float, seconds: float) -> tuple[bool, str]:
    """Run a row; return whether it passed, and its figures in words."""
    with tempfile.TemporaryDirectory() as folder, limited(row.limit_mb) as prefix:
        devices = [Device("honest-http"), Device("honest-mqtt")]
        async with serving(Path(folder, "data"), prefix=prefix) as target:
            reporting = [
                asyncio.create_task(report(target, device))
                for report, device in zip((report_by_http, report_by_mqtt), devices, strict=True)
            ]
            while not all(device.taken for device in devices):
                await asyncio.sleep(0.1)
                if any(device.troubles for device in devices):
                    return False, f"no honest reading is taken before the attack: {devices}"
            await asyncio.sleep(SETTLE_S)
            for device in devices:
                device.took_s.clear()
            before, target.peak = target.memory(), 0
            attack = Attack(dict(target.ports), seconds, size)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                attack = await asyncio.get_running_loop().run_in_executor(pool, run, row.name, attack)
            peak = target.peak
            await asyncio.sleep(SETTLE_S)
            for task in reporting:
                task.cancel()
            await asyncio.gather(*reporting, return_exceptions=True)
            after, alive = target.memory(), target.is_alive
        return _judged(row, target, devices, attack, (before, peak, after, alive))


def _judged(
    row: Row, target: Target, devices: Sequence[Device], attack: Attack, seen: tuple[int, int, int, bool]
) -> tuple[bool, str]:
    before, peak, after, alive = seen
    faults = [] if alive else ["the daemon ended"]
    words = []
    for device in devices:
        kept = stored(target.data, device.name)
        p99_ms = device.percentile(0.99) * 1000
        words.append(f"{device.name} {len(device.taken)}/{device.sent} p99 {p99_ms:.0f} ms")
        # The last one may be cut off by the end of the trial.
        if len(device.taken) < device.sent - 1 or device.troubles:
            faults.append(f"{device.name}: {len(device.troubles)} refused, {device.troubles[:2]}")
        if kept < len(device.taken):
            faults.append(f"{device.name}: {len(device.taken) - kept} acknowledged readings are lost")
        if row.p99_ms is not None and p99_ms > row.p99_ms:
            faults.append(f"{device.name}: p99 over {row.p99_ms:.0f} ms")
    rise = (max(peak, after) - before) / MB
    if row.limit_mb is not None:
        words.append("memory is limited" if can_limit() else "memory cannot be limited here, only measured")
        if peak > row.limit_mb * MIB:
            faults.append(f"more memory than {row.limit_mb} MiB")
    words.append(f"memory {before / MB:.0f} MB, {rise:+.1f} at most, {(after - before) / MB:+.1f} after")
    if row.rise_mb is not None and rise > row.rise_mb:
        faults.append(f"memory rose by more than {row.rise_mb} MB")
    if lost := _lost(target.data, [name for name, _ in attack.ledger]):
        faults.append(f"{len(lost)} of {len(attack.ledger)} answered 200 are nowhere, such as {lost[0]}")
    if number := target.tracebacks():
        faults.append(f"{number} tracebacks")
    words += [f"{count} {deed}" for deed, count in sorted(attack.deeds.items())]
    words.append(f"{len(target.lines)} lines of log")
    return not faults, "; ".join([*words, *(f"FAULT {fault}" for fault in faults)])


def _lost(data: Path, names: list[str]) -> list[str]:
    """The names whose reading was answered 200, and is neither a reading nor in quarantine."""
    if not names:
        return []
    with sqlite3.connect(data / "gateway.sqlite3") as connection:
        found = {name for (name,) in connection.execute("SELECT DISTINCT name FROM readings")}
        for (body,) in connection.execute("SELECT body FROM quarantine WHERE substr(body, 1, 1) = x'7B'"):
            with suppress(ValueError):
                found.add(json.loads(body).get("name"))
    return [name for name in names if name not in found]


def main() -> int:
    """Run the rows that are named, all without names; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(row.name for row in ROWS)}")
    parser.add_argument("--small", action="store_true", help="some seconds each, as in CI")
    parser.add_argument("--seconds", type=float, help="seconds of each attack")
    wanted = parser.parse_args()
    unknown = set(wanted.rows) - {row.name for row in ROWS}
    if unknown:
        parser.error(f"there is no row {', '.join(sorted(unknown))}")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    failed = 0
    for row in ROWS:
        if wanted.rows and row.name not in wanted.rows:
            continue
        if wanted.small:  # where other work shares the machine, its pace says nothing
            row = replace(row, p99_ms=None)
        size = 0.02 if wanted.small else 1.0
        seconds = wanted.seconds or (SMALL_S if wanted.small else row.seconds)
        passed, words = asyncio.run(trial(row, size, seconds))
        failed += not passed
        print(f"{row.name:17} {'pass' if passed else 'FAIL'}  {row.what}: {words}", flush=True)
    return 1 if failed else 0


assert {row.name for row in ROWS} - {"everything"} == set(ATTACKS)

if __name__ == "__main__":
    sys.exit(main())
