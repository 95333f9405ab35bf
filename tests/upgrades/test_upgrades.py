"""Data of each released version open with this one, and nothing is lost. Data of a newer version are refused.

`VERSION.tar.xz` holds the data directory that a release wrote, and what it answered about them.
"""

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.store.sqlite.engine.schema import migrations
from tests.program.program import HTTP_ONLY, answer, process, run, serving

HERE = Path(__file__).parent

ARCHIVE_BYTES = 100_000

CHANGED = {"0.1.0": {"targets list": {"state", "next_at", "oldest_at"}}}
"""Members of old answers that say how a command sees a stopped gateway, by version and command."""


def unpacked(archive: Path, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The data directory, and the answers."""
    assert archive.stat().st_size < ARCHIVE_BYTES
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    return folder / "data", json.loads((folder / "answers.json").read_text("utf-8"))


def assert_kept(old: Any, new: Any, place: str, changed: set[str] | frozenset[str] = frozenset()) -> None:
    """Every member of the old answer is in the new one, with the same value; the new one may have more."""
    if isinstance(old, dict):
        assert isinstance(new, dict), place
        for name in old.keys() - changed:
            assert name in new, f"{place}: {name}"
            assert_kept(old[name], new[name], f"{place}: {name}", changed)
    elif isinstance(old, list):
        assert isinstance(new, list), place
        assert len(new) == len(old), place
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            assert_kept(before, after, f"{place}[{number}]", changed)
    else:
        assert new == old, place


@pytest.mark.parametrize("archive", sorted(HERE.glob("*.tar.xz")), ids=lambda path: path.name)
async def test_data_of_a_release_open_and_nothing_is_lost(archive: Path, tmp_path: Path) -> None:
    version = archive.name.removesuffix(".tar.xz")
    data, before = unpacked(archive, tmp_path)
    kept_photos = {path.name for path in (data / "photos").iterdir()}
    with closing(sqlite3.connect(data / "gateway.sqlite3")) as database:
        [[schema]] = database.execute("PRAGMA user_version")
    assert schema < migrations()[-1][0], "nothing is migrated"
    async with serving(data, *HTTP_ONLY) as server:
        async with aiohttp.ClientSession(headers={"X-API-KEY": before["key"]}) as http:
            for path, old in before["answers"].items():
                async with http.get(server.url + path) as answered:
                    assert answered.status == 200, path
                    assert_kept(old, await answered.json(), path)
        assert (await server.stop())[0] == 0
    for command, rows in before["commands"].items():
        listed = await answer(data, f"{command} --json")
        assert_kept(rows, listed.objects, command, CHANGED.get(version, {}).get(command, set()))
    assert {path.name for path in (data / "photos").iterdir()} == kept_photos


async def test_a_newer_schema_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    """As the version before refuses what this one has migrated."""
    data = tmp_path / "data"
    await answer(data, "sessions add --batchcode HP001")
    newest = migrations()[-1][0]
    with closing(sqlite3.connect(data / "gateway.sqlite3", isolation_level=None)) as database:
        database.execute(f"PRAGMA user_version = {newest + 1}")
        database.execute("UPDATE counters SET value = ? WHERE name = 'schema'", (newest + 1,))
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = (data / "gateway.sqlite3").read_bytes()
    sentence = (
        f"hydrometer-gateway: the database has schema {newest + 1}, this gateway knows {newest}: update it, "
        "or use a data directory of its own; nothing was changed\n"
    )
    serve = await process(data, ("serve", *HTTP_ONLY))
    assert (serve.status, serve.err) == (1, sentence)
    assert "Ready" not in serve.out
    listed = await process(data, "sessions list")
    assert (listed.status, listed.out, listed.err) == (1, "", sentence)
    assert (data / "gateway.sqlite3").read_bytes() == before


async def test_there_are_data_of_the_release_before(tmp_path: Path) -> None:
    """Whoever makes a release adds its data: the first line of a released section names it."""
    released = [
        line.split("[")[1].split("]")[0]
        for line in (HERE.parents[1] / "CHANGELOG.md").read_text("utf-8").splitlines()
        if line.startswith("## [") and "Unreleased" not in line
    ]
    current = (await run("--version")).out.strip()
    kept = {path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz")}
    assert set(released) - {current} <= kept
