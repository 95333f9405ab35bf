"""`readings` as a process: a pipe that ends, a full disk, a newer database."""

import asyncio
import os
import sqlite3
import sys
from asyncio.subprocess import PIPE
from contextlib import closing
from pathlib import Path

import pytest

from gateway.cli.exit_codes import ExitCode
from gateway.store.sqlite.engine.database import DATABASE_NAME
from tests.patience import PATIENCE_S
from tests.program.program import PROJECT, answer, environment, process
from tests.system.cli.filling import fill


async def test_a_database_of_a_newer_version(tmp_path: Path) -> None:
    await answer(tmp_path, "sessions add --batchcode A")
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as connection:
        connection.execute("PRAGMA user_version = 999")
    for words in ("readings", "keys add x"):
        finished = await process(tmp_path, words)  # as one, so that a thread that is left would hold it up
        assert (finished.status, finished.out) == (1, "")
        assert finished.err.startswith("hydrometer-gateway: the database has schema 999")
        assert len(finished.err.splitlines()) == 1


@pytest.mark.parametrize("options", ["", "--json", "--last 5", "--last 5 --json"])
async def test_head_ends_it_quietly(tmp_path: Path, options: str) -> None:
    await fill(tmp_path, 3000)
    program = f'"{sys.executable}" -m gateway readings --config /dev/null --data-dir "{tmp_path}" {options}'
    child = await asyncio.create_subprocess_exec(
        *("bash", "-o", "pipefail", "-c", f"{program} | head -1"),
        stdout=PIPE, stderr=PIPE, cwd=PROJECT, env=environment({"PYTHONUNBUFFERED": ""}),
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE_S):
        out, err = await child.communicate()
    assert (child.returncode, err, len(out.splitlines())) == (0, b"", 1)


async def test_a_closed_stdout_is_no_error(tmp_path: Path) -> None:
    await fill(tmp_path, 3)
    program = f'"{sys.executable}" -m gateway devices list --config /dev/null --data-dir "{tmp_path}"'
    child = await asyncio.create_subprocess_exec(
        *("bash", "-c", f"{program} <&- >&-"), stderr=PIPE, cwd=PROJECT, env=environment()
    )
    async with asyncio.timeout(PATIENCE_S):
        _, err = await child.communicate()
    assert (child.returncode, err) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("words", ["readings", "readings --json", "keys list"])
async def test_a_full_disk_is_one_line(tmp_path: Path, words: str) -> None:
    await fill(tmp_path, 3)
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *words.split(), "--config", os.devnull),
            *("--data-dir", str(tmp_path)),
            stdout=full, stderr=PIPE, cwd=PROJECT, env=environment({"PYTHONUNBUFFERED": ""}),
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE_S):
            _, err = await child.communicate()
    finally:
        os.close(full)
    assert child.returncode == ExitCode.TRY_AGAIN
    assert err.decode() == "hydrometer-gateway: the disk is full\n"
