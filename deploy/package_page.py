"""The README as a package page, where links to files of the project lead nowhere: only their words stay."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

ELSEWHERE = r"(?:[a-z]+:)?//|mailto:"
"""How a target begins that is no file of the project."""


def page(readme: str) -> str:
    """Return the text without pictures of the project, and without links into it. Code stays as it is."""
    parts = re.split(r"(^```.*?^```$)", readme, flags=re.DOTALL | re.MULTILINE)
    for number in range(0, len(parts), 2):
        for pattern, left in (
            (rf"<picture>(?:(?!</picture>).)*?\ssrc=\"(?!{ELSEWHERE}).*?</picture>\n*", ""),
            (rf"<img\s[^>]*?\bsrc=\"(?!{ELSEWHERE})[^>]*>\n*", ""),
            (rf"!\[[^\]]*\]\((?!{ELSEWHERE})[^)]*\)\n*", ""),
            (rf"<a\s[^>]*?\bhref=\"(?!{ELSEWHERE})[^>]*>(.*?)</a>", r"\1"),
            (rf"\[([^\]]+)\]\((?!{ELSEWHERE})[^)]*\)", r"\1"),
        ):
            parts[number] = re.sub(pattern, left, parts[number], flags=re.DOTALL)
    return "".join(parts)


class PackagePage(MetadataHookInterface):
    """Tells hatch the page."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the page to the metadata of the package."""
        text = page((Path(self.root) / "README.md").read_text("utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
