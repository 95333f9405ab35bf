"""`demo`: shows the whole product, proves it, and leaves nothing behind."""

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from sample_devices.devices import KINDS

from .program import ended, launch, process, run, until

MARK = "TEST_OF_THE_DEMO"
GOOD = "Every stored reading is upstream exactly once and comes back from both."
PATIENCE_S = 90.0

NO_READING = {"ispindel-tcontrol", "emanometer-influx", "emanometer-prometheus"}
TWO_CHANNELS = {"fermentrack", "tiltbridge-http"}


def family(mark: str) -> list[int]:
    """Processes that were started with our mark, however far down."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue  # it has just ended, or is not ours
    return found


class Demo:
    """A demo under way, with a directory of its own for temporary files."""

    def __init__(self, child: Process, mark: str, temporary: Path) -> None:
        self.child = child
        self.mark = mark
        self.temporary = temporary
        self.shown = ""

    async def until_shown(self, pattern: str) -> re.Match[str]:
        """Read on until it has printed this."""
        assert self.child.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            while not (match := re.search(pattern, self.shown)):
                line = await self.child.stdout.readline()
                assert line, self.shown
                self.shown += line.decode()
        return match

    async def end(self) -> int:
        """Its exit code; everything it started is gone, and its files are."""
        finished = await ended(self.child, PATIENCE_S)
        self.shown += finished.out
        assert finished.err == ""
        await until(lambda: not family(self.mark), 2)
        assert list(self.temporary.iterdir()) == []
        return finished.status


@asynccontextmanager
async def demo(tmp_path: Path, *options: str) -> AsyncIterator[Demo]:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    mark = uuid.uuid4().hex
    env = {"TMPDIR": str(temporary), MARK: mark, "HOME": str(tmp_path), "GATEWAY_PORT": "1"}
    child = await launch("demo", "--config", os.devnull, *options, env=env, new_session=True)
    try:
        yield Demo(child, mark, temporary)
    finally:
        for number in family(mark):
            os.kill(number, signal.SIGKILL)
        if child.returncode is None:
            await child.wait()


async def test_for_five_seconds_with_every_kind_of_device_and_its_curl_line(tmp_path: Path) -> None:
    async with demo(tmp_path, "--for", "5") as shown:
        page = await shown.until_shown(r"(?m)^ +(http://\S+)/ui/login#(hg_\S+)$")
        origin = {"Origin": page[1]}
        async with (
            aiohttp.ClientSession(headers=origin) as http,
            http.post(f"{page[1]}/ui/login", data={"key": page[2]}, allow_redirects=False) as entered,
        ):
            assert (entered.status, "hg_login" in entered.cookies) == (303, True)
        line = await shown.until_shown(r"(?m)^ +(curl .*)$")
        assert len(family(shown.mark)) == 4
        if shutil.which("curl") is None:
            pytest.skip("curl is not installed")
        curl = await asyncio.create_subprocess_exec(*shlex.split(line[1]), "-sS", stdout=PIPE, stderr=PIPE)
        out, err = await curl.communicate()
        assert (curl.returncode, err) == (0, b"")
        document = json.loads(out)
        assert document["message"] == "success"
        assert 1 <= len(document["readings"]) <= 3
        assert await shown.end() == 0
    assert GOOD in shown.shown
    counts = re.search(
        r"(\d+) devices: (\d+) sent, (\d+) answered, (\d+) stored, (\d+) upstream", shown.shown
    )
    assert counts
    devices, sent, answered, stored, upstream = map(int, counts.groups())
    kinds = [kind for kind in KINDS.values() if not kind.alone]
    assert devices == len(kinds) - len(NO_READING) + len(TWO_CHANNELS)
    left_out = re.search(r"The other (\d+) are left out on purpose", shown.shown)
    assert left_out, "three kinds report more often than is kept"
    assert sent == answered == stored + int(left_out[1])
    assert stored == upstream
    assert "WRONG" not in shown.shown


@pytest.mark.parametrize(
    ("number", "to_all"), [(signal.SIGTERM, False), (signal.SIGINT, True), (signal.SIGHUP, True)]
)
async def test_a_signal_to_it_or_to_all_in_its_terminal_ends_it_in_order(
    tmp_path: Path, number: signal.Signals, to_all: bool
) -> None:
    async with demo(tmp_path) as shown:
        await shown.until_shown(r"\d+ devices: .*\n")
        if to_all:
            os.killpg(shown.child.pid, number)
        else:
            shown.child.send_signal(number)
        assert await shown.end() == 0
    assert GOOD in shown.shown


async def test_ctrl_c_while_it_starts(tmp_path: Path) -> None:
    async with demo(tmp_path) as shown:
        await until(lambda: any(shown.temporary.glob("*/upstream")))
        os.killpg(shown.child.pid, signal.SIGINT)
        assert await shown.end() == 0


async def test_data_is_kept_where_told_and_never_beside_other_data(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    async with demo(tmp_path, "--for", "1", "--data-dir", str(kept)) as shown:
        assert await shown.end() == 0
    assert (await process(kept / "gateway", "readings --json")).lines
    again = await run("demo", "--config", os.devnull, "--for", "1", "--data-dir", str(kept))
    assert (again.status, again.out) == (1, "")
    assert again.err == f"hydrometer-gateway: {kept} is not empty: the demo needs an empty directory\n"
