"""Which readings there are which here: by id, else by what they say; two equal ones stay two. Pure."""

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gateway.domain.reading import Reading
from gateway.forward.readback import likeness_of
from gateway.store.records import StoredMatch

Pair = tuple[str, Reading]
"""An id here, and the reading there."""


def matched(
    there: Sequence[Reading], here: Sequence[StoredMatch], nameless: Set[str] = frozenset()
) -> tuple[list[Reading], list[Pair]]:
    """Readings there that are not here, and those that are; `nameless` ones came without an id.

    A service may make ids of its own: what came from here shows there as it was when it was sent, before it
    was calibrated or edited. In the end its time and its name tell, for what was sent there and, where the
    service names no ids at all, for copies. Otherwise another id is another reading.
    """
    by_id = {held.there_id: held for held in here if held.there_id is not None}
    pairs: list[Pair] = []
    new: list[Reading] = []
    for reading in {reading.oid: reading for reading in there}.values():  # an id is one record
        if reading.oid in by_id:
            pairs.append((by_id[reading.oid].reading.oid, reading))
        else:
            new.append(reading)
    free = [held for held in here if held.there_id is None]
    keeps_ids = any(held.was_sent for held in by_id.values())

    def sent_then(held: StoredMatch) -> list[Hashable]:
        return _times(held) if held.was_sent and not keeps_ids else []

    def copied_then(held: StoredMatch) -> list[Hashable]:
        return _times(held) if held.is_copy else []

    def nameless_then(reading: Reading) -> Hashable:
        return _time(reading) if reading.oid in nameless else reading.oid

    for likes, says in (
        (_given_out, _says), (_once_said, _says), (sent_then, _time), (copied_then, nameless_then),
    ):  # fmt: skip
        if new and free:
            new, free = _claim(new, free, likes, says, pairs)
    return new, pairs


def _claim(
    there: list[Reading],
    here: list[StoredMatch],
    likes: Callable[[StoredMatch], list[Hashable]],
    says: Callable[[Reading], Hashable],
    pairs: list[Pair],
) -> tuple[list[Reading], list[StoredMatch]]:
    """Pair what is alike; returns what is left on both sides."""
    alike: dict[Hashable, list[StoredMatch]] = defaultdict(list)
    for held in reversed(here):
        for likeness in set(likes(held)):
            alike[likeness].append(held)
    claimed: set[str] = set()
    left = []
    for reading in there:
        candidates = alike.get(says(reading), [])
        while candidates and candidates[-1].reading.oid in claimed:
            candidates.pop()
        if candidates:
            held = candidates.pop()
            claimed.add(held.reading.oid)
            pairs.append((held.reading.oid, reading))
        else:
            left.append(reading)
    return left, [held for held in here if held.reading.oid not in claimed]


def _given_out(held: StoredMatch) -> list[Hashable]:
    return [_says(_calibrated(held.reading))]


def _once_said(held: StoredMatch) -> list[Hashable]:
    """As it was sent by its device, and as it was before it was edited here."""
    before = _before_edits(held)
    return [_says(held.reading), _says(before), _says(_calibrated(before))]


def _times(held: StoredMatch) -> list[Hashable]:
    return [_time(held.reading), _time(_before_edits(held))]


def _before_edits(held: StoredMatch) -> Reading:
    return replace(held.reading, **json.loads(held.original)) if held.original else held.reading


def _calibrated(reading: Reading) -> Reading:
    gravity, temp = reading.shown_gravity, reading.shown_temp
    return replace(
        reading,
        gravity=reading.gravity if gravity is None else gravity,
        temp=reading.temp if temp is None else temp,
    )


def _time(reading: Reading) -> Hashable:
    return reading.created_at, reading.name.strip()


def _says(reading: Reading) -> Hashable:
    said: dict[str, Any] = {
        "name": reading.name,
        "gravity": reading.gravity,
        "gravity_unit": reading.gravity_unit,
        "temp": reading.temp,
        "temp_unit": reading.temp_unit,
        "created_at": datetime.fromtimestamp(reading.created_at, UTC).isoformat(),
    }
    return likeness_of(said)
