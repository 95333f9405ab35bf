"""The manual pages, written from the commands themselves: `python -m gateway.cli.manual docs/man`.

What the commands cannot say (files, variables, exit codes, examples) stands in `manual.toml` beside this
module.
"""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup, TyperOption

from gateway import __version__
from gateway.cli.commands import ROWS
from gateway.cli.options import SHARED
from gateway.cli.values import value_word

PROGRAM = "hydrometer-gateway"

HAND_WRITTEN = Path(__file__).with_suffix(".toml")

SHARED_FLAGS = {*SHARED, "--help"}
"""Options that nearly every command has. A page describes them once."""

EXTRA = re.compile(r"  \[([^][]*)\]$")
"""What typer writes behind the help of an option: its variable, its default, its bounds."""

CODE = re.compile(r"`([^`]+)`")


def pages() -> dict[str, str]:
    """Return the text of every page by the name of its file."""
    from gateway.cli.main import app

    written = tomllib.loads(HAND_WRITTEN.read_text("utf-8"))
    root = typer.main.get_command(app)
    context = root.make_context(PROGRAM, [], resilient_parsing=True)
    texts = {PROGRAM: _page(root, context, _root_body(root, context, written))}
    for name in ROWS:
        command = root.commands[name]  # type: ignore[attr-defined]
        inner = context.__class__(command, info_name=name, parent=context)
        texts[_page_name(name)] = _page(command, inner, _body(command, inner, written))
    return {f"{name}.1": "".join(f"{line}\n" for line in lines) for name, lines in texts.items()}


def _page_name(name: str) -> str:
    return f"{PROGRAM}-{name}"


def _page(command: Any, context: Any, body: Iterator[str]) -> list[str]:
    """Return a page's lines: its head, its name with the first sentence of its help, and the rest."""
    title = context.command_path.replace(" ", "-")
    first = _paragraphs(command.help)[0].rstrip(".")
    return [
        f'.TH {_argument(title.upper())} 1 "" {_argument(f"{PROGRAM} {__version__}")} "User Commands"',
        ".nh",  # a command that is copied has no hyphens of the page's
        ".ad l",
        ".SH NAME",
        rf"{_roff(title)} \- {_roff(first[0].lower() + first[1:] if first[1].islower() else first)}",
        *body,
    ]


def _root_body(root: Any, context: Any, written: Mapping[str, Any]) -> Iterator[str]:
    yield from (".SH SYNOPSIS", rf"\fB{_roff(PROGRAM)}\fP \fICOMMAND\fP [\fIOPTIONS\fP]")
    yield from (".SH DESCRIPTION", *_text(root.help))
    yield ".SH COMMANDS"
    for name, row in ROWS.items():
        yield from (".TP", rf"\fB{_roff(_page_name(name))}\fP(1)", _filled(row.line))
    yield ".SH OPTIONS"
    for option in _options(root):
        yield from _option(option, context)
    for heading in ("files", "environment", "exit status"):
        yield f".SH {heading.upper()}"
        yield from _items(written[heading])
    yield from _examples(written["examples"][PROGRAM])
    yield ".SH SEE ALSO"
    yield ",\n".join(rf"\fB{_roff(_page_name(name))}\fP(1)" for name in ROWS)


def _body(command: Any, context: Any, written: Mapping[str, Any]) -> Iterator[str]:
    """Yield a command's page below its name; that of a group has a section for each of its commands."""
    leaves = list(_leaves(command, context))
    yield ".SH SYNOPSIS"
    for place, (leaf, inner) in enumerate(leaves):
        yield from (*([".br"] if place else []), _usage(leaf, inner))
    yield from (".SH DESCRIPTION", *_text(command.help))
    if leaves[0][0] is not command:
        yield ".SH COMMANDS"
    for leaf, inner in leaves:
        if leaf is not command:
            yield f".SS {_argument(inner.command_path.removeprefix(f'{PROGRAM} '))}"
            yield from _text(leaf.help)
        arguments = [each for each in leaf.params if not isinstance(each, TyperOption)]
        options = [each for each in _options(leaf) if not SHARED_FLAGS & {*each.opts}]
        if leaf is command and arguments:
            yield ".SH ARGUMENTS"
        for argument in arguments:
            yield from (".TP", rf"\fI{_roff(value_word(argument))}\fP", _filled(argument.help))
        if leaf is command and options:
            yield ".SH OPTIONS"
        for option in options:
            yield from _option(option, inner)
    yield ".SH OPTIONS OF EVERY COMMAND"
    shared = {each.opts[0]: (each, inner) for leaf, inner in leaves for each in _options(leaf)}
    for flag, (option, inner) in shared.items():
        if flag in SHARED_FLAGS:
            yield from _option(option, inner)
    yield from (".TP", r"\fB\-h\fP, \fB\-\-help\fP", "Show a short help and exit.")
    name = context.info_name
    if name in written["examples"]:
        yield from _examples(written["examples"][name])
    yield from (
        ".SH EXIT STATUS",
        rf"0 if it worked; the others are in \fB{_roff(PROGRAM)}\fP(1).",
        ".SH SEE ALSO",
        rf"\fB{_roff(PROGRAM)}\fP(1)",
    )


