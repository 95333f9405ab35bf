"""Tables at a terminal: they fit its width, and say what is missing; a pipe and --wide get everything."""

import re
from pathlib import Path
from unicodedata import east_asian_width

import pytest
import typer
from typer.core import TyperGroup

from gateway.cli.main import app
from gateway.cli.output import GREEN, Column, state, table
from tests.cloud import KEY, ScriptedCloud, running
from tests.program.program import answer, ispindel
from tests.program.terminal import at_terminal
from tests.system.cli.conftest import inside
from tests.system.cli.filling import fill_with

LONG = "Grandmother's Extraordinarily Long-Named Imperial Oatmeal Stout w"[:64]
JAPANESE = "短い名前" * 8
GLASSES = "🍺 Red 🍺" * 4
URL = "https://" + "brewing-data-service." * 6 + "example"
RECIPE = f"<RECIPES><RECIPE><NAME>{LONG}</NAME><STYLE><NAME>{JAPANESE}</NAME></STYLE></RECIPE></RECIPES>"
SECRET = "secret=0123456789abcdef0123456789abcdef"

LISTS = {
    "accounts list": "ID NAME KEYS CREATED",
    "alarms list": "",
    "alarms check": "ABOUT RULE FIRES",
    "audit list": "TIME ACTOR",
    "channels list": "NAME KIND WAITING LAST MESSAGE STATE",
    "devices list": "NAME SESSION GRAVITY TEMP SEEN STATE",
    "folders list": "ID KIND NAME FILED",
    "inbox list": "NUMBER NAME",
    "keys list": "NAME SCOPE LAST USED",
    "photos list 1": "UUID FILE",
    "quarantine list": "NUMBER ARRIVED",
    "readings": "TIME (UTC) NAME GRAVITY TEMP SESSION",
    "recipes list": "ID TITLE",
    "sessions list": "ID BATCHCODE",
    "sessions list --deleted": "ID BATCHCODE READINGS DELETED",
    "targets list": "NAME WAITING OLDEST STATE",
}
"""Lists, and the headings with which each begins at 60 columns and at 80."""

WHOLE = {"accounts list", "devices list", "folders list", "targets list"}
"""Lists that have these headings and no more."""

LINES_IN_A_PIPE = {"channels list", "targets list"}
"""Lists that have a line for each member in a pipe."""

STYLE = re.compile("\x1b\\[[0-9;]*m")


async def fill(data: Path, folder: Path) -> None:
    """Data in which everything that has a name has a long one, or one of wide characters."""
    names = (LONG, JAPANESE, GLASSES)
    await fill_with(data, [*(ispindel(n, name=name) for n, name in enumerate(names, 1)), LONG * 3])
    await answer(data, ("accounts", "add", LONG))
    await answer(data, ("keys", "add", LONG, "--expires", "90d"))
    await answer(data, ("folders", "add", "--kind", "brewsession", JAPANESE))
    document, key, secret = folder / "recipe.xml", folder / "x.key", folder / "hook"
    document.write_text(RECIPE)
    key.write_text(KEY)
    secret.write_text(SECRET)
    await answer(data, ("recipes", "import", str(document)))
    words = ("--phase", GLASSES, "--folder", "1", "--upstream-id", "123456789")
    await answer(data, ("sessions", "add", "--recipe", "1", "--batchcode", LONG, *words))
    await answer(data, ("sessions", "add", "--batchcode", JAPANESE))
    await answer(data, "sessions delete 2")
    await answer(data, ("targets", "add", "c" * 64, URL, "--key-file", str(key)))
    hook = ("--kind", "webhook", "--url", URL, "--secret-file", str(secret))
    await answer(data, ("channels", "add", "h" * 64, *hook))


@pytest.fixture
async def full(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    await fill(data, tmp_path)
    return data


def plain(shown: str) -> str:
    return STYLE.sub("", shown)


def columns_of(line: str) -> int:
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in line)


@pytest.mark.parametrize("columns", [80, 60])
async def test_every_list_fits_a_terminal(full: Path, columns: int) -> None:
    wrong = []
    async with inside(full):
        for words, headings in LISTS.items():
            status, coloured = await at_terminal(full, *words.split(), columns=columns)
            lines = plain(coloured).splitlines() or [""]
            first = " ".join(lines[0].split())
            if (
                status != 0
                or max(map(columns_of, lines)) > columns
                or not (first == headings if words in WHOLE else first.startswith(headings))
            ):
                wrong.append((words, status, coloured))
    assert not wrong


