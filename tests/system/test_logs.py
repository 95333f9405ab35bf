"""The log: clean lines, few of them, and nothing left out that is not counted."""

import asyncio
import errno
import gc
import io
import logging
import os
import re
import time
from collections.abc import Iterator
from functools import partial

import pytest

from gateway import logs
from gateway.logs import (
    FIRST_LINES,
    KINDS,
    KINDS_REPORTED,
    LINE_CHARACTERS,
    LINES,
    LimitedHandler,
    loop_trouble,
)
from tests.patience import PATIENCE_S


class Log:
    """A logger of its own with our handler, and a minute that ends when we say so."""

    def __init__(self, minute_s: float = 60.0) -> None:
        self.now = 0.0
        self.text = io.StringIO()
        self.handler = LimitedHandler(self.text, monotonic=lambda: self.now, minute_s=minute_s)
        self.logger = logging.getLogger("gateway-test-logs")
        self.logger.setLevel(logging.INFO)
        self.logger.propagate = False
        self.logger.handlers = [self.handler]

    def lines(self) -> list[str]:
        """What was written since the last look."""
        lines = self.text.getvalue().splitlines()
        self.text.seek(0)
        self.text.truncate()
        return lines

    def minute(self) -> list[str]:
        """What is told at the end of a minute."""
        self.now += 60
        self.handler.report_left_out()
        return self.lines()


@pytest.fixture
def log() -> Iterator[Log]:
    log = Log()
    yield log
    log.handler.close()


def test_a_line_is_level_and_message(log: Log) -> None:
    log.logger.warning("%s and %d", "a", 1)
    assert log.lines() == ["WARNING a and 1"]


def test_lines_of_one_kind_are_few_and_the_others_are_counted(log: Log) -> None:
    for number in range(1000):
        log.logger.warning("number %d", number)
    log.logger.warning("something else")
    assert log.lines() == [*(f"WARNING number {n}" for n in range(FIRST_LINES)), "WARNING something else"]
    assert log.minute() == [f"WARNING {1000 - FIRST_LINES} more like this: number 999"]
    assert log.handler.left_out == 1000 - FIRST_LINES


def test_what_goes_on_and_on_is_one_line_a_minute_until_it_stops(log: Log) -> None:
    for minute in range(3):
        for _ in range(50):
            log.logger.warning("again")
        expected = [] if minute else ["WARNING again"] * FIRST_LINES
        assert log.lines() == expected
        assert log.minute() == [f"WARNING {50 - len(expected)} more like this: again"]
    assert log.minute() == []
    log.logger.warning("again")
    assert log.lines() == ["WARNING again"]


def test_all_kinds_together_are_bounded_and_every_line_is_counted(log: Log) -> None:
    pattern = re.compile(r"\w+ (\d+) more l")
    total = 0
    for _ in range(3):
        for kind in range(2 * KINDS):
            log.logger.info(f"kind {kind} is new")  # noqa: G004 - libraries do so
            total += 1
        written = log.lines()
        told = log.minute()
        assert len(written) + len(told) <= LINES
        assert len(log.handler._kinds) <= KINDS
        shown = len(written) - sum("more like this" in line for line in written)
        left_out = sum(int(found[1]) for line in told if (found := pattern.match(line)))
        assert shown + left_out == 2 * KINDS
        assert len(told) == KINDS_REPORTED + 1
        log.minute()
    assert log.handler.left_out == total - 3 * (LINES - KINDS_REPORTED - 1)


def test_what_is_left_out_is_told_where_nothing_else_happens() -> None:
    log = Log(minute_s=0.05)
    log.handler._monotonic = time.monotonic
    for _ in range(FIRST_LINES + 1):
        log.logger.warning("quick")
    deadline = time.monotonic() + 10
    while "1 more like this: quick" not in log.text.getvalue():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    log.handler.close()


def test_what_is_left_out_is_told_at_the_end(log: Log) -> None:
    for _ in range(FIRST_LINES + 2):
        log.logger.warning("quick")
    log.handler.close()
    assert log.lines()[-1] == "WARNING 2 more like this: quick"


