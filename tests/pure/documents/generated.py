"""The parts of the documents that are made: every command, every exit code and message, every harness.

`python -m tests.pure.documents --write` puts them between their marks; a test compares them.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup, TyperOption

from gateway.cli.main import app
from gateway.cli.manual import HAND_WRITTEN
from gateway.cli.options import SHARED
from gateway.cli.values import value_word
from tests.faults.catalogue import scenarios
from tests.pure.documents.pages import PROGRAM, ROOT, Page, pages

BEGIN = re.compile(r"<!-- made by python -m tests\.pure\.documents --write: ([a-z]+) -->")
END = "<!-- end -->"

EXTRA = re.compile(r"\s+\[([^][]*)\]$")
"""What typer writes behind the help of an option: its variable, its default, its bounds."""

SAID_DEFAULT = re.compile(r"\s*\[default: ([^][]*)\]")
"""A default that the help says in words."""


MESSAGES = "tests/system/cli/messages.txt"
"""What the command line really said: a test compares it."""


class Leaf(NamedTuple):
    """A command that can be run, with its words and its context."""

    words: str
    command: Any
    context: Any


@cache
def leaves() -> list[Leaf]:
    """Every command that can be run, in the order of the help."""
    root = typer.main.get_command(app)
    context = root.make_context(PROGRAM, [], resilient_parsing=True)
    return [*_leaves(root, context, "")]


def _leaves(command: Any, context: Any, words: str) -> Iterator[Leaf]:
    if words and (not isinstance(command, TyperGroup) or command.invoke_without_command):
        yield Leaf(words, command, context)
    for name, inner in getattr(command, "commands", {}).items():
        below = context.__class__(inner, info_name=name, parent=context, **inner.context_settings)
        yield from _leaves(inner, below, f"{words} {name}".strip())


def options_of(command: Any) -> list[TyperOption]:
    """The options of a command but for `--help`."""
    found = [each for each in command.params if isinstance(each, TyperOption) and not each.hidden]
    return [each for each in found if "--help" not in each.opts]


def made_commands() -> str:
    """Every command: its help, its arguments, and a table of its options."""
    return "\n\n".join(_command(leaf) for leaf in leaves())


def _command(leaf: Leaf) -> str:
    arguments = [each for each in leaf.command.params if not isinstance(each, TyperOption)]
    words = [_argument(each) for each in arguments]
    parts = [f"## {leaf.words}", f"`{' '.join([PROGRAM, leaf.words, *words])}`"]
    parts += [_paragraph(text) for text in re.split(r"\n\s*\n", leaf.command.help.strip())]
    rows = [f"| `{value_word(each)}` | | | {_cell(str(each.help or ''))} |" for each in arguments]
    options = [each for each in options_of(leaf.command) if not SHARED_FLAGS & {*each.opts}]
    rows += [_row(option, leaf.context) for option in options]
    if rows:
        parts.append("\n".join(["| option | variable | default | meaning |", "|---|---|---|---|", *rows]))
    return "\n\n".join(parts)


def _argument(argument: Any) -> str:
    """What stands for an argument in the line of a command, as its help writes it."""
    word = value_word(argument)
    return (word if argument.required else f"[{word}]") + ("..." if argument.nargs == -1 else "")


SHARED_FLAGS = {*SHARED}


def _paragraph(text: str) -> str:
    words = " ".join(text.split())
    example = re.fullmatch(rf"(?:Examples?: )?({PROGRAM} [^()]*)", words)
    return f"```sh\n{example[1]}\n```" if example else words.replace("<", "\\<")


def _row(option: TyperOption, context: Any) -> str:
    record = option.get_help_record(context)
    text = str(record[1]) if record else ""
    extra = EXTRA.search(text)
    parts = dict(part.partition(": ")[::2] for part in (extra[1].split("; ") if extra else []))
    text = EXTRA.sub("", text)
    said = SAID_DEFAULT.search(text)
    default = str(parts.get("default", said[1] if said else ""))
    flags = ", ".join(f"`{flag}`" for flag in [*option.opts, *option.secondary_opts])
    variable = f"`{parts['env var']}`" if "env var" in parts else ""
    return f"| {flags} | {variable} | {_cell(default)} | {_cell(SAID_DEFAULT.sub('', text))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


def made_harnesses() -> str:
    """Every harness with what it does and its full size."""
    rows = [
        f"| {each.id} | {_cell(each.what)} | {each.full:,} {each.unit} |" for each in scenarios().values()
    ]
    return "\n".join(["| id | what happens | full size |", "|---|---|---|", *rows])


def made_exits() -> str:
    """Every exit code, as the manual page has it."""
    said = tomllib.loads(HAND_WRITTEN.read_text("utf-8"))["exit status"]
    return "\n".join(
        ["| code | it means |", "|---|---|", *(f"| {code} | {_cell(text)} |" for code, text in said.items())]
    )


def made_messages() -> str:
    """What the command line answers to mistakes: its exit code stands behind it."""
    parts = []
    for section in re.split(r"^# ", (ROOT / MESSAGES).read_text("utf-8"), flags=re.MULTILINE)[1:]:
        heading, _, rest = section.partition("\n")
        answers = re.findall(r"^\$ .*?^\[\d+\]$", rest, re.DOTALL | re.MULTILINE)
        failed = "\n".join(answer for answer in answers if not answer.endswith("[0]"))
        parts.append(f"### {heading}\n\n```text\n{failed}\n```")
    return "\n\n".join(parts)


MADE: Mapping[str, Callable[[], str]] = {
    "commands": made_commands,
    "exits": made_exits,
    "harnesses": made_harnesses,
    "messages": made_messages,
}
"""The functions that make the parts, by the names in the marks."""


def filled(text: str) -> str:
    """A page with its parts of today."""
    made, at = "", 0
    for found in BEGIN.finditer(text):
        end = text.index(END, found.end())
        made += f"{text[at : found.end()]}\n\n{MADE[found[1]]()}\n\n"
        at = end
    return made + text[at:]


def write() -> list[Page]:
    """Write the parts into their pages. Return the pages that have changed."""
    changed = [page for page in pages() if filled(page.text) != page.text]
    for page in changed:
        page.path.write_text(filled(page.text), "utf-8")
    return changed
