"""A start and commands wait for whoever has the data, and say who it is."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from gateway import app
from gateway.cli.exit_codes import ExitCode
from gateway.cli.main import _exit_code
from gateway.errors import StoreInUse
from gateway.http.both_ends import SOCKET_NAME
from gateway.settings import Settings
from gateway.store.sqlite.engine.database import LOCK_NAME, lock_directory
from tests.program.program import until


async def test_a_start_says_that_it_waits_for_a_command_and_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LOCK_WAIT_S", 0.1)
    monkeypatch.setattr(app, "COMMAND_WAIT_S", 0.5)
    lines: list[str] = []
    lock = lock_directory(tmp_path / LOCK_NAME)
    with socket.socket(socket.AF_UNIX) as left_behind:  # as by a gateway that was killed
        left_behind.bind(str(tmp_path / SOCKET_NAME))
    try:
        gateway = app.Gateway(Settings(data_dir=tmp_path, host="127.0.0.1", port=0), lines.append)
        with pytest.raises(StoreInUse, match=rf"another process has {tmp_path} open") as raised:
            await gateway.run(asyncio.Event())
    finally:
        os.close(lock)
    assert lines == [f"Waiting: {raised.value}"]
    assert _exit_code(raised.value) is ExitCode.FAILED


async def test_a_start_goes_on_when_the_command_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "LOCK_WAIT_S", 0.1)
    lines: list[str] = []
    lock, stopped = lock_directory(tmp_path / LOCK_NAME), asyncio.Event()
    settings = Settings(data_dir=tmp_path, host="127.0.0.1", port=0, tcp_port=0, no_mqtt=True)
    running = asyncio.create_task(app.Gateway(settings, lines.append).run(stopped))
    try:
        await until(lambda: lines)
    finally:
        os.close(lock)
    await until(lambda: lines[-1].startswith("Ready"))
    assert lines[0].startswith("Waiting: another process has ")
    stopped.set()
    await running


def test_causes_that_go_in_a_circle_end() -> None:
    first, second = StoreInUse("first"), StoreInUse("second")
    first.__cause__, second.__cause__ = second, first
    assert _exit_code(first) is ExitCode.FAILED
