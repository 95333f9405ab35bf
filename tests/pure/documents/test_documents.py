"""What README.md and docs/ name exists: links, anchors, commands, options, variables, paths, messages."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
from typer.core import TyperGroup, TyperOption

from gateway.cli.main import app
from gateway.drivers.families import families
from tests.cases import each
from tests.pure.documents.generated import MADE, filled, leaves, options_of
from tests.pure.documents.pages import PROGRAM, README, ROOT, Page, page, pages

PAGES = pages()
README_WORDS, README_LINES = 1200, 135
MEAN_WORDS, MOST_WORDS = 20, 40
NOT_RUN, NOT_RUN_MOST = "not run here:", 3

BANNED = re.compile(
    r"\b(simply|just|easy|easily|obviously|of course|please note"
    r"|color|colors|behavior|favorite|center|centers|gray|fiber|canceled|labeled|initialize\w*|organize\w*)\b",
    re.IGNORECASE,
)
"""Words that help nobody, and American spellings."""

PLACES = ("deploy/", "docs/", "gateway/", "sample_devices/", "tests/", ".ci/")
"""What a path of the project begins with."""

SEPARATORS = {";", "&&", "||", "|", ">", ">>", "<"}

OTHER_OPTIONS = {"--help", "--version", "--mutate", "--write", "--network", "--http", "--mqtt", "--tcp"}
"""Options in a text that belong to no command: of the whole program, tests, Docker and `sample_devices`."""

TAKES_MORE = "doctor"
"""The command that takes the options of `serve`, too."""

MADE_UP = ("cellar_float",)
"""What a path of an example has in it: nothing is there."""


@cache
def anchors(path: Path) -> set[str]:
    return Page(path).anchors


@each("one", PAGES)
def test_every_link_leads_somewhere(one: Page) -> None:
    for link in one.links:
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (one.path.parent / parts.path).resolve() if parts.path else one.path
        assert target.exists(), f"{one.name}: {link}"
        if parts.fragment:
            assert parts.fragment in anchors(target), f"{one.name}: {link}"


@each("one", PAGES)
def test_every_page_is_reached_from_the_list_of_pages(one: Page) -> None:
    listed = {(ROOT / "docs" / link).resolve() for link in page("README.md").links}
    assert one in (README, page("README.md")) or one.path in listed


@each("one", PAGES)
def test_sentences_are_short_and_plain(one: Page) -> None:
    counted = [(len(sentence.split()), sentence) for sentence in one.sentences]
    assert not [sentence for words, sentence in counted if words > MOST_WORDS]
    assert sum(words for words, _ in counted) / len(counted) <= MEAN_WORDS
    assert not [(found[0], sentence) for _, sentence in counted if (found := BANNED.search(sentence))]


def test_the_readme_is_short() -> None:
    assert len(README.text.split()) <= README_WORDS
    assert len(README.text.splitlines()) <= README_LINES


def test_the_readme_says_why_a_command_is_not_run() -> None:
    comments = [block.comment for block in README.blocks if block.language == "sh" and block.comment]
    assert all(comment.startswith(NOT_RUN) for comment in comments)
    assert len(comments) <= NOT_RUN_MOST


@each("one", PAGES)
def test_commands_can_be_copied(one: Page) -> None:
    """Each is one line; the prompt and the answer are not in the way."""
    for block in one.blocks:
        if block.language == "sh" and PROGRAM in block.text:
            assert "\\\n" not in block.text, f"{one.name}:{block.line}"
            assert not re.search(r"^[$>%] ", block.text, re.MULTILINE), f"{one.name}:{block.line}"


@cache
def known_commands() -> dict[str, Any]:
    return {leaf.words: leaf for leaf in leaves()}


@cache
def groups() -> set[str]:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    return {name for name, command in root.commands.items() if isinstance(command, TyperGroup)}


def calls(line: str) -> Iterator[list[str]]:
    """The words behind the program's name, of each call of the program in a line of a shell."""
    part: list[str] = []
    for word in [*shlex.split(line), ";"]:
        if word not in SEPARATORS:
            part.append(word)
            continue
        names = [place for place, each in enumerate(part) if each.rpartition("/")[2] == PROGRAM]
        if names and part[: names[0]] in ([], ["sudo"]):
            yield part[names[0] + 1 :]
        part = []


