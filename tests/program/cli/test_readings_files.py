"""`readings import` and `export` as processes: pipes and a full disk."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from gateway.cli.exit_codes import ExitCode
from gateway.formats.readings.export import HEADER_LINE
from tests.patience import PATIENCE_S
from tests.program.program import PROJECT, environment, process
from tests.system.cli.test_readings_files import READINGS, exported, session_in, with_stdin


async def test_stdin_and_stdout(data: Path) -> None:
    await session_in(data, READINGS)
    files = {ending: await exported(data, name=f"x.{ending}") for ending in ("json", "csv")}
    for ending, file in files.items():
        shown = await process(data, f"readings export 1 --format {ending}")
        assert (shown.status, shown.out.encode(), shown.err) == (0, file, "")
        taken = await with_stdin(data, f"readings import --reset 1 - --format {ending}", file)
        assert (taken.status, taken.out, taken.err) == (0, "3\n", "")
    assert await exported(data) == files["json"]


async def test_a_reader_that_goes_away_ends_the_export_quietly(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await session_in(data, [{"temp": number, "comment": "x" * 1000} for number in range(500)])
    program = (
        f'"{sys.executable}" -m gateway readings export 1 --format csv --config /dev/null --data-dir "{data}"'
    )
    child = await asyncio.create_subprocess_exec(
        *("bash", "-o", "pipefail", "-c", f"{program} | head -c 10"),
        stdout=PIPE, stderr=PIPE, cwd=PROJECT, env=environment(),
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE_S):
        out, err = await child.communicate()
    assert (child.returncode, out, err) == (0, HEADER_LINE[:10], b"")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--format", "csv"), "the disk is full"),
        (("--out", "/dev/full", "--format", "csv"), "cannot write /dev/full: the disk is full"),
    ],
)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
async def test_a_full_disk_is_one_line(tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    data = tmp_path / "data"
    await session_in(data, READINGS)
    with open("/dev/full", "wb") as full:  # noqa: ASYNC230, PTH123
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", "readings", "export", "1", *options),
            *("--config", os.devnull, "--data-dir", str(data)),
            stdout=full, stderr=PIPE, cwd=PROJECT, env=environment(),
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE_S):
            _, err = await child.communicate()
    assert child.returncode == ExitCode.TRY_AGAIN
    assert err.decode() == f"hydrometer-gateway: {told}\n"
