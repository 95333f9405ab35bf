"""The connection to a gateway's socket, against answers of every form, whole, in bytes and cut off."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import client
from gateway.cli.client import ask, ask_briefly
from gateway.cli.wire import HEAD_BYTES, HEADERS, Cut, Silent, Wire
from gateway.errors import GatewayError, InvalidInput, StoreInUse
from gateway.http.both_ends import SOCKET_NAME
from tests.cases import each

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: Chunked\r\n\r\n"


def serve(data: Path, *answers: Callable[[socket.socket], object]) -> threading.Thread:
    """Take one connection after the other, each with its answer."""
    (data / SOCKET_NAME).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(data / SOCKET_NAME))
    listener.listen()

    def run() -> None:
        with listener:
            for answer in answers:
                with listener.accept()[0] as connection, suppress(OSError):
                    answer(connection)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def after_head(answer: bytes, piece: int = 1 << 20) -> Callable[[socket.socket], None]:
    """Answer once a head has come, so many bytes at a time."""

    def run(connection: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        for start in range(0, len(answer), piece):
            connection.sendall(answer[start : start + piece])

    return run


@each(
    "answer, body",
    [
        (HEAD + b"Content-Length: 3\r\n\r\nabc", b"abc"),
        (HEAD + b"Content-Length: 0\r\n\r\n", b""),
        (CHUNKED + b"2;x=y\r\nab\r\n1\r\nc\r\n0\r\nTrailer: x\r\n\r\n", b"abc"),
        (CHUNKED + b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        (HEAD + b"Content-Length: 9\r\n\r\nabc", Cut),
        (HEAD + b"Content-Length: x\r\n\r\nabc", Cut),
        (HEAD + b"Content-Length: -1\r\n\r\nabc", Cut),
        (HEAD + b"\r\nabc", Cut),
        (CHUNKED + b"2\r\nabc\r\n0\r\n\r\n", Cut),
        (CHUNKED + b"-2\r\nab\r\n0\r\n\r\n", Cut),
        (CHUNKED + b"2\r\nab", Cut),
        (CHUNKED + b"x\r\nab\r\n", Cut),
        (b"SSH-2.0-OpenSSH\r\n\r\n", Cut),
        (b"HTTP/1.1 abc\r\n\r\n", Cut),
        (b"x" * (HEAD_BYTES + 2), Cut),
        (HEAD + b"X: y\r\n" * (HEADERS + 1) + b"\r\n", Cut),
        (b"", Cut),
    ],
)
def test_an_answer_is_read_whole_or_not_at_all(tmp_path: Path, answer: bytes, body: Any) -> None:
    for piece in (1 << 20, 1) if len(answer) < 500 else (1 << 20,):
        thread = serve(tmp_path, after_head(answer, piece))
        with Wire(tmp_path, 5.0) as wire:
            wire.begin("GET", "/", {})
            if body is Cut:
                with pytest.raises(Cut):
                    list(wire.pieces(wire.head()[1]))
            else:
                status, headers = wire.head()
                assert status == 200
                assert b"".join(wire.pieces(headers)) == body
        thread.join()


def test_a_refusal_of_a_large_body_is_read_though_the_other_end_has_gone(tmp_path: Path) -> None:
    refusal = b'{"message": "failure", "detail": "too much"}'
    head = b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(refusal)
    thread = serve(tmp_path, after_head(b"HTTP/1.1 100 Continue\r\n\r\n" + head + refusal))
    with pytest.raises(InvalidInput, match="too much"):
        ask(tmp_path, "POST", "/x", data=bytes(8 * 1024 * 1024))
    thread.join()


def test_an_answer_that_breaks_off_is_no_reason_to_ask_again(tmp_path: Path) -> None:
    for method in ("GET", "POST"):
        thread = serve(tmp_path, after_head(HEAD + b"Content-Length: 9\r\n\r\n{"))
        with pytest.raises(GatewayError, match=f"ended while {method} /x ran"):
            ask(tmp_path, method, "/x")
        thread.join()


def test_a_request_that_was_not_taken_is_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a gateway that is just stopping, which another one follows."""
    monkeypatch.setattr(client, "_in_process", in_use)
    whole = HEAD + b'Content-Length: 9\r\n\r\n{"a": 1}\n'
    thread = serve(tmp_path, after_head(b""), after_head(b""), after_head(whole))
    assert ask(tmp_path, "POST", "/x") == {"a": 1}
    thread.join()


def in_use(*_: Any, **__: Any) -> None:
    raise StoreInUse


def test_silence_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = socket.socket(socket.AF_UNIX)
    with listener:
        listener.bind(str(tmp_path / SOCKET_NAME))
        listener.listen()
        with Wire(tmp_path, 0.05) as wire:
            wire.begin("GET", "/", {})
            with pytest.raises(Silent):
                wire.head()
        monkeypatch.setattr(client, "BRIEFLY_S", 0.05)
        with pytest.raises(GatewayError, match="nobody answers"):
            ask_briefly(tmp_path, "/x")


def test_without_a_socket_there_is_no_connection(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "none"):
        with pytest.raises(Cut):
            Wire(directory, None)
    (tmp_path / SOCKET_NAME).write_text("a file")
    with pytest.raises(Cut):
        Wire(tmp_path, None)
