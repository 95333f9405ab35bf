"""`hydrometer-gateway mirror`, while the gateway runs and while it does not."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.program.program import answer, command, refusal
from tests.system.cli.conftest import data as data  # the fixture
from tests.system.cli.conftest import nothing_is_set as nothing_is_set
from tests.system.mirror.bench import Instance, fill, opened
from tests.system.mirror.fake import Fake, recipe, running

FAST = ("--rate", "100")


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Instance]:
    async with opened(tmp_path / "there") as instance:
        await fill(instance, recipes=5, readings=5)
        (tmp_path / "there.key").write_text(instance.key + "\n")
        yield instance


def source(there: Instance, folder: Path) -> tuple[str, ...]:
    return ("--from", there.url, "--key-file", str(folder / "there.key"), *FAST)


async def test_it_copies_and_says_what(data: Path, there: Instance, tmp_path: Path) -> None:
    finished = await answer(data, "mirror", *source(there, tmp_path), "--photos")
    assert finished.err == ""
    assert [line.split() for line in finished.lines[:5]] == [
        ["COPIED", "UPDATED", "UNCHANGED", "KEPT", "FAILED"],
        ["recipes", "5", "0", "0", "0", "0"],
        ["brew", "sessions", "3", "0", "0", "0", "0"],
        ["readings", "11", "0", "0", "0", "0"],
        ["photos", "3", "0", "0", "0", "0"],
    ]
    assert finished.lines[5].endswith(" requests")
    assert (
        finished.lines[-1] == f"  serve --upstream-url {there.url} --upstream-key-file {tmp_path}/there.key"
    )
    again = await answer(data, "mirror", *source(there, tmp_path), "--photos")
    assert [line.split()[-5] for line in again.lines[1:5]] == ["0", "0", "0", "0"]
    listed = (await answer(data, "sessions list --json")).objects
    assert {line["batchcode"] for line in listed} == {"HP001", "DP001", "NONE"}


async def test_the_path_of_the_api_is_cut_and_said(data: Path, there: Instance, tmp_path: Path) -> None:
    words = source(there, tmp_path)
    finished = await answer(data, "mirror", words[0], f"{words[1]}/v1/", *words[2:])
    assert (
        finished.err == f"/v1 belongs to the API, not to the address of the service: {there.url} is taken.\n"
    )
    assert len((await answer(data, "sessions list --json")).lines) == 3


async def test_it_copies_into_another_account(data: Path, there: Instance, tmp_path: Path) -> None:
    await answer(data, "accounts add cellar")
    await answer(data, "mirror", *source(there, tmp_path), "--account", "cellar")
    assert "accounts list" in await refusal(data, "mirror", *source(there, tmp_path), "--account", "nobody")


async def test_failed_records_are_named_and_make_exit_code_1(data: Path, tmp_path: Path) -> None:
    (tmp_path / "fake.key").write_text("fake-key")
    async with running(Fake(recipes=[recipe(1), recipe(2, title=[])], xml={"1": b""})) as fake:
        words = ("--from", fake.url, "--key-file", str(tmp_path / "fake.key"), *FAST)
        finished = await command(data, "mirror", *words)
    assert finished.status == 1
    assert "- recipe 2: title is not text" in finished.lines
    assert finished.err == ""


async def test_what_is_wrong_is_one_line_with_the_remedy(data: Path, there: Instance, tmp_path: Path) -> None:
    (tmp_path / "wrong.key").write_text("wrong-key")
    (tmp_path / "empty.key").write_text("")
    good = ("--from", there.url)
    cases = {
        ("--key-file", str(tmp_path / "there.key")): "--from is missing",
        good: "--key-file is missing",
        (*good, "--key-file", str(tmp_path / "none.key")): "there is no key file ",
        (*good, "--key-file", str(tmp_path / "empty.key")): "does not hold one line with a key",
        (*good, "--key-file", str(tmp_path / "wrong.key"), *FAST): "refuses the key",
        ("--from", "brew.example", "--key-file", str(tmp_path / "there.key")): "must look like https://host",
    }
    for words, message in cases.items():
        said = await refusal(data, "mirror", *words)
        assert message in said
        assert "wrong-key" not in said