def named(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and the words behind its name; None for a group, or no command."""
    for number in (2, 1):
        name = " ".join(words[:number])
        if name in known_commands():
            return known_commands()[name], words[number:]
    assert words[0] in groups(), f"there is no command {words[0]}"
    assert len(words) == 1, f"there is no command {' '.join(words[:2])}"
    return None, []


@each("one", PAGES)
def test_every_command_can_be_run_as_it_stands(one: Page) -> None:
    lines = [line for block in one.blocks if block.language == "sh" for line in block.commands]
    for words in [words for line in lines for words in calls(line)]:
        leaf, rest = named(words)
        assert leaf is not None, f"{one.name}: {words}"
        given, behind, _ = leaf.command.make_parser(leaf.context).parse_args(rest)
        missing = [each.name for each in leaf.command.params if each.required and not given.get(each.name)]
        assert (missing, behind) == ([], []) or leaf.words == TAKES_MORE, f"{one.name}: {words}"


@each("one", PAGES)
def test_every_command_in_a_text_exists(one: Page) -> None:
    first = {words.split()[0] for words in known_commands()}
    for span in one.spans:
        words = span.removeprefix(f"{PROGRAM} ").split()
        is_ours = span.startswith(f"{PROGRAM} ") or (len(words) > 1 and words[0] in first)
        if not is_ours or words[0] == "COMMAND" or words[0].startswith("--"):
            continue
        leaf, rest = named([word for word in words if word not in {"--help", "..."}])
        options = (
            {flag for option in options_of(leaf.command) for flag in flags_of(option)} if leaf else set()
        )
        assert {word for word in rest if word.startswith("--")} <= options, f"{one.name}: {span}"


def flags_of(option: TyperOption) -> list[str]:
    return [*option.opts, *option.secondary_opts]


@each("one", PAGES)
def test_every_option_in_a_text_exists(one: Page) -> None:
    known = {flag for leaf in leaves() for option in options_of(leaf.command) for flag in flags_of(option)}
    for span in one.spans:
        if span.startswith("--"):
            assert re.split(r"[ =]", span)[0] in known | OTHER_OPTIONS, f"{one.name}: {span}"


@cache
def variables() -> set[str]:
    records = [each.get_help_record(leaf.context) for leaf in leaves() for each in options_of(leaf.command)]
    return {name for record in records if record for name in re.findall(r"GATEWAY_[A-Z_]+", record[1])}


@each("one", PAGES)
def test_every_variable_exists(one: Page) -> None:
    for variable in re.findall(r"GATEWAY_[A-Z_]+[A-Z]", one.text):
        assert variable in variables(), f"{one.name}: {variable}"


@each("one", PAGES)
def test_every_path_of_the_project_exists(one: Page) -> None:
    told = [
        *one.spans,
        *(word for block in one.blocks if block.language == "sh" for word in block.text.split()),
    ]
    for span in told:
        is_path = span.startswith(PLACES) and re.fullmatch(r"[\w./-]+", span)
        if is_path and not any(part in span for part in MADE_UP):
            assert (ROOT / span.rstrip("/")).exists(), f"{one.name}: {span}"


def test_the_table_of_messages_has_the_programs_words() -> None:
    written = (ROOT / "gateway").rglob("*.py")
    source = "\0".join(
        node.value
        for path in written
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    told = page("operating.md").text.partition("## Messages and remedies")[2]
    messages = re.findall(r"^\| `([^`]+)` \|", told, re.MULTILINE)
    assert len(messages) > 20
    assert not [message for message in messages if message not in source]


def test_the_readme_names_every_family() -> None:
    text = " ".join(README.text.split())
    titles = [part for family in families().values() for part in family.title.split(", ")]
    left_out = [title for title in titles if title not in text]
    assert left_out == ["Brewfather custom stream", "Brewer's Friend stream", "Another device or program"]


def test_the_promises_name_every_harness_and_no_other() -> None:
    table = page("promises.md").text.partition("| we promise |")[2].partition("\n\n")[0]
    named = {*re.findall(r"\b[A-Z]\d+b?\b", table)} - {"P1"}
    made = {line.split("|")[1].strip() for line in MADE["harnesses"]().splitlines()[2:]}
    assert named <= made
    assert len(made - named) <= len(made) / 5, sorted(made - named)


@each("one", [one for one in PAGES if "<!-- made by python -m tests.pure.documents" in one.text])
def test_the_made_parts_are_of_today(one: Page) -> None:
    assert filled(one.text) == one.text, "run python -m tests.pure.documents --write"


def test_a_changed_part_is_noticed() -> None:
    text = page("promises.md").text
    changed = text.replace("| D1 | kill -9", "| D1 | kill -8")
    assert changed != text
    assert filled(changed) == text


@pytest.mark.parametrize(
    ("markdown", "wanted"),
    [
        ("Do this. Then that.", ["Do this.", "Then that."]),
        ("See `a.b. c` now!", ["See CODE now!"]),
        ("# A heading\n\n- one\n- two", ["one", "two"]),
        ("| a long cell. Two. |\n|---|\n| x |", []),
    ],
)
def test_sentences_are_found(markdown: str, wanted: list[str]) -> None:
    one = Page(ROOT / "docs" / "made-up.md")
    one.__dict__["text"] = markdown
    assert one.sentences == wanted
