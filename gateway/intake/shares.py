"""Shares: how many readings of all that fit one source may hand in, so that one source never fills the disk.

Loopback is a source like any other. A source is an IPv4 address or the /64 of an IPv6 address.
"""

from collections import OrderedDict, deque

from gateway.errors import ShareUsedUp
from gateway.network import SOURCES, source_of

READING_BYTES = 400
"""Bytes that a reading takes in the database beside the text that its device sent: an estimate."""

QUOTA_SHARE = 0.2
"""The part of the quota that the readings of one source may take in a day."""

DAY_HOURS = 24
HOUR_S = 3600.0


class ReadingShares:
    """The bytes of readings that each source had stored in the last 24 hours, in memory, hour by hour.

    Duplicates and readings that are thinned out do not count. `quota_bytes` is the quota in force. Beyond
    `SOURCES` sources the one that was quiet longest is forgotten.
    """

    def __init__(self, quota_bytes: int) -> None:
        self._allowed = int(quota_bytes * QUOTA_SHARE)
        self._sources: OrderedDict[str, deque[list[int]]] = OrderedDict()

    def take(self, address: str, size: int, now: float) -> None:
        """Count a reading of `size` bytes before it is stored; `ShareUsedUp` if that is beyond the share.

        `now` are seconds of a clock that never jumps.
        """
        source, hour = source_of(address), int(now // HOUR_S)
        hours, size = self._hours(source, hour), size + READING_BYTES
        if sum([amount for _, amount in hours]) + size > self._allowed:
            raise ShareUsedUp(
                f"{source or 'the sender'} has had {QUOTA_SHARE:.0%} of the quota stored within a day; "
                "raise --quota if that is right"
            )
        if hours and hours[-1][0] >= hour:
            hours[-1][1] += size
        else:
            hours.append([hour, size])

    def give_back(self, address: str, size: int, now: float) -> None:
        """Take back what `take` counted, because the reading was not stored."""
        self._add(source_of(address), int(now // HOUR_S), -size - READING_BYTES)

    def note(self, address: str, readings: int, size: int, then: float) -> None:
        """Count readings that were stored before this process started; `then` as in `take`, oldest first."""
        self._add(source_of(address), int(then // HOUR_S), size + readings * READING_BYTES)

    def _hours(self, source: str, hour: int) -> deque[list[int]]:
        """Return the hours and amounts of a source, without hours that are more than a day ago."""
        hours = self._sources.get(source)
        if hours is None:
            hours = self._sources[source] = deque()
            if len(self._sources) > SOURCES:
                self._sources.popitem(last=False)
        else:
            self._sources.move_to_end(source)
        while hours and hours[0][0] < hour - DAY_HOURS:
            hours.popleft()
        return hours

    def _add(self, source: str, hour: int, amount: int) -> None:
        hours = self._hours(source, hour)
        if hours and hours[-1][0] >= hour:
            hours[-1][1] += amount
        else:
            hours.append([hour, amount])
