"""A command that lasts says so; one that is stopped by Ctrl-C says what is done and what is not."""

import asyncio
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest

from gateway import __main__ as program
from gateway.cli import progress
from gateway.cli.exit_codes import ExitCode
from gateway.cli.progress import each_file, signs_of_life
from gateway.http.both_ends import SOCKET_NAME
from tests.program.program import PATIENCE_S, PROJECT, environment


def test_the_codes_agree() -> None:
    assert program.INTERRUPTED == ExitCode.INTERRUPTED


@pytest.mark.parametrize("words", ["devices list", "sessions add --batchcode HP001"])
@pytest.mark.parametrize("is_read", [False, True], ids=["before", "within"])
async def test_what_ctrl_c_leaves(tmp_path: Path, words: str, is_read: bool) -> None:
    """A gateway that hangs: before it has taken the request, or after it."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(tmp_path / SOCKET_NAME))
        hanging.listen()
        hanging.setblocking(False)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *words.split()),
            *("--config", os.devnull, "--data-dir", str(tmp_path)),
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd=PROJECT, env=environment(),
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE_S):
            connection, _ = await loop.sock_accept(hanging)
            with connection:
                await loop.sock_recv(connection, 65_536)
                if is_read:
                    await loop.sock_sendall(connection, b"HTTP/1.1 100 Continue\r\n\r\n")
                    if words.startswith("sessions"):
                        await loop.sock_recv(connection, 65_536)
                process.send_signal(signal.SIGINT)
                out, err = await process.communicate()
    left = (
        "it may be done in part: look before you repeat it"
        if is_read and words.startswith("sessions")
        else "nothing was changed"
    )
    assert (process.returncode, out, err.decode()) == (130, b"", f"hydrometer-gateway: stopped; {left}\n")


def test_of_several_files_the_one_is_named_at_which_it_stopped(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b", "c")]
    for file in files:
        file.write_text(file.name)

    def take(path: Path, data: bytes, progress: object) -> None:
        if path.name == "b":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        each_file(files, 10, take, lambda path, result: None)
    assert stopped.value.__notes__ == [f"of 3 files 1 are done; it stopped at {tmp_path}/b"]


@pytest.mark.parametrize("terminal", ["xterm", "dumb"])
def test_a_command_that_lasts_says_so(
    terminal: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "QUIET_S", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", terminal)
    shown = ""
    with signs_of_life():
        deadline = time.monotonic() + PATIENCE_S
        while "still working" not in shown and time.monotonic() < deadline:
            time.sleep(0.01)
            shown += capsys.readouterr().err
    shown += capsys.readouterr().err
    if terminal == "dumb":
        assert shown == "still working; Ctrl-C stops it\n"
    else:
        assert "still working; Ctrl-C stops it (1 s)" in shown
        assert shown.endswith("\r\x1b[2K")  # wiped away


def test_one_that_is_quick_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with signs_of_life():
        pass
    assert capsys.readouterr().err == ""
