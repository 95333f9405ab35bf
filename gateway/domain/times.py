"""Unix seconds as text in UTC, and what else belongs to times. Pure."""

from datetime import UTC, datetime, timedelta

EVER_S = 2**40
"""Unix seconds that no reading reaches: the end of a span without an end."""

HALF_MS = 0.5
"""Milliseconds to add before milliseconds become seconds. Without them the way back can give one less, as a
float may fall short."""

LAST_S = 253_402_300_799
"""9999-12-31T23:59:59Z in Unix seconds: the last second that `datetime` can show."""


def iso(unix_seconds: float) -> str:
    """Return the time as readings and statistics have it: `2026-03-04T09:30:00+00:00`."""
    return datetime.fromtimestamp(int(unix_seconds), UTC).isoformat()


def stamp(unix_seconds: float) -> str:
    """Return the time as records have it: `2026-03-01 18:05:12`."""
    return datetime.fromtimestamp(int(unix_seconds), UTC).strftime("%Y-%m-%d %H:%M:%S")


def minute(unix_seconds: float) -> str:
    """Return the time to the minute, for sentences: `2026-03-01 18:05 UTC`; at most the year 9999."""
    # A clock that is not set can say any year, and the sentence about it must still be written.
    return f"{datetime.fromtimestamp(min(unix_seconds, LAST_S), UTC):%Y-%m-%d %H:%M} UTC"


PARTS_OF_DAY = (
    (6, "night"),
    (10, "morning"),
    (14, "noon"),
    (18, "afternoon"),
    (22, "evening"),
    (24, "night"),
)
"""Parts of a day and the hours at which they end."""


def part_of_day(when: datetime) -> tuple[datetime, str]:
    """Return the day and the part of it that a time lies in; a night belongs to the evening before."""
    part = next(name for hour, name in PARTS_OF_DAY if when.hour < hour)
    return when - timedelta(days=when.hour < PARTS_OF_DAY[0][0]), part
