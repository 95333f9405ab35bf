"""Find the readings of an attempt that the target already has, among the readings that it gave back. Pure."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import zip_longest
from typing import Any

from gateway.domain.delivery import Batch
from gateway.domain.reading import EXTRA_MEMBERS

Amount = tuple[float, str] | None
"""A number with its unit; None if it was not measured."""

Likeness = tuple[int, str, Amount, Amount]
"""created_at in Unix seconds, name, gravity, temp: these identify a reading without its id."""

DAY = timedelta(days=1)

UNIX_EPOCH = "1970-01-01"

_SAID = (
    *("name", "gravity", "gravity_unit", "temp", "temp_unit", "comment", "beer", "interval", "created_at"),
    *("source", *EXTRA_MEMBERS),
)
"""Members of a reading that an edit may change and a target keeps."""


class Attempt:
    """Readings that were sent, to be found again among readings that a target gives back."""

    def __init__(
        self,
        rows: Sequence[str],
        uncalibrated: Sequence[str | None] = (),
        earlier: Sequence[tuple[str, str | None]] = (),
        *,
        ids_alone: bool = False,
    ) -> None:
        """`uncalibrated` are members as the device sent them, of rows that were calibrated since.

        `earlier` are readings that the target has got before, each with its uncalibrated members: what is
        alike there is theirs, and no proof that a reading of the attempt has arrived. With `ids_alone` an id
        that is found again is enough, whatever other members the reading has there.
        """
        self._sent = [json.loads(row) for row in rows]
        self._ids_alone = ids_alone
        self._ids = {oid_of(reading) for reading in self._sent} - {None}
        self._likely = [
            _either(reading, members) for reading, members in zip_longest(self._sent, uncalibrated)
        ]
        before = [(json.loads(row), members) for row, members in earlier]
        self._earlier = [(oid_of(reading), _either(reading, members)) for reading, members in before]
        self._likenesses = {likeness for either in self._likely for likeness in either} - {None}

    @property
    def days(self) -> tuple[date, date]:
        """Return the first and last day to ask the target for."""
        return days(self._sent)

    def concerns(self, reading: Mapping[str, Any]) -> bool:
        """Return whether the reading may be one of the attempt: days that are read back hold many others."""
        return oid_of(reading) in self._ids or likeness_of(reading) in self._likenesses

    def missing(self, found: Sequence[Mapping[str, Any]]) -> list[int]:
        """Return the places of the readings that are not among `found`, in order.

        An id that is found again is enough where gravity and temperature are the same: a calibrated reading
        is sent again under its old id. The others are compared by their members, as they are sent or as they
        were before they were calibrated, and counted, so that two equal readings stay two, also where one of
        them was delivered before the attempt. Readings in `found` that cannot be read are passed over.
        """
        by_id: dict[str, Mapping[str, Any]] = {}
        unclaimed: Counter[Likeness] = Counter()
        known = self._ids | {oid for oid, _ in self._earlier}
        for reading in found:
            oid = oid_of(reading)
            if oid is not None and oid in by_id:
                continue  # an id is one record, however often it is listed
            if oid is not None:
                by_id[oid] = reading
            likeness = likeness_of(reading)
            if likeness is not None and oid not in known:
                unclaimed[likeness] += 1
        for oid, likely in self._earlier:
            if oid not in by_id:
                _take(likely, unclaimed)
        return [place for place in range(len(self._sent)) if not self._claim(place, by_id, unclaimed)]

    def _claim(
        self, place: int, by_id: Mapping[str, Mapping[str, Any]], unclaimed: Counter[Likeness]
    ) -> bool:
        reading = self._sent[place]
        there = by_id.get(oid_of(reading) or "")
        if there is not None:
            return self._ids_alone or _amounts(there) == _amounts(reading)
        return _take(self._likely[place], unclaimed)


class Corrections:
    """Edited readings that the target already has, to be found by id among readings that it gives back."""

    def __init__(self, batch: Batch) -> None:
        self._now = [json.loads(row) for row in batch.rows]
        self._was = [json.loads(batch.edits[seq].was) for seq in batch.seqs]
        self._ids = {oid_of(reading) for reading in self._now}

    @property
    def days(self) -> tuple[date, date]:
        """Return the first and last day of the readings, before and after their edits."""
        return days([*self._was, *self._now])

    def concerns(self, reading: Mapping[str, Any]) -> bool:
        """Return whether the reading is one of the edited ones."""
        return oid_of(reading) in self._ids

    def compare(self, found: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[int]]:
        """Return the places of readings that differ at the target, and of readings whose ids it lacks."""
        there = {oid_of(reading): reading for reading in found}
        different, absent = [], []
        for place, reading in enumerate(self._now):
            other = there.get(oid_of(reading))
            if other is None:
                absent.append(place)
            elif any(other.get(name) != reading.get(name) for name in _SAID):
                different.append(place)
        return different, absent


def as_sent(batch: Batch) -> list[str]:
    """Return the rows of an attempt as they were when the attempt began, without later edits."""
    # Except a withheld edit: the user has asked for it to be sent, so its row counts as it is now.
    edits = (batch.edits.get(seq) for seq in batch.seqs)
    pairs = zip(batch.rows, edits, strict=True)
    return [row if edit is None or edit.withheld else edit.was for row, edit in pairs]


def missing(rows: Sequence[str], found: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the places of the rows that are not among `found` by id or by members, in order."""
    return Attempt(rows, ids_alone=True).missing(found)