def test_every_list_is_among_the_tested_ones() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    lists = {
        f"{name} list" for name, group in root.commands.items() if "list" in getattr(group, "commands", ())
    }
    assert lists
    assert lists <= {" ".join(words.split()[:2]) for words in LISTS}
    for name in lists:
        command = root.commands[name.split()[0]].commands["list"]  # type: ignore[attr-defined]
        assert {"--json", "--wide"} <= {flag for option in command.params for flag in option.opts}, name


async def test_wide_and_a_pipe_get_everything(full: Path) -> None:
    async with inside(full):
        for words in LISTS.keys() - LINES_IN_A_PIPE - {"readings", "alarms list"}:
            piped = await answer(full, words)
            assert "…" not in piped.out
            status, coloured = await at_terminal(full, *words.split(), "--wide")
            shown = plain(coloured)
            assert (status, "…" in shown) == (0, False), words
            pairs = zip(piped.lines, shown.splitlines(), strict=False)
            # A device's state is shown on a terminal alone.
            assert all(line.startswith(same) for same, line in pairs), words
        for words in LINES_IN_A_PIPE:
            _, shown = await at_terminal(full, *words.split(), "--wide", columns=250)
            assert shown.splitlines() == (await answer(full, words)).lines


async def test_a_pipe_has_the_same_columns_for_ever(full: Path) -> None:
    heads = {words: (await answer(full, words)).lines[0] for words in ("devices list", "keys list")}
    assert re.split("  +", heads["devices list"]) == [
        *("ID", "KEY", "NAME", "SESSION", "READINGS", "LAST SEEN", "GRAVITY", "TEMP"),
    ]
    assert re.split("  +", heads["keys list"]) == [
        *("NAME", "KEY", "SCOPE", "LAST USED", "EXPIRES", "ACCOUNT", "CREATED"),
    ]


async def test_what_is_missing_is_said_and_a_roomy_terminal_has_it(full: Path) -> None:
    _, shown = await at_terminal(full, "devices", "list")
    assert plain(shown).splitlines()[-1] == "… marks what is cut; 3 more columns: `--wide`"
    _, broad = await at_terminal(full, "devices", "list", columns=250)
    assert set(broad.splitlines()[0].split()) > {"ID", "KEY", "READINGS", "STATE"}
    assert "…" not in broad
    assert "--wide" not in broad


async def test_times_are_ages_and_states_are_words_with_a_colour(tmp_path: Path) -> None:
    await fill_with(tmp_path, [ispindel(1, name="red")])
    _, shown = await at_terminal(tmp_path, "devices", "list")
    assert re.search(r"red +12.5 P +20.5 C +(just now|\d+ min ago)  \x1b\[32mok\x1b\[0m\n", shown), shown
    assert not STYLE.search((await answer(tmp_path, "devices list")).out)


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False),
    ],
)
async def test_colour_is_the_users_choice(
    tmp_path: Path, variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    await fill_with(tmp_path, [ispindel(1, name="red")])
    _, shown = await at_terminal(tmp_path, "devices", "list")
    assert bool(STYLE.search(shown)) is coloured


def test_colour_can_be_forced_into_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for variable, shown in (("", "STATE\nok\n"), ("1", "STATE\n\x1b[32mok\x1b[0m\n")):
        monkeypatch.setenv("FORCE_COLOR", variable)
        table([Column("STATE")], [[state("ok", GREEN)]])
        assert capsys.readouterr().out == shown


async def test_what_is_wrong_with_a_target_stands_below_the_table(full: Path) -> None:
    _, shown = await at_terminal(full, "targets", "list")
    assert "no gateway is running" in " ".join(plain(shown).split())
    async with inside(full):
        _, shown = await at_terminal(full, "targets", "list")
        assert re.search(r"c…  0 +\x1b\[90mnot tried yet", shown), shown
        await answer(full, ("targets", "pause", "c" * 64))
        _, shown = await at_terminal(full, "targets", "list")
    assert re.search(r"c…  0 +\x1b\[33mpaused", shown), shown


async def test_the_sessions_of_a_service_fit_too(full: Path, tmp_path: Path) -> None:
    record = {
        "id": "123456789",
        "batchcode": LONG,
        "recipe_title": JAPANESE,
        "phase": GLASSES,
        "userdate": "2026-03-01",
    }
    async with running(ScriptedCloud(listed=[record])) as cloud:
        words = ("targets", "login", "own", "--url", cloud.url, "--key-file", str(tmp_path / "x.key"))
        await answer(full, words)
        status, shown = await at_terminal(full, "targets", "sessions", "own", columns=60)
    assert status == 0
    assert max(map(columns_of, plain(shown).splitlines()[:2])) <= 60
    assert "123456789" in shown
