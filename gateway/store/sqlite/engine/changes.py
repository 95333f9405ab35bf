"""What has changed since the process began: counts in memory, from which ETags are made.

The rule is coarse, so that no write can be missed: every work counts as a change of everything, unless it is
marked as `Apart`; a row counts for its source. Both count when they are settled, after the commit and before
anybody has an answer, whatever became of them: a commit that failed may be there all the same.
"""

import secrets
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any, Generic, TypeVar

T = TypeVar("T")

SOURCES = 10_000
"""Sources of rows that are counted apart. Beyond it all are forgotten, which changes every tag once."""

TAG_BYTES = 12


class Apart(Generic[T]):
    """A work that changes no reading, and no device's key or brew session. It leaves ETags as they are.

    Mark only works that come again and again by themselves, such as the notes of forwarding.
    """

    def __init__(self, work: Callable[[sqlite3.Connection], T]) -> None:
        self._work = work

    def __call__(self, connection: sqlite3.Connection) -> T:
        """Do the work."""
        return self._work(connection)


class Changes:
    """Counts of settled works and rows, for the event loop's thread only."""

    def __init__(self) -> None:
        # Random, because the counts begin again with the process, and other commands may write in between.
        self._start = secrets.token_hex(TAG_BYTES)
        self._rows: defaultdict[str, int] = defaultdict(int)
        self.works = 0

    def count(self, works: Sequence[tuple[Any, Any]], rows: Iterable[tuple[Sequence[Any], Any]]) -> None:
        """Count what is settled now, of pairs of a work or a row and its caller. A row ends in its source."""
        if works and not all(isinstance(work, Apart) for work, _ in works):
            self.works += 1
        counts = self._rows
        for row, _ in rows:
            counts[row[-1]] += 1
        if len(counts) > SOURCES:
            counts.clear()
            self.works += 1

    def tag(self, works: int, sources: Iterable[str], *facts: int) -> str:
        """Return a text for a state: a count of works, the rows of some sources, and other facts."""
        state = (self._start, works, [(source, self._rows.get(source, 0)) for source in sources], facts)
        return blake2b(repr(state).encode(), digest_size=TAG_BYTES).hexdigest()
