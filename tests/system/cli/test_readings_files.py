"""`readings import` and `readings export`: all or nothing, nothing doubled, the same again."""

import asyncio
import json
import os
import stat
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import reading_files
from gateway.cli import readings as cli
from gateway.cli.client import ask
from gateway.errors import GatewayError, InvalidInput, StoreUnavailable
from tests.program.program import PROJECT, Finished, answer, environment, ispindel, refusal

from .conftest import stored

OID = "69a7fb98c0ffee0000000001"
READINGS: list[dict[str, Any]] = [
    {
        "_id": {"$oid": OID}, "gravity": "1.0500", "temp": 20, "temp_unit": "F", "name": "=1+1", "source": "",
        "ip": "192.0.2.1", "created_at": "2026-03-04T09:30:00Z", "ph": 4.5,
    },
    {"gravity": "12.50", "gravity_unit": "P", "comment": "a \"b\"\r\n", "created_at": "2026-03-05"},
    {"gravity": "12.50", "gravity_unit": "P", "comment": "a \"b\"\r\n", "created_at": "2026-03-05"},
]  # fmt: skip


def numbered(count: int, first: int = 0) -> str:
    """A CSV file of readings without ids, an hour apart."""
    lines = [
        f"1.{number:04d},2026-03-{1 + number // 24:02d}T{number % 24:02d}:00:00Z"
        for number in range(first, count)
    ]
    return "\n".join(["gravity,created_at", *lines, ""])


async def session_in(data: Path, readings: Any = None, *, code: str = "A") -> str:
    """A new brew session, with these readings in it; its id."""
    session = (await answer(data, "sessions add --batchcode", code)).out.strip()
    if readings is not None:
        file = data.parent / "given.json"
        file.write_text(json.dumps(readings))
        assert (await answer(data, "readings import", session, str(file))).out == f"{len(readings)}\n"
    return session


async def exported(data: Path, session: str = "1", name: str = "exported.json") -> bytes:
    file = data.parent / name
    finished = await answer(data, "readings export", session, "--out", str(file))
    assert (finished.out, finished.err) == ("", "")
    return file.read_bytes()


async def gravities(data: Path, session: str = "1") -> list[str]:
    return [reading["gravity"] for reading in json.loads(await exported(data, session))]


async def test_import_prints_how_many_and_export_gives_them(data: Path) -> None:
    await session_in(data, READINGS)
    first, second, third = json.loads(await exported(data))
    assert list(first)[-1] == "ph"
    assert (first["_id"], first["gravity"], first["temp"], first["source"]) == (
        *({"$oid": OID}, "1.0500", "20", ""),
    )
    assert (second["gravity"], second["ip"]) == ("12.50", "")
    assert {**second, "_id": None} == {**third, "_id": None}


@pytest.mark.parametrize("ending", ["json", "CSV"])
@pytest.mark.parametrize("options", ["", "--reset"])
async def test_what_was_exported_comes_back_bit_for_bit(data: Path, ending: str, options: str) -> None:
    await session_in(data, READINGS)
    before = await exported(data)
    await exported(data, name=f"copy.{ending}")
    copy = str(data.parent / f"copy.{ending}")
    finished = await answer(data, ("readings", "import", *options.split(), "1", copy))
    assert (finished.out, finished.err) == ("3\n", "")
    assert await exported(data) == before
    other = await session_in(data, code="B")
    await answer(data, "readings import", other, copy)
    members = [{**reading, "_id": 0, "brewevent_id": 0} for reading in json.loads(before)]
    elsewhere = json.loads(await exported(data, other))
    assert [{**reading, "_id": 0, "brewevent_id": 0} for reading in elsewhere] == members


async def test_what_devices_sent_comes_back_bit_for_bit(tmp_path: Path) -> None:
    data = tmp_path / "data"
    nothing_measured = '{"name":"RED","ID":9,"angle":0,"temperature":-127,"gravity":0,"beer":"-Malt,7"}'
    await stored(data, ispindel(5), nothing_measured)
    await session_in(data)
    for device in ("5", "RED"):
        await answer(data, "devices assign --since 2020-01-01", device, "1")
    before = await exported(data)
    assert [reading["gravity"] for reading in json.loads(before)] == ["12.5", ""]
    await exported(data, name="copy.csv")
    for copy in ("exported.json", "copy.csv"):
        assert (await answer(data, "readings import --reset 1", str(tmp_path / copy))).out == "2\n"
        assert await exported(data, name="again.json") == before


