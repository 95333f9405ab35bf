"""The documents, taken apart: README.md and every page below docs/."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[3]
PROGRAM = "hydrometer-gateway"

COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
MARKDOWN = MarkdownIt("commonmark").enable("table")


@dataclass(frozen=True)
class Block:
    """Code between fences: its language, its line, the headings above it, and the comment right before it."""

    language: str
    text: str
    line: int
    headings: tuple[str, ...]
    comment: str

    @property
    def commands(self) -> list[str]:
        """The command lines, continued ones as one line; comments and blank lines are dropped."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line for line in map(without_comment, lines) if line]


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    @cached_property
    def tokens(self) -> list[Token]:
        return MARKDOWN.parse(self.text)

    @cached_property
    def headings(self) -> list[str]:
        """The headings of all levels as they read, without marks."""
        return [plain(after) for token, after in self._pairs() if token.type == "heading_open"]

    @cached_property
    def anchors(self) -> set[str]:
        """What links can point at; forges make it of the headings, with a number from the second on."""
        found: dict[str, int] = {}
        made = set()
        for heading in self.headings:
            anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
            times = found[anchor] = found.get(anchor, -1) + 1
            made.add(f"{anchor}-{times}" if times else anchor)
        return made

    @cached_property
    def blocks(self) -> list[Block]:
        """The code between fences, in order."""
        above: dict[int, str] = {}
        found, comment = [], ""
        for token, after in self._pairs():
            if token.type == "heading_open":
                level = int(token.tag[1:])
                above = {depth: words for depth, words in above.items() if depth < level}
                above[level] = plain(after)
            if token.type == "fence":
                line = (token.map or [0])[0] + 1
                found.append(Block(token.info, token.content, line, tuple(above.values()), comment))
            comment = " ".join(COMMENT.findall(token.content)).strip() if token.type == "html_block" else ""
        return found

    def below(self, heading: str) -> list[Block]:
        """The shell blocks below a heading, those of its sections included."""
        assert heading in self.headings, f"{self.name} has no heading {heading!r}"
        return [block for block in self.blocks if block.language == "sh" and heading in block.headings]

    def commands(self, heading: str) -> list[str]:
        """The command lines below a heading."""
        return [line for block in self.below(heading) for line in block.commands]

    @cached_property
    def inlines(self) -> list[Token]:
        """The texts of paragraphs, headings, list items and table cells."""
        return [token for token in self.tokens if token.type == "inline"]

    @cached_property
    def sentences(self) -> list[str]:
        """The sentences of paragraphs and list items, without tables and headings; code is one word."""
        found, depth = [], 0
        for before, token in zip([Token("start", "", 0), *self.tokens], self.tokens, strict=False):
            depth += {"table_open": 1, "table_close": -1}.get(token.type, 0)
            if token.type == "inline" and not depth and before.type != "heading_open":
                found += re.split(r"(?<=[.!?])[\"*)]*\s+", plain(token, code="CODE").strip())
        return [sentence for sentence in found if sentence]

    @cached_property
    def spans(self) -> list[str]:
        """The `code` within texts."""
        return [
            child.content
            for token in self.inlines
            for child in token.children or []
            if child.type == "code_inline"
        ]

    @cached_property
    def links(self) -> list[str]:
        """Where links and pictures point."""
        named = ("href", "src")
        found = [str(child.attrs[name]) for child in self._children for name in named if name in child.attrs]
        html = [token.content for token in self.tokens if token.type == "html_block"]
        html += [child.content for child in self._children if child.type == "html_inline"]
        return found + re.findall(r'(?:href|src|srcset)="([^"]+)"', " ".join(html))

    @cached_property
    def _children(self) -> list[Token]:
        return [child for token in self.inlines for child in token.children or []]

    def _pairs(self) -> Iterator[tuple[Token, Token]]:
        return zip(self.tokens, [*self.tokens[1:], Token("end", "", 0)], strict=True)


def plain(token: Token, code: str | None = None) -> str:
    """The words of a text as they read, links without their addresses; `code` stands for code, if given."""
    made = {"softbreak": " ", "hardbreak": " "} | ({} if code is None else {"code_inline": code})
    return "".join(
        made.get(child.type, child.content)
        for child in token.children or []
        if child.type in {"text", "code_inline", "softbreak", "hardbreak"}
    )


def without_comment(line: str) -> str:
    """A command line without the comment behind it."""
    at = re.search(r"(?:^|\s)#.*$", line)
    while at is not None:
        try:
            shlex.split(line[: at.start()])
        except ValueError:  # the # stands between quotes
            return line.strip()
        return line[: at.start()].strip()
    return line.strip()


README = Page(ROOT / "README.md")


def pages() -> list[Page]:
    """README.md first, then the pages below docs/ by name."""
    return [README, *(Page(path) for path in sorted((ROOT / "docs").glob("*.md")))]


def page(name: str) -> Page:
    """A page by its name below docs/."""
    return Page(ROOT / "docs" / name)


def commands() -> list[str]:
    """The command lines of all pages."""
    return [
        line for one in pages() for block in one.blocks if block.language == "sh" for line in block.commands
    ]