def _leaves(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what can be run: the command, and those below it."""
    if not isinstance(command, TyperGroup) or command.invoke_without_command:
        yield command, context
    for name, inner in getattr(command, "commands", {}).items():
        yield from _leaves(inner, context.__class__(inner, info_name=name, parent=context))


def _options(command: Any) -> list[TyperOption]:
    return [each for each in command.params if isinstance(each, TyperOption) and not each.hidden]


def _usage(command: Any, context: Any) -> str:
    words = [rf"\fB{_roff(context.command_path)}\fP"]
    for each in command.params:
        if not isinstance(each, TyperOption):
            name = rf"\fI{_roff(value_word(each))}\fP"
            many = r"\~..." if each.nargs == -1 else ""
            words.append(f"{name}{many}" if each.required else f"[{name}{many}]")
        elif each.required:
            words.append(rf"\fB{_roff(each.opts[0])}\fP \fI{_roff(value_word(each))}\fP")
    return " ".join([*words, r"[\fIOPTIONS\fP]"])


def _option(option: TyperOption, context: Any) -> Iterator[str]:
    """Yield an option with its help, its default, and its variable."""
    flags = ", ".join(rf"\fB{_roff(flag)}\fP" for flag in option.opts)
    value = "" if option.is_flag else rf" \fI{_roff(value_word(option))}\fP"
    yield from (".TP", f"{flags}{value}")
    record = option.get_help_record(context)
    text = "" if record is None else record[1]
    extra = EXTRA.search(text)
    parts = extra[1].split("; ") if extra else []
    said = EXTRA.sub("", text)
    default = [f"The default is {part[9:]}." for part in parts if part.startswith("default: ")]
    variable = [f"Variable: {part[9:]}." for part in parts if part.startswith("env var: ")]
    yield _filled(" ".join(filter(None, [said, *default, *variable])))


def _items(items: Mapping[str, str]) -> Iterator[str]:
    for name, text in items.items():
        yield from (".TP", rf"\fB{_roff(name)}\fP", _filled(text))


def _examples(items: Sequence[Mapping[str, str]]) -> Iterator[str]:
    yield ".SH EXAMPLES"
    for item in items:
        yield from (".TP", rf"\fB{_roff(item['run'])}\fP", _filled(item["why"]))


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]


def _text(text: str) -> Iterator[str]:
    """Yield paragraphs; a paragraph that is a command stands indented and bold."""
    for place, part in enumerate(_paragraphs(text)):
        if part.startswith(f"{PROGRAM} "):
            yield from (".RS 4", ".PP", rf"\fB{_roff(part)}\fP", ".RE")
        else:
            yield from (*([".PP"] if place else []), _filled(part))


def _filled(text: str) -> str:
    """Return a paragraph for roff, with what stands in backticks in bold."""
    line = CODE.sub(lambda found: rf"\fB{found[1]}\fP", _roff(" ".join(text.split())))
    return rf"\&{line}" if line.startswith((".", "'")) else line


def _roff(text: str) -> str:
    """Escape what roff would read as its own; a hyphen stays one that can be copied."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return "".join(char if char.isascii() else rf"\[u{ord(char):04X}]" for char in text)


def _argument(text: str) -> str:
    return f'"{_roff(text)}"'


def main() -> None:
    """Write all pages into the directory that is named; remove pages of commands that are gone."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gateway.cli.manual DIRECTORY")
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    found = pages()
    for path in directory.glob(f"{PROGRAM}*.1"):
        if path.name not in found:
            path.unlink()
    for name, text in found.items():
        (directory / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