def oid_of(reading: object) -> str | None:
    """Return the record identifier in lower case; None without one."""
    identifier = reading.get("_id") if isinstance(reading, Mapping) else None
    oid = identifier.get("$oid") if isinstance(identifier, Mapping) else None
    return oid.lower() if isinstance(oid, str) and oid else None


def likeness_of(reading: object) -> Likeness | None:
    """Return the reading's likeness, free of spelling; None if it cannot be read."""
    if not isinstance(reading, Mapping):
        return None
    name = reading.get("name", "")
    if not isinstance(name, str):
        return None
    try:
        return (
            _second(reading.get("created_at")),
            name.strip(),
            _amount(reading.get("gravity"), reading.get("gravity_unit")),
            _amount(reading.get("temp"), reading.get("temp_unit")),
        )
    except (ValueError, TypeError, OverflowError):
        return None


def days(readings: Sequence[Mapping[str, Any]]) -> tuple[date, date]:
    """Return the first and last day to ask the target for, with a day more on either side."""
    # A day more, because nowhere is written whether a target cuts days in UTC or in its user's zone, and a
    # reading that is overlooked here would be sent twice.
    likenesses = [likeness_of(reading) for reading in readings]
    dates = [datetime.fromtimestamp(likeness[0], UTC).date() for likeness in likenesses if likeness]
    first, last = (min(dates), max(dates)) if len(dates) == len(readings) else (date.min, date.max)
    return (
        first - DAY if first > date.min else first,
        last + DAY if last < date.max else last,
    )


def _amounts(reading: Mapping[str, Any]) -> tuple[Amount, Amount] | None:
    """Return gravity and temperature; None if they cannot be read."""
    likeness = likeness_of({**reading, "name": "", "created_at": UNIX_EPOCH})
    return likeness and likeness[2:]


def _either(reading: Mapping[str, Any], uncalibrated: str | None) -> list[Likeness | None]:
    """Return the likeness of a reading as it is, and as it was before it was calibrated."""
    return [likeness_of(reading), likeness_of({**reading, **json.loads(uncalibrated or "{}")})]


def _take(likely: Sequence[Likeness | None], unclaimed: Counter[Likeness]) -> bool:
    """Take a reading that is alike out of those that nobody has claimed; False if there is none."""
    for likeness in likely:
        if likeness is not None and unclaimed[likeness]:
            unclaimed[likeness] -= 1
            return True
    return False


def _second(value: object) -> int:
    if not isinstance(value, str):
        raise TypeError("not a time")
    moment = datetime.fromisoformat(value.strip())
    return math.floor((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _amount(value: object, unit: object) -> Amount:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or not isinstance(unit, str):
        raise TypeError("not a number with a unit")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("not a number")
    return number, unit.strip().upper()
