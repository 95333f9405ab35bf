"""The process that resizes photos: it starts when it is needed, ends by itself, and its end harms nobody."""

import io
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from gateway.errors import InvalidInput, TooLarge
from gateway.formats.image import Sizing
from gateway.services import resizing
from gateway.services.resizing import ResizeProcess
from tests.patience import PATIENCE_S

HALF = Sizing(scale=50)

Born = Callable[[], set[int]]


def photo(width: int = 40, height: int = 20) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(file, "PNG")
    return file.getvalue()


def children() -> set[int]:
    """The processes of ours that resize."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        for number in (task / "children").read_text().split():
            if b"gateway.services.resizing" in Path(f"/proc/{number}/cmdline").read_bytes():
                found.add(int(number))
    return found


def until_ended(process: ResizeProcess) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while process.is_running():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def process() -> Iterator[ResizeProcess]:
    process = ResizeProcess()
    yield process
    process.stop()
    assert not process.is_running()


@pytest.fixture
def born() -> Born:
    """Gives the processes that were not there before the test."""
    before = children()
    return lambda: children() - before


def test_one_process_serves_many_photos_and_says_no_as_before(process: ResizeProcess, born: Born) -> None:
    assert not process.is_running()
    for _ in range(2):
        small, mimetype = process.resized(photo(), HALF)
        assert (Image.open(io.BytesIO(small)).size, mimetype) == ((20, 10), "image/png")
        with pytest.raises(InvalidInput, match="broken or cut off"):
            process.resized(photo()[:60], HALF)
        assert len(born()) == 1


def test_the_next_photo_gets_a_new_process_after_one_was_killed(process: ResizeProcess, born: Born) -> None:
    process.resized(photo(), HALF)
    (first,) = born()
    os.kill(first, signal.SIGKILL)
    until_ended(process)
    assert process.resized(photo(), HALF)[1] == "image/png"
    assert first not in born()


@pytest.mark.parametrize("trouble", ["killed", "too slow"])
def test_a_photo_that_costs_the_process_is_refused(
    process: ResizeProcess, born: Born, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    process.resized(photo(), HALF)
    (first,) = born()
    if trouble == "too slow":
        monkeypatch.setattr(resizing, "RESIZE_S", 0.01)
        os.kill(first, signal.SIGSTOP)
    else:
        os.kill(first, signal.SIGSTOP)
        threading.Timer(0.1, os.kill, (first, signal.SIGKILL)).start()
    with pytest.raises(TooLarge, match="shrink it first"):
        process.resized(photo(), HALF)
    monkeypatch.undo()
    assert process.resized(photo(), HALF)[1] == "image/png"


def test_it_ends_after_a_silence() -> None:
    process = ResizeProcess(idle_s=0.05)
    process.resized(photo(), HALF)
    until_ended(process)


def test_nothing_is_decoded_in_our_own_process(
    process: ResizeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a photo is decoded here")

    data = photo()
    monkeypatch.setattr(Image, "open", never)
    assert process.resized(data, HALF)[1] == "image/png"
