"""What of an attempt is already at the target: rows that were sent against readings it gave back. Pure."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

Amount = tuple[float, str] | None
"""A number with its unit; None for "not measured"."""

Likeness = tuple[int, str, Amount, Amount]
"""created_at in Unix seconds, name, gravity, temp: what a reading is known by without its id."""

DAY = timedelta(days=1)


def missing(rows: Sequence[str], found: Sequence[Mapping[str, Any]]) -> list[int]:
    """Places of the rows that are not among `found`, in order.

    An id that is found again settles it; the other readings are compared by what they say, and counted, so
    that two equal readings stay two. What cannot be read in `found` is passed over.
    """
    sent = [json.loads(row) for row in rows]
    sent_ids = {oid_of(reading) for reading in sent} - {None}
    found_ids: set[str] = set()
    unclaimed: Counter[Likeness] = Counter()
    for reading in found:
        oid = oid_of(reading)
        if oid is not None and oid in found_ids:
            continue  # an id is one record, however often it is listed
        if oid is not None:
            found_ids.add(oid)
        likeness = likeness_of(reading)
        if likeness is not None and oid not in sent_ids:
            unclaimed[likeness] += 1
    return [place for place, reading in enumerate(sent) if not _claim(reading, found_ids, unclaimed)]


def _claim(reading: Mapping[str, Any], found_ids: set[str], unclaimed: Counter[Likeness]) -> bool:
    if oid_of(reading) in found_ids:
        return True
    likeness = likeness_of(reading)
    if likeness is None or not unclaimed[likeness]:
        return False
    unclaimed[likeness] -= 1
    return True


def oid_of(reading: object) -> str | None:
    """The record identifier in lower case, if there is one."""
    identifier = reading.get("_id") if isinstance(reading, Mapping) else None
    oid = identifier.get("$oid") if isinstance(identifier, Mapping) else None
    return oid.lower() if isinstance(oid, str) and oid else None


def likeness_of(reading: object) -> Likeness | None:
    """What the reading says, free of spelling; None where it cannot be read."""
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


def days(rows: Sequence[str]) -> tuple[date, date]:
    """First and last day to ask the target for.

    A day more on either side: whether a target cuts days in UTC or in its user's zone is nowhere written,
    and a reading that is overlooked here would be sent twice.
    """
    likenesses = [likeness_of(json.loads(row)) for row in rows]
    dates = [datetime.fromtimestamp(likeness[0], UTC).date() for likeness in likenesses if likeness]
    first, last = (min(dates), max(dates)) if len(dates) == len(rows) else (date.min, date.max)
    return (
        first - DAY if first > date.min else first,
        last + DAY if last < date.max else last,
    )


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
