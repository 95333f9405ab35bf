"""Match readings of the service to ours: by id, else by their members; two equal readings stay two. Pure."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence, Set
from datetime import UTC, datetime
from typing import Any

from gateway.domain.reading import Reading
from gateway.forward.readback import likeness_of
from gateway.store.records import StoredMatch

Pair = tuple[str, Reading]
"""Our id, and the reading of the service."""


def match_readings(
    there: Sequence[Reading], here: Sequence[StoredMatch], nameless: Set[str] = frozenset()
) -> tuple[list[Reading], list[Pair]]:
    """Return the service's new readings, and pairs of our ids and the service's readings that we have.

    `nameless` are ids made here for readings without an id.
    """
    # Not by id alone, because a service may make ids of its own. A reading that we sent is there as it was
    # sent, before it was calibrated or edited here. In the end time and name decide, for readings that we
    # sent and, if the service gives no ids at all, for copies. Otherwise another id is another reading.
    by_id = {stored.there_id: stored for stored in here if stored.there_id is not None}
    pairs: list[Pair] = []
    new: list[Reading] = []
    for reading in {reading.oid: reading for reading in there}.values():  # an id is one record
        if reading.oid in by_id:
            pairs.append((by_id[reading.oid].reading.oid, reading))
        else:
            new.append(reading)
    free = [stored for stored in here if stored.there_id is None]
    keeps_ids = any(stored.was_sent for stored in by_id.values())

    def earlier_keys(stored: StoredMatch) -> list[Hashable]:
        # A reading as its device sent it, and as it was before it was edited here.
        before = _before_edits(stored)
        return [_content_key(stored.reading), _content_key(before), _content_key(_calibrated(before))]

    def sent_keys(stored: StoredMatch) -> list[Hashable]:
        return _time_keys(stored) if stored.was_sent and not keeps_ids else []

    def copied_keys(stored: StoredMatch) -> list[Hashable]:
        return _time_keys(stored) if stored.is_copy else []

    def nameless_key(reading: Reading) -> Hashable:
        return _time_key(reading) if reading.oid in nameless else reading.oid

    for keys_here, key_there in (
        (lambda stored: [_content_key(_calibrated(stored.reading))], _content_key),
        (earlier_keys, _content_key),
        (sent_keys, _time_key),
        (copied_keys, nameless_key),
    ):
        if new and free:
            new, free = _claim(new, free, keys_here, key_there, pairs)
    return new, pairs


def _claim(
    there: list[Reading],
    here: list[StoredMatch],
    keys_here: Callable[[StoredMatch], list[Hashable]],
    key_there: Callable[[Reading], Hashable],
    pairs: list[Pair],
) -> tuple[list[Reading], list[StoredMatch]]:
    """Pair readings with an equal key. Return the readings of both sides that are left."""
    alike: dict[Hashable, list[StoredMatch]] = defaultdict(list)
    for stored in reversed(here):
        for key in set(keys_here(stored)):
            alike[key].append(stored)
    claimed: set[str] = set()
    left = []
    for reading in there:
        candidates = alike.get(key_there(reading), [])
        while candidates and candidates[-1].reading.oid in claimed:
            candidates.pop()
        if candidates:
            stored = candidates.pop()
            claimed.add(stored.reading.oid)
            pairs.append((stored.reading.oid, reading))
        else:
            left.append(reading)
    return left, [stored for stored in here if stored.reading.oid not in claimed]


def _time_keys(stored: StoredMatch) -> list[Hashable]:
    return [_time_key(stored.reading), _time_key(_before_edits(stored))]


def _before_edits(stored: StoredMatch) -> Reading:
    return stored.reading._replace(**json.loads(stored.original)) if stored.original else stored.reading


def _calibrated(reading: Reading) -> Reading:
    gravity, temp = reading.shown_gravity, reading.shown_temp
    return reading._replace(
        gravity=reading.gravity if gravity is None else gravity,
        temp=reading.temp if temp is None else temp,
    )


def _time_key(reading: Reading) -> Hashable:
    return reading.created_at, reading.name.strip()


def _content_key(reading: Reading) -> Hashable:
    members: dict[str, Any] = {
        "name": reading.name,
        "gravity": reading.gravity,
        "gravity_unit": reading.gravity_unit,
        "temp": reading.temp,
        "temp_unit": reading.temp_unit,
        "created_at": datetime.fromtimestamp(reading.created_at, UTC).isoformat(),
    }
    return likeness_of(members)
