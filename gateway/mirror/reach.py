"""How far the readings of a brew session are known, so that one request tells whether there is more. Pure.

The service lists them oldest first and says nowhere how many there are. So the next run begins in the midst
of the list, at the place where the last day began: if the reading there is not of the time that it was of,
some came or went before it, and all are read. What arrives late is found like this whatever time it has.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from gateway.mirror.pages import RemotePage
from gateway.mirror.validate import seconds

DAY_S = 86_400

FULL_AFTER_S = 7 * DAY_S
"""So long after all readings of a session were read they are all read again.

Nothing tells that an old one was corrected there; 35,000 are 35 requests, which a week can bear.
"""


@dataclass(frozen=True, slots=True)
class Reach:
    """`place` is where the last day begins in the list there, `time` that of the reading in it.

    `full_at` is when all were read, 0: not yet. Times are Unix seconds.
    """

    place: int = 0
    time: int = 0
    full_at: int = 0

    @classmethod
    def from_text(cls, text: str | None) -> "Reach":
        """What `as_text` gave; nothing is known where it is of an earlier version."""
        return cls(**json.loads(text)) if text else cls()

    def as_text(self) -> str:
        """JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))

    def is_due(self, now: int) -> bool:
        """Whether all are to be read: it was long ago, or never done, or the clock went back."""
        return not 0 <= now - self.full_at < FULL_AFTER_S

    def fits(self, first: RemotePage) -> bool:
        """Whether what comes from `place` on begins as it did; the very beginning always fits."""
        if self.place == 0:
            return True
        return first.place == self.place and bool(first.records) and _time(first.records[0]) == self.time


class Walk:
    """Watches pages of one list go by, for the `Reach` that follows from them."""

    def __init__(self) -> None:
        self._days: list[tuple[int, int]] = []
        self._time = -1
        self._last: object = None
        self.begun = False
        self.is_orderly = True
        """Oldest first, and none twice: no reading has come or gone meanwhile."""

    def follow(self, page: RemotePage) -> None:
        """Note where days begin."""
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
        """The time of the last reading; empty where there is none."""
        return "" if self._time < 0 else datetime.fromtimestamp(self._time, UTC).isoformat()

    def reach(self, full_at: int, now: int) -> Reach:
        """Where to begin next time: with the day before that of the newest reading, or of today."""
        if not self.is_orderly:
            return Reach()
        latest = min(self._time, now) // DAY_S - 1
        time, place = max((day for day in self._days if day[0] // DAY_S <= latest), default=(0, 0))
        return Reach(place, time, full_at)


def _time(record: object) -> int | None:
    return seconds(record.get("created_at")) if isinstance(record, Mapping) else None
