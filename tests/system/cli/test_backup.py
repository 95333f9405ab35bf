"""`backup` and `restore` as users run them, beside a gateway and without one; the nightly one of `serve`."""

import json
import os
import re
from pathlib import Path

import pytest

from gateway.backup.nightly import made_in
from gateway.cli.client import ask_running
from tests.program.program import HTTP_ONLY, answer, ispindel, process, refusal, serving, until
from tests.system.cli.conftest import gateway, stored


@pytest.fixture
async def filled(tmp_path: Path) -> Path:
    """A data directory with two readings of two devices."""
    data = tmp_path / "filled"
    await stored(data, ispindel(1), ispindel(2))
    return data


def devices(lines: list[str]) -> list[str]:
    return sorted(json.loads(line)["name"] for line in lines)


async def test_there_and_back(filled: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "gateway.tar", tmp_path / "other"
    made = await process(filled, "backup", str(file))
    assert (made.status, made.err) == (0, "")
    assert made.out.startswith(f"{file}: 2 readings, the newest of 2")
    assert made.out.endswith(" bytes, read back and sound\n")
    dry = await answer(other, "restore --dry-run", str(file))
    assert dry.lines[-1] == "There is: no database that can be read"
    restored = await answer(other, "restore", str(file))
    assert restored.err == ""
    assert restored.lines[-1] == f"There is now what is in the backup, in {other}"
    assert devices((await answer(other, "readings --json")).lines) == ["spindle1", "spindle2"]
    for data, verb in ((filled, "backup"), (other, "restore")):
        rows = (await answer(data, "audit list --json")).objects
        assert rows[0]["object"] == "key:first", "the log is in the backup"
        row = rows[-1]
        assert (row["actor"], row["verb"]) == (f"cli:uid {os.getuid()}", verb)
        assert row["object"] == "backup:gateway.tar"
        assert row["detail"].endswith(" bytes" if verb == "backup" else ": 2 readings")


async def test_a_backup_beside_a_gateway_and_a_restore_only_without_it(filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "gateway.tar"
    async with gateway(filled) as (server, _):
        await answer(filled, "backup", str(file))
        said = await refusal(filled, "restore", str(file))
        assert re.fullmatch(
            rf"another process has {filled} open \(process \d+, since .*\): stop the gateway first .*", said
        )
        assert (await server.stop())[0] == 0
    await stored(filled, ispindel(3))
    restored = await answer(filled, "restore", str(file))
    undo = restored.lines[-1].removeprefix("To undo this: hydrometer-gateway ")
    assert devices((await answer(filled, "readings --json")).lines) == ["spindle1", "spindle2"]
    await answer(filled, tuple(undo.split()))
    assert len((await answer(filled, "readings --json")).lines) == 3
    await stored(filled, ispindel(4))
    assert len((await answer(filled, "readings --json")).lines) == 4


async def test_refusals_are_one_line_and_name_the_remedy(filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "gateway.tar"
    assert "there is no database" in await refusal(tmp_path / "empty", "backup", str(file))
    await answer(filled, "backup", str(file))
    assert (
        await refusal(filled, "backup", str(file))
        == f"{file} exists; choose another name, or --force to replace it"
    )
    await answer(filled, "backup --force", str(file))
    assert "there is no directory" in await refusal(filled, "backup", str(tmp_path / "no" / "x.tar"))
    assert "is no backup of this program" in await refusal(filled, "restore", __file__)


async def test_a_backup_every_night_shows_on_the_health_page(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "usb"
    directory.mkdir()
    hasty = "tests.system.cli.hasty_nightly"
    options = (*HTTP_ONLY, "--nightly-backup", str(directory), "--nightly-keep", "2")
    async with serving(filled, *options, module=hasty) as server:
        assert f"Backup every night into {directory}" in server.lines
        await until(lambda: made_in(directory))

        async def shown() -> bool:
            parts = (await ask_running(filled, "/healthz"))["parts"]
            return "ok: hydrometer-gateway-" in parts.get("nightly backup", "")

        await until(shown)
        assert (await server.stop())[0] == 0
    [backup] = directory.iterdir()
    restored = await answer(tmp_path / "other", "restore", str(backup))
    assert ": 2 readings" in restored.lines[0]
