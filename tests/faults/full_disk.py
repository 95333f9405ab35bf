"""D7: the disk is full because of others, because of us, or has no inodes left; again and again."""

import asyncio
import errno
import itertools
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gateway.store.sqlite.engine.quota import BALLAST
from tests.faults.cloud import Upstream
from tests.faults.devices import Fleet, post_one
from tests.faults.drain import drained, until
from tests.faults.frame import Run, Scenario, root
from tests.faults.gateways import Gateway, prepare, running
from tests.faults.ledger import Ledger
from tests.faults.readings import mark_of
from tests.faults.volumes import tmpfs

MIB = 1024 * 1024

DISK = "size=48m,nr_inodes=64"
ROOMY = "size=512m"
SMALL_QUOTA_BYTES = 16 * MIB
MORE_QUOTA_BYTES = 4 * MIB
"""By which the quota is raised when it has been reached."""

QUOTA_SLACK = 1.01
QUOTA_SLACK_BYTES = 4 * MIB
"""Own files may exceed the quota by 1 % and 4 MiB."""

FULL_S = 5.0
"""From the last byte of the disk until it says no, and nothing else."""

RESUMES_S = 10.0
BALLAST_S = 15.0
"""After there is room; until then a disk that is full once more stops forwarding, too."""

FORWARDS_S = 30.0
"""After a pause that the upstream has asked for by failing."""

REFUSALS = 4
PAUSE_S = 0.02
BIG = 60_000
"""Characters of a reading that shall fill a quota."""


async def play_d7(run: Run) -> None:
    """Three gateways on disks of their own."""
    kinds: list[Callable[[Run, Disk], Coroutine[Any, Any, None]]] = [_by_others, _without_inodes, _by_us]
    async with asyncio.TaskGroup() as lanes:
        for lane, share in enumerate(run.shares(len(kinds))):
            lanes.create_task(_lane(run, kinds[lane], share))


class Disk:
    """A gateway on a tmpfs, its devices and its upstream."""

    def __init__(self, run: Run, name: str, place: Path) -> None:
        self.place = place
        self.upstream = Upstream()
        self.ledger = Ledger(run.ledgers / name)
        self.gateway = Gateway(
            place / "data",
            self.upstream,
            weak="early" if run.mutated else "",
            key_file=run.folder / f"{name}.key",
        )
        self.numbers = itertools.count(500_000)
        self.cycles = itertools.count()
        self.key = ""

    async def post(self) -> tuple[int, str | None]:
        """One reading more: status and Retry-After."""
        return await post_one(self.gateway.http_port, "h0", mark_of("h0", next(self.numbers)), self.ledger)


async def _lane(run: Run, kind: Callable[[Run, Disk], Coroutine[Any, Any, None]], cycles: int) -> None:
    name = kind.__name__.strip("_")
    with tmpfs(run.folder / name, ROOMY if kind is _by_us else DISK) as place:
        disk = Disk(run, name, place)
        await disk.upstream.start()
        disk.key = await prepare(disk.gateway.data)
        if kind is _by_us:
            disk.gateway.options = ("--quota", str(SMALL_QUOTA_BYTES))
        try:
            async with running(disk.gateway):
                for _ in range(cycles):
                    await kind(run, disk)
                    run.count(name)
                    run.step()
                await drained(run, disk.gateway, disk.upstream, disk.ledger, where=f"{name}: ")
        finally:
            await disk.upstream.stop()
            disk.ledger.close()


async def _by_others(run: Run, disk: Disk) -> None:
    ballast = [disk.gateway.data / name for name in BALLAST]
    back = await until(lambda: all(file.exists() for file in ballast), BALLAST_S)
    run.expect(back is not None, f"no new ballast {BALLAST_S:g} s after there is room")
    disk.upstream.down = True
    ports = disk.gateway.http_port, disk.gateway.mqtt_port
    fleet = Fleet(disk.ledger, *ports, pause_s=PAUSE_S, number_from=1000 * next(disk.cycles))
    async with fleet:
        await fleet.more(20)
        with _filled(disk.place):
            await _refuses(run, disk)
            if run.mutated and run.failures:
                return
            await _goes_on(run, disk)
            yes = disk.ledger.yes
        seconds = await until(lambda: disk.ledger.yes > yes, RESUMES_S)
        if run.expect(seconds is not None, f"nothing is taken {RESUMES_S:g} s after there is room again"):
            run.highest("resumed_s", round(seconds or 0.0, 2))
    run.expect(fleet.without_wait == 0, f"{fleet.without_wait} refusals without Retry-After")


