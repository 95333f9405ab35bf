"""A process of its own that resizes photos: the memory of decoded pictures goes when the process ends.

Python gives hardly any of that memory back: six photos of 24 million pixels keep 147 MB. The process starts
with the first photo and ends after a silence. A photo that breaks the process costs nobody else anything.
"""

import os
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gateway import children
from gateway.errors import GatewayError, StoreUnavailable, TooLarge
from gateway.formats.image import Sizing, resized
from gateway.store.files import PhotoFiles

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

IDLE_S = 60.0
"""Seconds after the last photo at which the process ends."""

RESIZE_S = 30.0
"""Seconds that one photo may take: many times what the largest takes on a Raspberry Pi."""

Order = tuple[Path, str, Sizing]
"""What the process gets: a directory, the name of a file in it, and the size. It reads the file itself."""


class ResizeProcess:
    """The process, which is there only while somebody looks at photos of `files`. All methods block."""

    def __init__(self, files: PhotoFiles, idle_s: float = IDLE_S) -> None:
        self._files = files
        self._idle_s = idle_s
        self._turn = threading.Lock()
        self._worker: _Worker | None = None
        self._timer: threading.Timer | None = None

    def resized(self, name: str, sizing: Sizing) -> tuple[bytes, str]:
        """Return the photo in the file of this name at the size, as `image.resized` does; one at a time."""
        with self._turn:
            if self._timer is not None:
                self._timer.cancel()
            if self._worker is None or not self._worker.is_alive():
                self._worker = _Worker()
            try:
                return self._worker.resized((self._files.directory, name, sizing))
            finally:
                self._timer = threading.Timer(self._idle_s, self.stop)
                self._timer.daemon = True
                self._timer.start()

    def is_running(self) -> bool:
        """Return whether there is a process at this moment."""
        with self._turn:
            return self._worker is not None and self._worker.is_alive()

    def stop(self) -> None:
        """End the process, if there is one. The next photo starts another."""
        with self._turn:
            if self._timer is not None:
                self._timer.cancel()
            if self._worker is not None:
                self._worker.end()
                self._worker = None


class _Worker:
    """Our end of one process."""

    def __init__(self) -> None:
        from multiprocessing import Pipe  # here, because it takes 0.8 MB, and most gateways have no photos

        self._pipe, theirs = Pipe()
        # Not `multiprocessing.Process`: that would load the whole program into the process once more.
        process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
            [*children.module("gateway.services.resizing"), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        theirs.close()
        self._process = process
        self.end = weakref.finalize(self, _end, process, self._pipe)

    def is_alive(self) -> bool:
        return self.end.alive and self._process.poll() is None

    def resized(self, order: Order) -> tuple[bytes, str]:
        try:
            self._pipe.send(order)
            answer = self._pipe.recv() if self._pipe.poll(RESIZE_S) else None
        except (OSError, EOFError) as error:  # killed for its memory, or by a fault of a decoder
            self.end()
            raise TooLarge("the photo takes too much memory; shrink it first") from error
        if answer is None:
            self.end()
            raise TooLarge("the photo takes too long to resize; shrink it first")
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[no-any-return]


def _end(process: subprocess.Popen[bytes], pipe: "Connection") -> None:
    pipe.close()
    process.kill()
    process.wait()


def serve(pipe: "Connection") -> None:
    """Resize what comes through the pipe, until its other end is closed."""
    answer: object
    while True:
        try:
            directory, name, sizing = pipe.recv()
        except EOFError:
            return
        try:
            answer = resized(PhotoFiles(directory).load(name), sizing)
        except GatewayError as error:
            answer = error
        except Exception as error:
            answer = StoreUnavailable(f"the photo cannot be resized: {type(error).__name__}")
        with suppress(BrokenPipeError):
            pipe.send(answer)


if __name__ == "__main__":
    from multiprocessing.connection import Connection

    serve(Connection(int(sys.argv[1])))
