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

from gateway.errors import InvalidInput, StoreUnavailable, TooLarge
from gateway.formats.image import Sizing
from gateway.services import resizing
from gateway.services.resizing import ResizeProcess
from gateway.store.files import PhotoFiles
from tests.patience import PATIENCE_S

HALF = Sizing(scale=50)

Born = Callable[[], set[int]]


PHOTO, BROKEN, LOST = (f"{'0' * 35}{number}.png" for number in range(3))


@pytest.fixture
def files(tmp_path: Path) -> PhotoFiles:
    """A photo of 40 x 20, and one that was cut off."""
    file = io.BytesIO()
    Image.new("RGB", (40, 20), "teal").save(file, "PNG")
    files = PhotoFiles(tmp_path / "photos")
    files.save(PHOTO, file.getvalue())
    files.save(BROKEN, file.getvalue()[:60])
    return files


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
def process(files: PhotoFiles) -> Iterator[ResizeProcess]:
    process = ResizeProcess(files)
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
        small, mimetype = process.resized(PHOTO, HALF)
        assert (Image.open(io.BytesIO(small)).size, mimetype) == ((20, 10), "image/png")
        with pytest.raises(InvalidInput, match="broken or cut off"):
            process.resized(BROKEN, HALF)
        with pytest.raises(StoreUnavailable, match="missing"):
            process.resized(LOST, HALF)
        assert len(born()) == 1


def test_the_next_photo_gets_a_new_process_after_one_was_killed(process: ResizeProcess, born: Born) -> None:
    process.resized(PHOTO, HALF)
    (first,) = born()
    os.kill(first, signal.SIGKILL)
    until_ended(process)
    assert process.resized(PHOTO, HALF)[1] == "image/png"
    assert first not in born()


@pytest.mark.parametrize("trouble", ["killed", "too slow"])
def test_a_photo_that_costs_the_process_is_refused(
    process: ResizeProcess, born: Born, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    process.resized(PHOTO, HALF)
    (first,) = born()
    if trouble == "too slow":
        monkeypatch.setattr(resizing, "RESIZE_S", 0.01)
        os.kill(first, signal.SIGSTOP)
    else:
        os.kill(first, signal.SIGSTOP)
        threading.Timer(0.1, os.kill, (first, signal.SIGKILL)).start()
    with pytest.raises(TooLarge, match="shrink it first"):
        process.resized(PHOTO, HALF)
    monkeypatch.undo()
    assert process.resized(PHOTO, HALF)[1] == "image/png"


def test_it_ends_after_a_silence(files: PhotoFiles) -> None:
    process = ResizeProcess(files, idle_s=0.05)
    process.resized(PHOTO, HALF)
    until_ended(process)


def test_nothing_is_decoded_in_our_own_process(
    process: ResizeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a photo is decoded here")

    monkeypatch.setattr(Image, "open", never)
    assert process.resized(PHOTO, HALF)[1] == "image/png"
