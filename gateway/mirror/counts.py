"""What became of each record of a run, counted by kind, and what a person should know of it."""

from dataclasses import asdict, dataclass, field
from typing import Any

RECIPES, SESSIONS, READINGS, PHOTOS = "recipes", "brew sessions", "readings", "photos"
KINDS = (RECIPES, SESSIONS, READINGS, PHOTOS)

REPORTS = 200
"""Lines that a run reports at most; the others are counted."""

REPORT_CHARACTERS = 300


@dataclass(slots=True)
class Counts:
    """Records of one kind; `kept` were changed or deleted here after they were changed there."""

    copied: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    failed: int = 0


@dataclass(slots=True)
class MirrorCounts:
    """One run; `unreported` are the lines beyond `REPORTS`, `renumbered` is what the first line is about."""

    counts: dict[str, Counts] = field(default_factory=lambda: {kind: Counts() for kind in KINDS})
    reports: list[str] = field(default_factory=list)
    unreported: int = 0
    requests: int = 0
    renumbered: bool = False

    def report(self, line: str) -> None:
        """Say something about the run, as one printable line."""
        if len(self.reports) == REPORTS:
            self.unreported += 1
            return
        self.reports.append(_plain(line)[:REPORT_CHARACTERS])

    def say_renumbered(self, line: str) -> None:
        """Say, before all else, that the numbers there are other records' now."""
        self.renumbered = True
        self.reports.insert(0, _plain(line))

    def failed(self, kind: str, line: str) -> None:
        """A record could not be copied; the next run tries again."""
        self.counts[kind].failed += 1
        self.report(line)

    @property
    def failures(self) -> int:
        """Records of all kinds that could not be copied."""
        return sum(counts.failed for counts in self.counts.values())

    def summary(self) -> str:
        """The run in one line."""
        words = [
            f"{getattr(counts, what)} {kind} {what}"
            for kind, counts in self.counts.items()
            for what in ("copied", "updated", "failed")
            if getattr(counts, what)
        ]
        return ", ".join(words) or "nothing new"

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return asdict(self)


def _plain(line: str) -> str:
    return "".join(char if char.isprintable() else " " for char in line)
