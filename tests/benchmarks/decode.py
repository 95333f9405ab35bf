"""From an iSpindel's bytes to a reading, against `json.loads` and a pydantic model of the same members."""

import json
import time
from collections.abc import Sequence

from pydantic import BaseModel

from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.drivers import decode
from gateway.intake.normalise import normalise
from tests.benchmarks.payloads import body
from tests.benchmarks.plan import Plan, alternate
from tests.benchmarks.report import Figure, Goal

GOAL = Goal("measured", "<=", 60)

FIRST_ARRIVAL = 1_770_000_000.0


class Spindle(BaseModel):
    """What the bare ceiling makes of the JSON."""

    name: str
    ID: int
    token: str = ""
    angle: float
    temperature: float
    temp_units: str
    battery: float
    gravity: float
    interval: int
    RSSI: int


def measure(plan: Plan) -> list[Figure]:
    """Microseconds for each of many different payloads of one device."""
    bodies = [body(number, devices=1) for number in range(plan.payloads)]
    pairs = alternate(plan.rounds, lambda: _understood_us(bodies), lambda: _bare_us(bodies))
    return [Figure.of_rounds("decode and normalise an iSpindel's payload", "us", GOAL, pairs)]


def _understood_us(bodies: Sequence[bytes]) -> float:
    device = None
    payloads = [Payload(raw, FIRST_ARRIVAL + place, "http /ingest") for place, raw in enumerate(bodies)]
    begun = time.process_time()
    for payload in payloads:
        [report] = decode(payload).reports
        device = device or Device.first_seen(report, 0)
        reading, inferred = normalise(report, device, payload)
        device = device.learned(report, reading, inferred)
    return (time.process_time() - begun) / len(bodies) * 1e6


def _bare_us(bodies: Sequence[bytes]) -> float:
    begun = time.process_time()
    for raw in bodies:
        Spindle.model_validate(json.loads(raw))
    return (time.process_time() - begun) / len(bodies) * 1e6
