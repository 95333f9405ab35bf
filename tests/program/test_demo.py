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
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pyte
import pytest

from gateway.cli.demo_state import NAMED
from sample_devices.devices import KINDS

from .program import ended, launch, process, run, until
from .terminal import ROWS, at_terminal

MARK = "TEST_OF_THE_DEMO"
GOOD = "Every stored reading is upstream exactly once and comes back from both."
STARTS = "Starting two gateways and simulated hydrometers of every kind ..."
PATIENCE_S = 90.0
WIDE = 100
"""Columns of a terminal in which every event that is waited for has one line."""

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


async def test_every_kind_of_device_the_page_without_a_key_and_the_curl_line(tmp_path: Path) -> None:
    async with demo(tmp_path, "--for", "15") as shown:
        page = await shown.until_shown(r"(?m)^ +(http://\S+)/ui/login#(hg_\S+)$")
        origin = {"Origin": page[1]}
        async with aiohttp.ClientSession(headers=origin) as http:
            async with http.get(f"{page[1]}/ui/") as brews:
                text = await brews.text()
                assert brews.status == 200
            for named in NAMED:
                assert named.beer in text
            assert "DEMO0" not in text, "the page shows the twelve named brews"
            login, form = f"{page[1]}/ui/login", {"key": page[2]}
            async with http.post(login, data=form, allow_redirects=False) as entered:
                assert (entered.status, "hg_login" in entered.cookies) == (303, True)
        line = await shown.until_shown(r"(?m)^ +(curl .*)$")
        await shown.until_shown(r"all 12 report")
        assert len(family(shown.mark)) == 5, "itself, two gateways, two fleets"
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
    assert sent == answered == stored == upstream
    assert "WRONG" not in shown.shown


async def test_the_network_goes_and_every_reading_that_waited_arrives_once(tmp_path: Path) -> None:
    """At a real terminal, with keys: rows stay where they are, and what is said is true."""
    typed = [("all 12 report", "j"), ("Helles in Fermenter 2", "k"), ("arrived once", "q")]
    status, out = await at_terminal(tmp_path / "data", "demo", columns=WIDE, typed=typed)
    assert status == 0, out
    assert GOOD in out
    frames = list(seen(out))
    for number, named in enumerate(NAMED):
        lines = {i for frame in frames for i, line in enumerate(frame) if line[2:22] == f"{named.name:20.20}"}
        assert lines == {number + 2}, named.name
    text = ["\n".join(frame) for frame in frames]
    assert any("network gone" in frame[0] and "network is cut" in "\n".join(frame) for frame in frames)
    waited = re.search(r"network gone for 12\s+s:\s+(\d+)\s+readings wait", flat(text[-1]))
    arrived = re.search(r"back: all (\d+)\s+arrived once", flat(text[-1]))
    assert waited, text[-1]
    assert arrived, text[-1]
    assert waited[1] == arrived[1]
    assert int(waited[1]) > 0
    assert text[-1].splitlines()[0].endswith("network up")


def flat(frame: str) -> str:
    """The events of a frame, without the line breaks in them."""
    return " ".join(line[WIDE * 3 // 5 + 8 :].strip() for line in frame.splitlines())


def seen(out: str) -> Iterator[list[str]]:
    """What the terminal showed after each redrawing of the live screen."""
    terminal = pyte.Screen(WIDE, ROWS)
    terminal.set_mode(pyte.modes.LNM)
    stream = pyte.Stream(terminal)
    live, _, _ = out.partition("\x1b[?1049l")
    for piece in live.split("\x1b[H")[1:]:
        stream.feed(f"\x1b[H{piece}")
        if terminal.display[-1].startswith("↑ ↓"):
            yield [line.rstrip() for line in terminal.display]


async def test_59_columns_get_a_plain_list(tmp_path: Path) -> None:
    status, out = await at_terminal(tmp_path / "data", "demo", "--for", "3", columns=59)
    assert (status, GOOD in flat_words(out)) == (0, True)
    assert "\x1b[?1049h" not in out, "no screen of its own"
    assert "first reading: Fermenter 1, iSpindel" in out


def flat_words(text: str) -> str:
    """A text without the breaks of its lines and without colours."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", text).split())


async def test_a_reading_that_the_gateway_does_not_have_is_found(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    odd = tmp_path / "odd.json"
    reading = {"gravity": "1.020", "gravity_unit": "G", "created_at": "2026-01-02T03:04:05Z"}
    odd.write_text(json.dumps([reading]))
    async with demo(tmp_path, "--for", "8", "--data-dir", str(kept)) as shown:
        await shown.until_shown(r"first reading")
        added = await process(kept / "upstream", f"readings import Helles {odd}")
        assert added.out.strip() == "1"
        assert await shown.end() == 3
    assert "WRONG: ispindel Fermenter 2, iSpindel: 1 readings upstream" in shown.shown
    assert GOOD not in shown.shown


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
        assert await shown.end() == 128 + signal.SIGINT


async def test_a_second_ctrl_c_does_not_wait_for_the_verdict(tmp_path: Path) -> None:
    async with demo(tmp_path) as shown:
        await shown.until_shown(r"\d+ devices: .*\n")
        os.killpg(shown.child.pid, signal.SIGINT)
        await shown.until_shown("The devices have stopped")
        os.killpg(shown.child.pid, signal.SIGINT)
        assert await shown.end() == 128 + signal.SIGINT
    assert GOOD not in shown.shown


async def test_data_is_kept_where_told_and_never_beside_other_data(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    async with demo(tmp_path, "--for", "1", "--data-dir", str(kept)) as shown:
        assert await shown.end() == 0
    assert (await process(kept / "gateway", "readings --json")).lines
    again = await run("demo", "--config", os.devnull, "--for", "1", "--data-dir", str(kept))
    assert (again.status, again.out) == (1, f"{STARTS}\n")
    assert again.err == f"hydrometer-gateway: {kept} is not empty: the demo needs an empty directory\n"
