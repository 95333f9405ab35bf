"""Tables at a terminal of 80 columns: what is cut is marked; a pipe and --wide get everything."""

from pathlib import Path

import pytest

from tests.cloud import KEY, ScriptedCloud, running
from tests.program.program import answer, ispindel
from tests.program.terminal import NARROW, at_terminal
from tests.system.cli.filling import fill_with

LONG = "Grandmother's Extraordinarily Long-Named Imperial Oatmeal Stout with Vanilla, " * 2
URL = "https://" + "brewing-data-service." * 6 + "example"
RECIPE = f"<RECIPES><RECIPE><NAME>{LONG}</NAME><STYLE><NAME>{LONG}</NAME></STYLE></RECIPE></RECIPES>"

LISTS = (
    "accounts list",
    "keys list",
    "folders list",
    "sessions list",
    "devices list",
    "recipes list",
    "quarantine list",
    "readings",
    "targets list",
)


@pytest.fixture
async def full(tmp_path: Path) -> Path:
    """A gateway's data in which everything that has a name has a long one."""
    data = tmp_path / "data"
    await fill_with(data, [ispindel(12_345_678, name=LONG[:60]), ispindel(2, name="短い名前" * 9), LONG * 3])
    await answer(data, ("accounts", "add", LONG))
    await answer(data, ("keys", "add", LONG))
    await answer(data, ("folders", "add", "--kind", "brewsession", LONG))
    document, key = tmp_path / "recipe.xml", tmp_path / "x.key"
    document.write_text(RECIPE)
    key.write_text(KEY)
    await answer(data, ("recipes", "import", str(document)))
    words = ("--batchcode", LONG, "--phase", LONG, "--folder", "1", "--upstream-id", "123456789")
    await answer(data, ("sessions", "add", "--recipe", "1", *words))
    await answer(data, ("targets", "add", "club", URL, "--key-file", str(key)))
    return data


@pytest.mark.parametrize("words", LISTS)
async def test_a_list_fits_a_terminal(full: Path, words: str) -> None:
    status, shown = await at_terminal(full, *words.split())
    assert status == 0
    table = shown.partition("(")[0] if words == "targets list" else shown
    assert max(map(_columns, table.splitlines())) <= NARROW, shown
    if words != "targets list":
        assert "…" in shown or "--wide shows all)" in shown


def _columns(line: str) -> int:
    return sum(2 if "\u2e80" < char < "\uffe0" else 1 for char in line)


@pytest.mark.parametrize("words", [words for words in LISTS if words not in {"readings", "targets list"}])
async def test_wide_and_a_pipe_get_everything(full: Path, words: str) -> None:
    piped = await answer(full, words)
    assert "…" not in piped.out
    status, shown = await at_terminal(full, *words.split(), "--wide")
    assert (status, "…" in shown) == (0, False)
    assert shown.splitlines()[: len(piped.lines)] == piped.lines
    _, cut = await at_terminal(full, *words.split())
    assert "--wide shows all)" in cut


async def test_what_is_left_out_first_is_said(full: Path) -> None:
    _, shown = await at_terminal(full, "devices", "list")
    assert shown.splitlines()[0].split()[:2] == ["ID", "NAME"]
    assert "(without KEY; … marks what is cut; --wide shows all)" in shown
    _, broad = await at_terminal(full, "devices", "list", columns=250)
    assert broad.splitlines()[0].split()[:3] == ["ID", "KEY", "NAME"]
    assert "…" not in broad


async def test_the_sessions_of_a_service_fit_too(full: Path, tmp_path: Path) -> None:
    record = {
        "id": "123456789",
        "batchcode": LONG,
        "recipe_title": LONG,
        "phase": LONG,
        "userdate": "2026-03-01",
    }
    async with running(ScriptedCloud(listed=[record])) as cloud:
        words = ("targets", "login", "own", "--url", cloud.url, "--key-file", str(tmp_path / "x.key"))
        await answer(full, words)
        status, shown = await at_terminal(full, "targets", "sessions", "own")
    assert status == 0
    assert max(map(len, shown.splitlines()[:2])) <= NARROW
    assert "123456789" in shown