async def test_reset_leaves_only_what_is_in_the_file(data: Path, tmp_path: Path) -> None:
    await session_in(data, READINGS)
    (tmp_path / "new.csv").write_text("temp\n20\n")
    assert (await answer(data, "readings import --reset 1", str(tmp_path / "new.csv"))).out == "1\n"
    (reading,) = json.loads(await exported(data))
    assert (reading["temp"], reading["gravity"]) == ("20", "")
    (tmp_path / "none.json").write_text("[]")
    assert (await answer(data, "readings import --reset 1", str(tmp_path / "none.json"))).out == "0\n"
    assert json.loads(await exported(data)) == []


async def test_the_same_file_again_doubles_nothing_with_or_without_ids(data: Path, tmp_path: Path) -> None:
    await session_in(data)
    file = tmp_path / "twins.csv"
    file.write_text("gravity,created_at\n1.05,2026-03-04\n1.05,2026-03-04\n1.04,2026-03-05\n")
    await answer(data, "readings import 1", str(file))
    before = await exported(data)
    assert len(json.loads(before)) == 3
    await answer(data, "readings import 1", str(file))
    assert await exported(data) == before
    other = await session_in(data, code="B")
    await answer(data, "readings import", other, str(file))
    assert len(json.loads(await exported(data, other))) == 3
    assert await exported(data) == before


REFUSED = [
    ("bad.csv", b"gravity\n1.05\n\nx\n", "row 2: gravity is not a number"),
    ("bad.json", b'[{"temp":1},{"temp":1},{}]', "row 3: one of gravity, temp and comment is needed"),
    ("cut.json", b'[{"temp":1},{"te', "row 2: not JSON at character 14"),
    ("text.csv", b"comment\n\xff\n", "the text is not UTF-8 at byte 9; save it as UTF-8"),
    ("other.csv", b"a;b\n1;2\n", "the columns are separated by semicolons; "),
]


@pytest.mark.parametrize(("name", "body", "reason"), REFUSED)
async def test_a_bad_row_changes_nothing(
    data: Path, tmp_path: Path, name: str, body: bytes, reason: str
) -> None:
    await session_in(data, READINGS)
    before = await exported(data)
    (tmp_path / name).write_bytes(body)
    told = await refusal(data, "readings import --reset 1", str(tmp_path / name))
    assert told.startswith(f"{tmp_path / name}: {reason}")
    assert told.endswith("; nothing was changed")
    assert await exported(data) == before


async def test_what_cannot_be_done(data: Path, tmp_path: Path) -> None:
    await session_in(data)
    file = tmp_path / "good.csv"
    file.write_text("temp\n20\n")
    unknown = "no brew session 9; `sessions list` shows them"
    assert await refusal(data, "readings import 9", str(file)) == unknown
    assert await refusal(data, "readings export 9 --format csv") == unknown
    undecided = "JSON or CSV? Add --format json or --format csv"
    assert await refusal(data, "readings export 1") == undecided
    assert await refusal(data, "readings export 1 --out", str(tmp_path / "x.txt")) == undecided
    assert await refusal(data, "readings import 1 -") == undecided
    nowhere = tmp_path / "nowhere" / "x.csv"
    assert await refusal(data, "readings import 1", str(nowhere)) == (
        f"{nowhere}: cannot read it: there is no such file or directory; nothing was changed"
    )
    assert await refusal(data, "readings export 1 --out", str(nowhere)) == (
        f"cannot write {nowhere}: there is no such file or directory"
    )
    assert await refusal(data, "readings --last 5 import 1", str(file)) == (
        "options of `readings import` stand behind its name"
    )
    assert json.loads(await exported(data)) == []


async def with_stdin(data: Path, words: str, body: bytes) -> Finished:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", *words.split(), "--config", os.devnull, "--data-dir", str(data)),
        stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=PROJECT, env=environment(),
    )  # fmt: skip
    async with asyncio.timeout(20):
        out, err = await child.communicate(body)
    return Finished(child.returncode or 0, out.decode(), err.decode())


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_files, "PART_ROWS", 4)
    monkeypatch.setattr(reading_files, "ROWS", 10)


