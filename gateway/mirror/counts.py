"""Count the results of a run by kind of record, and collect reports for the user."""

from dataclasses import asdict, dataclass, field
from typing import Any

RECIPES, SESSIONS, READINGS, PHOTOS = "recipes", "brew sessions", "readings", "photos"
KINDS = (RECIPES, SESSIONS, READINGS, PHOTOS)

REPORTS = 200
"""Reports that a run keeps; further ones are only counted."""

REPORT_CHARACTERS = 300


@dataclass(slots=True)
class Counts:
    """Records of one kind. `kept` records were changed or deleted here later than at the service."""

    copied: int = 0
    updated: int = 0
    unchanged: int = 0
    kept: int = 0
    failed: int = 0


@dataclass(slots=True)
class MirrorCounts:
    """The result of a run. `unreported` counts reports beyond `REPORTS`.

    With `renumbered`, the first report is about that.
    """

    counts: dict[str, Counts] = field(default_factory=lambda: {kind: Counts() for kind in KINDS})
    reports: list[str] = field(default_factory=list)
    unreported: int = 0
    requests: int = 0
    renumbered: bool = False

    def report(self, line: str) -> None:
        """Add a report about the run, as one _printable line."""
        if len(self.reports) == REPORTS:
            self.unreported += 1
            return
        self.reports.append(_printable(line)[:REPORT_CHARACTERS])

    def report_renumbered(self, line: str) -> None:
        """Put a report first: that the service gave its numbers to other records."""
        self.renumbered = True
        self.reports.insert(0, _printable(line))

    def failed(self, kind: str, line: str) -> None:
        """Count and report a record that could not be copied; the next run tries again."""
        self.counts[kind].failed += 1
        self.report(line)

    @property
    def failures(self) -> int:
        """The number of records of all kinds that could not be copied."""
        return sum(counts.failed for counts in self.counts.values())

    def summary(self) -> str:
        """Return the run in one line."""
        words = [
            f"{getattr(counts, what)} {kind} {what}"
            for kind, counts in self.counts.items()
            for what in ("copied", "updated", "failed")
            if getattr(counts, what)
        ]
        return ", ".join(words) or "nothing new"

    def as_json(self) -> dict[str, Any]:
        """Return counts and reports as plain JSON."""
        return asdict(self)


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else " " for char in line)
