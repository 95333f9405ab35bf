"""Quiet hours: a part of each day in which a channel tells only what cannot wait. Pure."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from gateway.errors import InvalidInput

HOURS = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9]) *- *([01]?[0-9]|2[0-3]):([0-5][0-9])")

STEP_S = 900
"""Seconds after which the clock is looked at again: a zone may change its offset meanwhile."""


class QuietHours(NamedTuple):
    """Begin and end in minutes of the local day; an end before the begin is on the next day."""

    begin: int
    end: int

    def __str__(self) -> str:
        """Return the hours as they are written: `22:00-07:00`."""
        return "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in self)

    def left(self, now: float, zone: tzinfo | None = None) -> float:
        """Return the seconds until they end, 15 minutes at most; 0 outside of them.

        `now` is Unix seconds. The zone is the machine's unless another is given.
        """
        local = datetime.fromtimestamp(now, UTC).astimezone(zone)
        day = timedelta(hours=local.hour, minutes=local.minute, seconds=local.second).total_seconds()
        minute = day / 60
        inside = (
            self.begin <= minute < self.end
            if self.begin < self.end
            else minute >= self.begin or minute < self.end
        )
        return min((self.end * 60 - day) % 86_400 or 86_400, STEP_S) if inside else 0.0


def quiet_hours(text: str) -> QuietHours:
    """Return the hours of a text such as `22:00-07:00`; `InvalidInput` for another text."""
    found = HOURS.fullmatch(text.strip())
    if found is None:
        raise InvalidInput("quiet hours must look like 22:00-07:00")
    begin, end = (int(found[place]) * 60 + int(found[place + 1]) for place in (1, 3))
    if begin == end:
        raise InvalidInput("quiet hours must have a begin and another end, such as 22:00-07:00")
    return QuietHours(begin, end)
