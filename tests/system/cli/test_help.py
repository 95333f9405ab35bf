"""The help of every command: whole sentences, each with its full stop."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.core import TyperGroup
from typer.testing import CliRunner

from gateway.cli.commands import ROWS
from gateway.cli.main import app
from gateway.cli.options import Command

DEFAULT = re.compile(r" ?\[default: [^]]*\]$")
EXAMPLE = re.compile(r"Examples?\b|(hydrometer-gateway|sudo|apt) |For (bash|zsh|fish): ")


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    yield path, command
    if isinstance(command, TyperGroup):
        for name in command.commands:
            yield from commands(command.commands[name], (*path, name))


ALL = dict(commands(typer.main.get_command(app)))


def texts(command: Command) -> Iterator[str]:
    """Every text of a command's help, each on one line: its paragraphs, and what is said of each option."""
    for paragraph in (command.help or "").split("\n\n"):
        sentences = re.split(r"\bExamples?: ", " ".join(paragraph.split()))[0].strip()
        if sentences and not EXAMPLE.match(sentences):
            yield sentences
    for option in command.params:
        yield DEFAULT.sub("", " ".join((getattr(option, "help", None) or "").split()))


def test_the_line_of_brew_sessions_names_commands_that_there_are() -> None:
    """People type the words of that line."""
    group = ALL[("sessions",)]
    assert isinstance(group, TyperGroup)
    words = ROWS["sessions"].line.removeprefix("Brew sessions: ").removesuffix(".").split(", ")
    assert {word.removesuffix("s") for word in words} <= group.commands.keys()


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_help_is_made_of_sentences(path: tuple[str, ...]) -> None:
    assert [text for text in texts(ALL[path]) if not text.endswith((".", "?"))] == []


def test_every_line_of_the_list_of_commands_is_a_sentence() -> None:
    assert [name for name, row in ROWS.items() if not row.line.endswith(".")] == []


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_no_help_names_types_of_python_or_the_largest_number_of_a_database(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"}).stdout
    assert "--help" in shown
    assert re.findall(r"<(?:str|int|float|path|dir|file|list)\b[^>]*>|\d*<=x|x<=|\d{19}", shown) == []


def test_a_help_names_values_and_bounds_in_plain_words() -> None:
    shown = " ".join(CliRunner().invoke(app, ["targets", "map", "--help"]).stdout.split())
    assert "targets map [OPTIONS] {NAME} [SESSION] [NUMBER]" in shown
    assert "--data-dir DIRECTORY " in shown
    assert "--device TEXT " in shown
    assert "0 stops it. [0 or more]" in shown


GROUPS = [path for path, command in ALL.items() if isinstance(command, TyperGroup)]


@pytest.mark.parametrize("path", GROUPS, ids=" ".join)
def test_the_list_of_commands_cuts_no_sentence(path: tuple[str, ...]) -> None:
    """In a window of 80 columns."""
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "80"}).stdout
    lines = shown.partition("\nCommands:\n")[2].splitlines()
    assert len(lines) >= len(ROWS if path == () else ALL[path].commands)  # type: ignore[union-attr]
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []
