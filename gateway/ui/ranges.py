"""The range of time that a chart or a table shows, as it is named in an address."""

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import NamedTuple

from gateway.domain.times import LAST_S
from gateway.domain.units import SECONDS_PER_DAY
from gateway.ui.forms import local_input

RANGES = {
    "24h": SECONDS_PER_DAY,
    "3d": 3 * SECONDS_PER_DAY,
    "7d": 7 * SECONDS_PER_DAY,
    "14d": 14 * SECONDS_PER_DAY,
}
"""Seconds of the ranges that have links."""

ALL = "all"

LEAST_S = 60
"""Seconds that a range has at least."""


class Range(NamedTuple):
    """A range of time by its name, empty if it was typed; None leaves an end open (Unix seconds)."""

    name: str
    start: int | None
    end: int | None

    @property
    def query(self) -> dict[str, str]:
        """Return the range as the query of an address."""
        if self.name:
            return {} if self.name == ALL else {"range": self.name}
        return {
            name: datetime.fromtimestamp(at).astimezone().isoformat()
            for name, at in (("from", self.start), ("to", self.end))
            if at is not None
        }

    def typed(self, zone: tzinfo) -> tuple[str, str]:
        """Return both ends as fields of a form show them."""
        if self.name:
            return "", ""
        start, end = ("" if at is None else local_input(at, zone) for at in (self.start, self.end))
        return start, end


def range_of(query: Mapping[str, str], zone: tzinfo, last_at: int | None) -> Range:
    """Return the range that an address names; what cannot be read counts as left out.

    A range with a name ends with the last reading: of a device that is silent it shows what there is.
    """
    name = query.get("range", "")
    if name in RANGES and last_at is not None:
        return Range(name, last_at - RANGES[name], last_at)
    start, end = _moment(query.get("from", ""), zone), _moment(query.get("to", ""), zone)
    if start is None and end is None:
        return Range(ALL, None, None)
    if start is not None and end is not None and end - start < LEAST_S:
        start, end = min(start, end), max(start, end, min(start, end) + LEAST_S)
    return Range("", start, end)


def _moment(text: str, zone: tzinfo) -> int | None:
    """Return the Unix seconds of a time as a field or a script writes it."""
    try:
        when = datetime.fromisoformat(text.strip())
        at = int((when if when.tzinfo else when.replace(tzinfo=zone)).timestamp())
    except (ValueError, OverflowError):
        return None
    return at if 0 <= at <= LAST_S else None
