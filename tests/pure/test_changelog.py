"""The form of CHANGELOG.md, so that a release can take its notes from there."""

import re
from datetime import date
from pathlib import Path

from gateway import __version__

PROJECT = Path(__file__).parents[2]
TEXT = (PROJECT / "CHANGELOG.md").read_text("utf-8")

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]

ENTRY_CHARACTERS = 400
"""An entry says what a user notices, not how it was made."""


def sections() -> dict[str, str]:
    """The text below each heading of a release."""
    parts = re.split(r"^## (.*)$", TEXT, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_it_says_first_what_it_is_about() -> None:
    lines = TEXT.splitlines()
    assert lines[:2] == ["# Changelog", ""]
    assert lines[2].startswith("hydrometer-gateway keeps every reading of your hydrometer")


def test_the_newest_release_is_first_and_is_this_version() -> None:
    headings = list(sections())
    assert headings.pop(0) == "[Unreleased]"
    versions, days = [], []
    for heading in headings:
        match = re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d{2}-\d{2})", heading)
        assert match, heading
        versions.append(tuple(map(int, match.groups()[:3])))
        days.append(date.fromisoformat(match[4]))
    assert versions == sorted(set(versions), reverse=True)
    assert days == sorted(days, reverse=True)
    assert ".".join(map(str, versions[0])) == __version__


def test_each_section_has_lists_of_sentences() -> None:
    for heading, text in sections().items():
        parts = re.split(r"^### (.*)$", text, flags=re.MULTILINE)
        kinds = parts[1::2]
        assert kinds == [kind for kind in KINDS if kind in kinds], heading
        assert kinds or heading == "[Unreleased]", f"{heading} says nothing"
        for kind, body in zip(kinds, parts[2::2], strict=True):
            entries = re.split(r"^- ", body, flags=re.MULTILINE)
            assert entries.pop(0).strip() == "", f"{heading} {kind} has text outside its list"
            assert entries, f"{heading} {kind} is empty"
            for entry in entries:
                assert all(line.startswith("  ") for line in entry.rstrip().splitlines()[1:]), entry
                assert entry.rstrip().endswith((".", "`")), entry
                assert entry[0].isupper() or entry[0] == "`", entry
                assert len(entry) <= ENTRY_CHARACTERS, entry