async def _without_inodes(run: Run, disk: Disk) -> None:
    """It may need new files only when it starts."""
    await disk.gateway.kill()
    with _no_inodes(disk.place):
        if not run.expect(await disk.gateway.start(), f"no start without inodes: {disk.gateway.lines[-3:]}"):
            return
        status, wait = await disk.post()
        stored = status == 200 or (status == 503 and wait is not None)
        run.expect(stored, f"without inodes: {status}, Retry-After {wait}")
        run.count("stored_without_inodes", status == 200)
        status, _ = await disk.gateway.get("/v1/fermentation/1", disk.key)
        run.expect(status == 200, f"without inodes: reading answers {status}")
    seconds = await _until_taken(disk)
    run.expect(seconds is not None, f"nothing is taken {RESUMES_S:g} s after there are inodes again")


async def _by_us(run: Run, disk: Disk) -> None:
    """Fill the quota with large readings; a larger one is what the message asks for."""
    quota = int(disk.gateway.options[1])
    disk.upstream.down = True
    while (answer := await _post_big(disk))[0] == 200:
        pass
    run.expect(answer == (503, "60"), f"quota: {answer}")
    await _goes_on(run, disk)
    own = sum(path.stat().st_blocks * 512 for path in disk.gateway.data.rglob("*") if path.is_file())
    run.highest("over_quota_MiB", round((own - quota) / MIB, 2))
    run.expect(own <= quota * QUOTA_SLACK + QUOTA_SLACK_BYTES, f"{own} bytes, the quota is {quota}")
    await disk.gateway.stop()
    disk.gateway.options = ("--quota", str(quota + MORE_QUOTA_BYTES))
    run.expect(await disk.gateway.start(), f"no start: {disk.gateway.lines[-3:]}")
    run.expect(await _until_taken(disk) is not None, "nothing is taken under a larger quota")


async def _post_big(disk: Disk) -> tuple[int, str | None]:
    """Send a large reading; few come from one neighbour, because each may take a fifth of the quota only."""
    number = next(disk.numbers)
    source = f"127.0.{number // 5 % 200 + 1}.{number % 5 + 1}"
    mark = mark_of("h0", number)
    return await post_one(disk.gateway.http_port, "h0", mark, disk.ledger, padding=BIG, source=source)


async def _until_taken(disk: Disk) -> float | None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    while (await disk.post())[0] != 200:
        if loop.time() - began > RESUMES_S:
            return None
        await asyncio.sleep(PAUSE_S)
    return loop.time() - began


async def _refuses(run: Run, disk: Disk) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    refusals = 0
    while refusals < REFUSALS:  # in a row: after the first the ballast goes, and makes room for a few more
        status, wait = await disk.post()
        refused = status == 503 and wait is not None
        run.expect(refused or status == 200, f"disk full: {status}, Retry-After {wait}")
        refusals = refusals + 1 if refused else 0
        if loop.time() - began > FULL_S:
            run.expect(False, f"the disk is full, and it says yes {FULL_S:g} s later")
            return
        await asyncio.sleep(PAUSE_S)


async def _goes_on(run: Run, disk: Disk) -> None:
    """Reads and forwarding, while nothing can be taken."""
    status, _ = await disk.gateway.get("/v1/fermentation/1", disk.key)
    run.expect(status == 200, f"disk full: reading answers {status}")
    delivered = disk.upstream.deliveries.total()
    disk.upstream.down = False
    seconds = await until(lambda: disk.upstream.deliveries.total() > delivered, FORWARDS_S)
    run.expect(seconds is not None, f"disk full: nothing is forwarded within {FORWARDS_S:g} s")


@contextmanager
def _filled(place: Path) -> Iterator[None]:
    """To the last byte, by somebody else."""
    filler = place / "somebody-elses"
    fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
    try:
        for size in (MIB, 4096, 1):
            with suppress(OSError):
                while True:
                    os.write(fd, bytes(size))
        yield
    finally:
        os.close(fd)
        filler.unlink()


@contextmanager
def _no_inodes(place: Path) -> Iterator[None]:
    made: list[Path] = []
    try:
        for number in itertools.count():
            path = place / f"somebody-elses-{number}"
            path.touch()
            made.append(path)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    try:
        yield
    finally:
        for path in made:
            path.unlink()


SCENARIOS = (
    Scenario(
        "D7",
        "disk full by others, by us, without inodes",
        unit="fill and free cycles",
        full=100,
        small=3,
        play=play_d7,
        mutation="a yes before the commit",
        mutation_n=1,
        needs=(root,),
    ),
)
