"""The measurements of a batch: the hydrometer's reports, and the brewer's notes by hand. Pure."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.domain import units
from gateway.domain.brew_event import HAND_READING, BrewEvent
from gateway.domain.device import Device
from gateway.domain.objectid import new_object_id
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.times import iso
from gateway.drivers import decode
from gateway.intake.normalise import normalise
from gateway.samples.curves import INTERVAL_S, Course, CurvePoint, fermentation, measured
from gateway.samples.hydrometers import Hydrometer
from gateway.samples.sessions import Sample, SampleBatch

BY_HAND = "manual"
"""The `source` of the brewer's own notes."""

AUTHOR = "sample-data"
"""The author of the made-up events."""

NOTED_S = 5400
"""The most seconds by which a note is later than the hour of pitching."""

Item = dict[str, Any]
"""A reading as the import endpoint takes it."""


@dataclass(frozen=True, slots=True)
class Log:
    """Reports of the hydrometer, oldest first, and the notes beside them."""

    payloads: list[Payload]
    notes: list[Item]


def log_of(
    batch: SampleBatch, course: Course, hydrometer: Hydrometer, pitched_at: int, now: int, dice: random.Random
) -> Log:
    """Make the log of a batch up to now (Unix seconds)."""
    days = (now - pitched_at) / units.SECONDS_PER_DAY if batch.days is None else batch.days
    beer = list(fermentation(course, days))
    return Log(
        payloads=[
            hydrometer.payload(point, pitched_at, batch.recipe, dice)
            for point in measured(beer, dice)
            if pitched_at + point.seconds <= now
        ],
        notes=[_noted(sample, batch, beer, pitched_at, dice.uniform(0, NOTED_S)) for sample in batch.samples],
    )


def readings_of(payloads: Sequence[Payload]) -> list[Reading]:
    """Return the readings that the gateway would have made of these reports of one device."""
    readings: list[Reading] = []
    device = None
    for payload in payloads:
        [report] = decode(payload).reports
        device = device or Device.first_seen(report, int(payload.received_at))
        reading, inferred = normalise(report, device, payload)
        readings.append(reading)
        device = device.learned(report, reading, inferred)
    return readings


def events_of(notes: Sequence[Item], session_id: int) -> list[BrewEvent]:
    """Return the events of the time line that the notes are, each with its reading."""
    events = []
    for note in notes:
        at = int(datetime.fromisoformat(note["created_at"]).timestamp())
        kind = HAND_READING if "gravity" in note or not note["comment"] else "note"
        if "hops" in note["comment"].lower():
            kind = "dry_hop"
        oid = note["_id"]["$oid"]
        events.append(BrewEvent(0, session_id, at, kind, note["comment"], AUTHOR, at, at, {}, oid))
    return events


def _noted(
    sample: Sample, batch: SampleBatch, beer: Sequence[CurvePoint], pitched_at: int, later_s: float
) -> Item:
    """Make a manual reading: a glass hydrometer is read to a point, a thermometer to a degree."""
    seconds = round(sample.day * units.SECONDS_PER_DAY + later_s)
    point = beer[min(round(seconds / INTERVAL_S), len(beer) - 1)]
    fahrenheit = batch.details["userunit"] == "us"
    item: Item = {
        "_id": {"$oid": new_object_id(pitched_at + seconds)},
        "name": "",
        "temp": round(units.celsius_to_fahrenheit(point.celsius) if fahrenheit else point.celsius),
        "temp_unit": "F" if fahrenheit else "C",
        "comment": sample.comment,
        "beer": batch.recipe,
        "source": BY_HAND,
        "created_at": iso(pitched_at + seconds),
    }
    if sample.gravity:
        item |= {"gravity": f"{point.sg:.3f}", "gravity_unit": "G"}
    if sample.ph is not None:
        item["ph"] = sample.ph
    return item
