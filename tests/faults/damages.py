"""What can happen to a database file: each kind of damage as a function of its path and of chance."""

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.faults.readings import mark_of, texts_of

PENDING = 160
"""Readings h0-0 to h0-159 in the file that is damaged."""

PAGE = 1024
LEAF = 0x0D
"""First byte of a leaf page of a table (sqlite.org/fileformat2.html, 1.6)."""

Damager = Callable[[Path, random.Random], None]


def _flip_bit(path: Path, chance: random.Random) -> None:
    _overwrite(
        path, place := chance.randrange(path.stat().st_size), bytes([_byte(path, place) ^ _bit(chance)])
    )


def _flip_value(path: Path, chance: random.Random) -> None:
    """One digit of a gravity that waits to be forwarded, where it stands as a column: another gravity."""
    flip_value(path, [mark_of("h0", number) for number in range(PENDING)], chance)


def flip_value(path: Path, marks: list[str], chance: random.Random) -> None:
    """The same of one of these."""
    content = path.read_bytes()
    while True:
        gravity, temp = texts_of(chance.choice(marks))
        found = re.finditer(f"{gravity}P{temp}C".encode(), content)
        places = [match.start() + len(gravity) - 2 for match in found]
        for place in places:
            _overwrite(path, place, bytes([content[place] ^ 1]))
        if places:
            return


def _wipe_page(path: Path, chance: random.Random) -> None:
    _overwrite(path, chance.randrange(path.stat().st_size // PAGE) * PAGE, bytes(PAGE))


def wipe_leaf(path: Path, chance: random.Random) -> None:
    """Of the readings: they keep the bytes that they came in."""
    content = path.read_bytes()
    leaves = [
        place
        for place in range(PAGE, len(content), PAGE)
        if content[place] == LEAF and b'"angle":45.5' in content[place : place + PAGE]
    ]
    _overwrite(path, chance.choice(leaves), bytes(PAGE))


def _truncate(path: Path, chance: random.Random) -> None:
    with path.open("r+b") as file:
        file.truncate(chance.randrange(path.stat().st_size))


def _empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def _text(path: Path, chance: random.Random) -> None:
    path.write_text("This is not the file you are looking for.\n" * chance.randrange(1, 500))


def _folder(path: Path, chance: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _garbage_log(path: Path, chance: random.Random) -> None:
    path.with_name(f"{path.name}-wal").write_bytes(chance.randbytes(chance.randrange(1, 200_000)))


def _garbage_index(path: Path, chance: random.Random) -> None:
    path.with_name(f"{path.name}-shm").write_bytes(chance.randbytes(32_768))


def _foreign_log(path: Path, chance: random.Random) -> None:
    """The log of another database that was never checkpointed."""
    shutil.copyfile(path.parent.parent / "foreign-wal", path.with_name(f"{path.name}-wal"))


KINDS: dict[str, tuple[int, Damager]] = {
    "bit": (60, _flip_bit), "value": (20, _flip_value), "page": (40, _wipe_page), "leaf": (20, wipe_leaf),
    "cut": (20, _truncate), "empty": (4, _empty), "text": (4, _text), "folder": (4, _folder),
    "log": (10, _garbage_log), "index": (6, _garbage_index), "foreign": (6, _foreign_log),
}  # fmt: skip
"""How often, and what is done."""

NOTHING_LOST = frozenset({"log", "index", "foreign"})


def _byte(path: Path, place: int) -> int:
    with path.open("rb") as file:
        file.seek(place)
        return file.read(1)[0]


def _bit(chance: random.Random) -> int:
    return 1 << chance.randrange(8)


def _overwrite(path: Path, place: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(place)
        file.write(content)