def watched(monkeypatch: pytest.MonkeyPatch, *, fails_at: int = 0) -> list[dict[str, Any]]:
    """The import commands as they are sent; one of them fails where that is wanted."""
    sent: list[dict[str, Any]] = []

    def send(data: Path, method: str, path: str, **options: Any) -> Any:
        sent.append(options["body"])
        if len(sent) == fails_at:
            raise StoreUnavailable("the disk is full")
        return ask(data, method, path, **options)

    monkeypatch.setattr(cli, "ask", send)
    return sent


@pytest.mark.usefixtures("small_parts")
async def test_one_import_where_it_may_be_that_large_else_parts(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await session_in(data, READINGS)
    file = tmp_path / "many.csv"
    sent = watched(monkeypatch)
    for count, parts in ((10, 1), (11, 3)):
        file.write_text(numbered(count))
        sent.clear()
        assert (await answer(data, "readings import --reset 1", str(file))).out == f"{count}\n"
        assert [arguments["reset"] for arguments in sent] == [True] + [False] * (parts - 1)
        assert await gravities(data) == [f"1.{number:04d}" for number in range(count)]


@pytest.mark.usefixtures("small_parts")
async def test_after_an_end_half_way_the_same_file_again_completes_it(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await session_in(data, READINGS)
    file = tmp_path / "many.csv"
    file.write_text(numbered(11))
    watched(monkeypatch, fails_at=3)
    assert await refusal(data, "readings import --reset 1", str(file)) == (
        "the disk is full; 8 of 11 readings are in, import the file again without --reset"
    )
    assert len(await gravities(data)) == 8
    monkeypatch.undo()
    assert (await answer(data, "readings import 1", str(file))).out == "11\n"
    assert await gravities(data) == [f"1.{number:04d}" for number in range(11)]


@pytest.mark.usefixtures("small_parts")
async def test_the_last_row_of_many_is_checked_before_the_first_is_sent(data: Path, tmp_path: Path) -> None:
    await session_in(data, READINGS)
    before = await exported(data)
    file = tmp_path / "many.csv"
    file.write_text(numbered(30) + "x,2026-03-04\n")
    told = await refusal(data, "readings import --reset 1", str(file))
    assert told == f"{file}: row 31: gravity is not a number; nothing was changed"
    assert await exported(data) == before


def test_parts_are_bounded_in_bytes_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_files, "PART_BYTES", 1000)
    parts = list(reading_files.parts_of(numbered(30).encode(), "csv", 1, 0))
    assert len(parts) == 3
    assert max(len(part.lines) for part in parts) <= 1000
    assert sum(part.rows for part in parts) == 30
    assert reading_files.joined(parts) == parts
    monkeypatch.setattr(reading_files, "BODY_BYTES", 500)
    with pytest.raises(InvalidInput, match="row 1: larger than 500 bytes"):
        list(reading_files.parts_of(json.dumps({"comment": "x" * 500}).encode(), "json", 1, 0))


async def test_an_export_replaces_a_file_only_when_it_is_whole(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    file = folder / "x.json"
    file.write_text("before")
    (folder / "link.json").symlink_to(file)
    await session_in(data, READINGS)
    await refusal(data, "readings export 9 --out", str(file))
    assert file.read_text() == "before"
    await answer(data, "readings export 1 --out", str(folder / "link.json"))
    assert len(json.loads(file.read_bytes())) == 3
    assert (folder / "link.json").is_symlink()
    assert sorted(path.name for path in folder.iterdir()) == ["link.json", "x.json"]


def test_what_goes_wrong_while_a_file_is_written_leaves_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("before")
    with pytest.raises(GatewayError, match="the disk is full"), reading_files.written(file) as new:  # noqa: PT012
        new.write(b"half")
        raise OSError("the disk is full")
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


async def test_a_device_is_written_to_and_not_replaced(data: Path, tmp_path: Path) -> None:
    await session_in(data, READINGS)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    exporting = asyncio.create_task(answer(data, "readings export 1 --format csv --out", str(pipe)))
    received = await asyncio.to_thread(pipe.read_bytes)
    await exporting
    assert received == await exported(data, name="x.csv")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
