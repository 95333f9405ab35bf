"""HTTP over the Unix socket of a data directory, as far as the command line needs it.

Not aiohttp, because its import takes three times as long as all else of a command.
"""

import contextlib
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self

from gateway.http.both_ends import short_path

PIECE_BYTES = 256 * 1024
"""Bytes that are read or written at once."""

HEAD_BYTES = 64 * 1024
"""Bytes of a line of an answer's head at most."""

HEADERS = 100
"""Headers of an answer at most."""

CONTINUE = 100


class Cut(Exception):
    """There is no connection, or no more, or what answers does not speak HTTP."""


class Silent(Exception):
    """The other end was silent for too long."""


class Wire:
    """A connection for one request."""

    def __init__(self, directory: Path, silence_s: float | None) -> None:
        """Connect to a directory's socket; wait for the next bytes for `silence_s` at most, or for ever."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(silence_s)
        self._rest = b""
        try:
            with self._failures(), short_path(directory) as path:
                self._socket.connect(path)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def hang_up(self) -> None:
        """End the connection from another thread: the thread that waits for bytes gets `Cut`."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def begin(self, method: str, target: str, headers: Mapping[str, str]) -> None:
        """Send the head of a request. `target` and the headers are percent-encoded already."""
        lines = [f"{method} {target} HTTP/1.1", "Host: gateway", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self._send("".join(f"{line}\r\n" for line in [*lines, ""]).encode("ascii"))

    def send_body(self, data: bytes) -> None:
        """Send the body. Leave off if the other end refuses it: its answer says why."""
        with contextlib.suppress(Cut):
            self._send(data)

    def head(self) -> tuple[int, dict[str, str]]:
        """Read the head of an answer: its status, and its headers by their names in lower case."""
        version, _, status = self._line().partition(b" ")
        if not version.startswith(b"HTTP/1.") or not status[:3].isdigit():
            raise Cut("what answers does not speak HTTP")
        headers: dict[str, str] = {}
        for line in self._lines():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return int(status[:3]), headers

    def pieces(self, headers: Mapping[str, str]) -> Iterator[bytes]:
        """Read the body that goes with these headers, piece by piece as it arrives."""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := self._size(self._line()):
                yield from self._exactly(size)
                if self._line():
                    raise Cut("a piece that is longer than its length")
            list(self._lines())  # trailers
        elif "content-length" in headers:
            yield from self._exactly(self._size(headers["content-length"].encode(), 10))
        else:
            raise Cut("an answer without a length")

    @staticmethod
    def _size(digits: bytes, base: int = 16) -> int:
        try:
            size = int(digits.partition(b";")[0], base)
        except ValueError as error:
            raise Cut("what answers does not speak HTTP") from error
        if size < 0:
            raise Cut("what answers does not speak HTTP")
        return size

    def _lines(self) -> Iterator[bytes]:
        """Read lines up to a blank one."""
        for _ in range(HEADERS + 1):
            if not (line := self._line()):
                return
            yield line
        raise Cut("too many headers")

    def _line(self) -> bytes:
        while b"\n" not in self._rest:
            if len(self._rest) > HEAD_BYTES:
                raise Cut("what answers does not speak HTTP")
            self._rest += self._receive()
        line, _, self._rest = self._rest.partition(b"\n")
        return line.rstrip(b"\r")

    def _exactly(self, size: int) -> Iterator[bytes]:
        while size:
            piece = self._rest or self._receive()
            piece, self._rest = piece[:size], piece[size:]
            size -= len(piece)
            yield piece

    def _receive(self) -> bytes:
        with self._failures():
            if piece := self._socket.recv(PIECE_BYTES):
                return piece
        raise Cut("the connection was cut")

    def _send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            # Not sendall, because its time limit is for everything that is sent.
            with self._failures():
                view = view[self._socket.send(view[:PIECE_BYTES]) :]

    @staticmethod
    @contextlib.contextmanager
    def _failures() -> Iterator[None]:
        try:
            yield
        except TimeoutError as error:
            raise Silent from error
        except OSError as error:
            raise Cut from error
