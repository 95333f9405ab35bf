"""The map of the code in `docs/developing.md` has every room; the pages that the code names are there."""

import re
from pathlib import Path

from tests.pure.test_architecture import RANKS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "developing.md").read_text("utf-8")


def rooms(heading: str, column: str) -> list[str]:
    """What stands in code in the first cells of the chapter's table."""
    chapter = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = chapter.partition(f"| {column} |")[2].partition("\n\n")[0]
    cells = [line.split(" | ")[0] for line in table.splitlines()[2:]]
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def folders(parent: Path) -> set[str]:
    return {
        f"{each.parent.name}/{each.name}/" for each in parent.iterdir() if (each / "__init__.py").exists()
    }


def test_every_room_of_the_code_is_on_the_map() -> None:
    listed = rooms("Where things are", "where")
    assert folders(ROOT / "gateway") <= {*listed}
    assert [room for room in listed if not (ROOT / room).exists()] == []


def test_no_room_stands_above_one_that_may_import_it() -> None:
    of_gateway = [room for room in rooms("Where things are", "where") if room.startswith("gateway/")]
    modules = [room.rstrip("/").removesuffix(".py").replace("/", ".") for room in of_gateway]
    # A room of several parts stands where the uppermost of them does.
    uppermost = [
        max(
            number
            for number, rank in enumerate(RANKS)
            for part in rank
            if f"gateway.{part}.".startswith(f"{each}.")
        )
        for each in modules
    ]
    assert uppermost == sorted(uppermost, reverse=True)


def test_every_folder_of_tests_is_in_the_table() -> None:
    listed = rooms("Tests", "folder")
    assert folders(ROOT / "tests") <= {*listed}
    assert [room for room in listed if not (ROOT / room).exists()] == []


def test_every_page_that_the_code_names_is_there() -> None:
    named = {
        page
        for folder in ("gateway", "deploy", "sample_devices")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".toml", ".yml", ".yaml", ".conf", ".service", ".html", ".json"}
        for page in re.findall(r"(?<![\w/])docs/[a-z-]+\.md|drivers/README\.md", path.read_text("utf-8"))
    }
    assert len(named) > 2
    assert [page for page in named if not (ROOT / page).exists()] == []
