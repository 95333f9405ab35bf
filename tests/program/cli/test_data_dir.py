"""Whose data these are: another user's cannot be used, and root leaves nothing of its own in them."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from gateway.cli.ownership import files_of_owner
from tests.program.program import PATIENCE_S, PROJECT, answer, environment

NOBODY = 65_534
"""The user that Debian calls nobody."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


async def without_rights(*words: str) -> tuple[int, str]:
    """Exit code and stderr of a command whose user may not read the files of others, as root may."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv is not installed")
    child = await asyncio.create_subprocess_exec(
        *(setpriv, "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"),
        *(sys.executable, "-m", "gateway", *words, "--config", os.devnull),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=PROJECT,
        env=environment(),
    )
    async with asyncio.timeout(PATIENCE_S):
        _, errors = await child.communicate()
    return child.returncode or 0, errors.decode()


async def test_data_of_another_user_are_refused_in_a_line_with_the_remedy(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await answer(data, "sessions add --batchcode HP001")
    for path in (data, *data.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    remedy = f"hydrometer-gateway: {data} belongs to nobody; use `sudo -u nobody`, or --data-dir\n"
    for words in (
        ("devices", "list"),
        ("sessions", "add", "--batchcode", "A"),
        ("serve", "--port", "0"),
        ("keys", "first"),
        ("backup", f"{tmp_path}/x.tar"),
        ("restore", f"{tmp_path}/x.tar"),
        ("tls", "self-signed"),
    ):
        assert await without_rights(*words, "--data-dir", str(data)) == (1, remedy)
    status, said = await without_rights("sessions", "add", "--batchcode", "A", "--data-dir", f"{data}/new")
    assert status == 1
    assert said == (
        f"hydrometer-gateway: {data}/new cannot be used: {data} belongs to nobody; "
        "use `sudo -u nobody`, or --data-dir\n"
    )
    status, said = await without_rights("doctor", "--quick", "--data-dir", str(data))
    assert (status, said) == (3, "")


async def test_what_root_makes_in_the_data_of_the_service_belongs_to_the_service(tmp_path: Path) -> None:
    data = tmp_path / "data"
    await answer(data, "sessions add --batchcode HP001")
    for path in (data, *data.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    link = tmp_path / "service"
    link.symlink_to(data)
    key = tmp_path / "first.key"
    key.write_text("a-key")
    await answer(link, f"targets add club http://127.0.0.1:9 --key-file {key}")
    await answer(link, "tls self-signed")
    await answer(link, f"backup {tmp_path / 'kept.tar'}")
    await answer(link, f"restore {tmp_path / 'kept.tar'}")
    assert {path.stat().st_uid for path in (data, *data.rglob("*"))} == {NOBODY}
    assert link.lstat().st_uid == 0
    assert (tmp_path / "kept.tar").stat().st_uid == 0  # that is root's own


def test_the_data_of_root_stay_roots(tmp_path: Path) -> None:
    with files_of_owner(tmp_path):
        (tmp_path / "file").touch()
    assert (tmp_path / "file").stat().st_uid == 0
