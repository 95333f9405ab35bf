"""P1 to P4 of reliability.md 2.1: what was promised against what arrived upstream, or what is stored."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.faults.frame import Run
from tests.faults.readings import texts_of

SHOWN = 3
"""Marks in a sentence about what is wrong."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Marks that are missing (P1), there twice (P2), never issued (P3), or not what was sent (P4)."""

    promised: int
    lost: list[str]
    twice: list[str]
    invented: list[str]
    changed: list[str]
    copies: list[str]
    """Of readings that are there twice: under which ids they were sent, and when."""

    def tell(self, run: Run, where: str = "") -> None:
        """Add to the run's figures, and note what is wrong."""
        run.count("acknowledged", self.promised)
        for name in ("lost", "twice", "invented", "changed"):
            marks: list[str] = getattr(self, name)
            run.count(name, len(marks))
            run.expect(not marks, f"{where}{len(marks)} {name}: {', '.join(marks[:SHOWN])}")
        if self.twice:
            run.failures.append(f"{where}{self.copies[:SHOWN]}")


def judge(promised: Iterable[str], issued: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> Verdict:
    """`rows` are readings in the specification's shape: the upstream's, or `readings --json`."""
    promised, there = set(promised), list(rows)
    copies = Counter(str(row["comment"]) for row in there)
    return Verdict(
        len(promised),
        sorted(promised - copies.keys()),
        sorted(mark for mark, count in copies.items() if count > 1),
        sorted(copies.keys() - set(issued)),
        sorted(str(row["comment"]) for row in there if not _as_sent(row)),
        [
            f"{row['comment']} {row.get('sent_as')} {row.get('created_at')}"
            for row in there
            if copies[str(row["comment"])] > 1
        ],
    )


def _as_sent(row: Mapping[str, Any]) -> bool:
    mark = str(row["comment"])
    said = (row["gravity"], row["gravity_unit"], row["temp"], row["temp_unit"], row["name"])
    gravity, temp = texts_of(mark)
    return said == (gravity, "P", temp, "C", mark.rpartition("-")[0])
