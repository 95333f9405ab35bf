"""Remember how far the readings of a brew session were read, so that one request shows new ones. Pure.

A service lists readings oldest first and does not give their number. So the next run begins in the midst of
the list, at the place where the last day began. If the reading at that place has another time than before,
readings were added or removed in front of it, and all are read. So late readings are found, whatever their
time.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from gateway.mirror.pages import RemotePage
from gateway.mirror.validate import seconds

DAY_S = 86_400

FULL_AFTER_S = 7 * DAY_S
"""Seconds after which all readings of a brew session are read again.

Nothing shows that an old reading was corrected there; 35,000 readings are 35 requests, which a week can bear.
"""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The place in the service's list where the last day begins, and the time of the reading there.

    `full_at` is when all readings were read, 0 if never. Times are Unix seconds.
    """

    place: int = 0
    time: int = 0
    full_at: int = 0

    @classmethod
    def from_text(cls, text: str | None) -> "Checkpoint":
        """Return the checkpoint that `as_text` gave; an empty one without text."""
        return cls(**json.loads(text)) if text else cls()

    def as_text(self) -> str:
        """Return the checkpoint as JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def is_due(self, now: int) -> bool:
        """Return whether to read all: all were last read long ago, or never, or the clock was set back."""
        return not 0 <= now - self.full_at < FULL_AFTER_S

    def fits(self, first: RemotePage) -> bool:
        """Return whether the page from `place` on begins as before; the beginning of the list always fits."""
        if self.place == 0:
            return True
        return first.place == self.place and bool(first.records) and _time(first.records[0]) == self.time


class PageTracker:
    """Follows the pages of one list and makes the `Checkpoint` for the next run."""

    def __init__(self) -> None:
        self._days: list[tuple[int, int]] = []
        self._time = -1
        self._last: object = None
        self.begun = False
        self.is_orderly = True
        """True while readings are listed oldest first and none twice: the list has not changed meanwhile."""

    def add(self, page: RemotePage) -> None:
        """Note where days begin in the next page."""
        self.begun = True
        if page.records and page.records[0] == self._last:
            self.is_orderly = False
        for place, record in enumerate(page.records, page.place):
            time = _time(record)
            if time is None:
                continue
            if time < self._time:
                self.is_orderly = False
            elif time // DAY_S > self._time // DAY_S:
                self._days.append((time, place))
            self._time = time
        self._last = page.records[-1] if page.records else self._last

    @property
    def newest(self) -> str:
        """Return the time of the last reading as text; empty without readings."""
        return "" if self._time < 0 else datetime.fromtimestamp(self._time, UTC).isoformat()

    def checkpoint(self, full_at: int, now: int) -> Checkpoint:
        """Return where the next run begins: with the day before the newest reading, or before today."""
        if not self.is_orderly:
            return Checkpoint()
        # Not later than today, or one reading with a wrong clock would hide all that follow.
        latest = min(self._time, now) // DAY_S - 1
        time, place = max((day for day in self._days if day[0] // DAY_S <= latest), default=(0, 0))
        return Checkpoint(place, time, full_at)


def _time(record: object) -> int | None:
    return seconds(record.get("created_at")) if isinstance(record, Mapping) else None