@pytest.mark.parametrize(
    ("evil", "shown"),
    [
        ("a\nERROR forged", r"a\nERROR forged"),
        ("a\r\x1b[31mred\x07", r"a\r\x1b[31mred\x07"),
        ("\u202eright to left\u2066", r"\u202eright to left\u2066"),
        ("\u2028\x85\x9b", r"\u2028\x85\x9b"),
        ("\udcff\0", r"\udcff\x00"),
        ("Kölsch 日本 🍺", "Kölsch 日本 🍺"),
    ],
)
def test_a_line_has_no_control_characters(log: Log, evil: str, shown: str) -> None:
    log.logger.warning("from %s", evil)
    assert log.lines() == [f"WARNING from {shown}"]
    for _ in range(FIRST_LINES):
        log.logger.warning("from %s", evil)
    log.lines()
    assert log.minute() == [f"WARNING 1 more like this: from {shown}"]


def test_a_line_has_an_end(log: Log) -> None:
    log.logger.warning("x" * 1_000_000)
    [line] = log.lines()
    assert len(line) < LINE_CHARACTERS + 10


def test_a_mistake_of_ours_has_its_traceback_and_no_line_of_it_passes_for_a_message(log: Log) -> None:
    def fail(depth: int) -> None:
        if depth:
            fail(depth - 1)
        raise ValueError("evil\nERROR forged\x1b[31m")

    for depth in (0, 80):
        try:
            fail(depth)
        except ValueError:
            log.logger.exception("it failed")
        first, *rest = log.lines()
        assert first == "ERROR it failed"
        assert any("ValueError: evil" in line for line in rest)
        assert all(line.startswith("  ") and "\x1b" not in line for line in rest)
        assert len(rest) <= logs.FIRST_OF_TRACEBACK + logs.LAST_OF_TRACEBACK + 1


@pytest.mark.parametrize(
    "error", [ConnectionResetError("gone"), BrokenPipeError(), asyncio.IncompleteReadError(b"", 1)]
)
def test_somebody_who_hangs_up_is_no_traceback(log: Log, error: Exception) -> None:
    log.logger.error("Error handling %s", "request", exc_info=error)
    assert log.lines() == [f"ERROR Error handling request: {type(error).__name__}"]


def test_a_stream_that_is_gone_is_no_trouble(log: Log) -> None:
    log.text.close()
    log.logger.warning("nobody reads this")
    assert log.handler.left_out == 1


async def test_no_more_descriptors_are_a_line_and_not_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    caplog.set_level(logging.INFO)
    loop_trouble(loop, {"message": "x", "exception": OSError(errno.EMFILE, os.strerror(errno.EMFILE))})
    loop_trouble(loop, {"message": "x", "exception": ConnectionResetError()})
    assert caplog.messages == ["a connection could not be taken: Too many open files"]
    assert caplog.records[0].exc_info is None


async def test_an_error_that_nobody_handled_is_one_sentence_and_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counted: list[int] = []
    loop, heard = asyncio.get_running_loop(), asyncio.Event()

    def count() -> None:
        counted.append(1)
        heard.set()

    async def fail() -> None:
        float("no number")

    loop.set_exception_handler(partial(loop_trouble, count=count))
    lost = asyncio.create_task(fail(), name="part")
    await asyncio.wait([lost])
    del lost
    gc.collect()
    async with asyncio.timeout(PATIENCE_S):
        await heard.wait()
    heard.clear()
    loop.call_soon(int, "x")
    async with asyncio.timeout(PATIENCE_S):
        await heard.wait()
    lost_task, callback = caplog.messages
    assert lost_task.startswith("part failed, and no part of the program handled it: ValueError: could not")
    assert re.search(r" \(test_logs\.py line \d+\)$", lost_task)
    assert callback.startswith("a callback failed, and no part of the program handled it: ValueError: ")
    assert [record.exc_info for record in caplog.records] == [None, None]
    assert len(counted) == 2


def test_setting_up_keeps_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.RootLogger(logging.WARNING)
    monkeypatch.setattr(logging, "root", root)
    monkeypatch.setattr(logging, "getLogger", lambda *_: root)
    logs.set_up("debug")
    assert (root.level, [type(h) for h in root.handlers]) == (logging.DEBUG, [LimitedHandler])
    assert logs.left_out() == 0
