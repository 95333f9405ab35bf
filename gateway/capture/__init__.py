"""Real payloads of a device as golden cases without secrets: redacted, and checked afterwards.

A case is a file of `tests/pure/drivers/cases`: how a payload comes over the wire, and the readings in it. The
address is that of the delivery, as far as it is stored: a key in a path and the query of a POST are not.
"""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from gateway import __version__
from gateway.capture.wire import DECODED_AT_S, NotCaptured, Wires
from gateway.domain import times
from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import BY_NAME, decode
from gateway.errors import DriverError
from gateway.intake.normalise import normalise
from gateway.redact import Redactor
from gateway.store.protocol import Store
from gateway.store.records import RawReading

FIRST_SPAN_S = 6 * 3600
SPAN_FACTOR = 4
"""The newest payloads are searched for in spans of Unix seconds, each longer by this factor."""

PAGE_READINGS = 200


@dataclass(frozen=True, slots=True)
class CapturedCase:
    """A golden case and the place of its file: in its family's folder, named by its arrival."""

    name: str
    content: dict[str, Any]

    def text(self) -> str:
        """Return the file's text."""
        return json.dumps(self.content, indent=1, ensure_ascii=False) + "\n"


async def newest_payloads(store: Store, device: Device, last_seen_at: int, count: int) -> list[RawReading]:
    """Find the device's last payloads, oldest first. Several readings of one payload count once."""
    span_s = FIRST_SPAN_S
    while True:
        found: dict[tuple[int, bytes], RawReading] = {}
        place = last_seen_at - span_s, -1
        while page := await store.payloads.page(device.id, place, PAGE_READINGS):
            for sent in page:
                found[sent.reading.received_at, sent.raw] = sent
            place = page[-1].reading.created_at, page[-1].seq
        if len(found) >= count or span_s > times.EVER_S:
            return sorted(found.values(), key=lambda sent: sent.reading.received_at)[-count:]
        span_s *= SPAN_FACTOR


class Capturing:
    """A run of capture. A name that stands in several payloads has the same pseudonym in all of them."""

    def __init__(self) -> None:
        self._wires = Wires(Redactor())

    def case(self, device: Device, sent: RawReading) -> CapturedCase:
        """Make a case of the payload. Raise `NotCaptured` with the reason if that is impossible."""
        family = sent.reading.source  # a MAC may be told by several, and two devices may have become one
        if family not in BY_NAME:
            raise NotCaptured(f"there is no driver {family} any more")
        device = replace(device, family=family, stable_id=device.ids_as(family)[0])
        try:
            return self._case(device, sent)
        except ValueError as error:
            raise NotCaptured(f"it is not what its family sends: {error}") from error

    def _case(self, device: Device, sent: RawReading) -> CapturedCase:
        wire = self._wires.wire(device, sent.channel, sent.raw.decode())
        original = Payload(sent.raw, DECODED_AT_S, "", driver=device.family, label=device.stable_id)
        before, after = _reports(original), _reports(self._wires.delivered(wire))
        # The redaction must change nothing but names.
        if len(before) != len(after):
            raise NotCaptured(f"without its names it holds {len(after)} readings instead of {len(before)}")
        for old, new in zip(before, after, strict=True):
            for member in ("family", "gravity", "gravity_unit", "temp", "temp_unit", "flags", "interval_s"):
                if getattr(old, member) != getattr(new, member):
                    raise NotCaptured(f"without its names its {member.replace('_', ' ')} would be another")
        expected = [_expected(report, self._wires.delivered(wire)) for report in after]
        content = {
            "device": BY_NAME[device.family].title,
            "variant": "captured",
            "source": f"captured by hydrometer-gateway {__version__}",
            **wire,
            "expected": expected[0] if len(expected) == 1 else expected,
        }
        arrived = datetime.fromtimestamp(sent.reading.received_at / 1000, UTC)
        milliseconds = sent.reading.received_at % 1000
        return CapturedCase(
            f"{device.family}/captured_{arrived:%Y%m%dT%H%M%S}{milliseconds:03}_{device.id}.json", content
        )


def _reports(payload: Payload) -> list[Report]:
    try:
        return decode(payload).reports
    except DriverError as error:
        raise NotCaptured(f"it is not understood: {error}") from error


def _expected(report: Report, payload: Payload) -> dict[str, Any]:
    """Return the expectations of the case for this reading."""
    reading, _ = normalise(report, Device.first_seen(report, 0), payload)
    members: dict[str, Any] = {
        "name": reading.name,
        "device_id": report.stable_id,
        "token": report.token,
        "gravity": reading.gravity or None,
        "gravity_unit": reading.gravity_unit,
        "temp": reading.temp or None,
        "temp_unit": reading.temp_unit if report.temp_unit is not None else None,
        "beer": reading.beer or None,
        "comment": reading.comment or None,
        **json.loads(reading.facts or "{}"),
        "flags": json.loads(reading.flags or "[]"),
    }
    always = {"name", "gravity", "temp"}
    return {name: value for name, value in members.items() if name in always or value not in (None, [], "")}


__all__ = ["CapturedCase", "Capturing", "NotCaptured", "newest_payloads"]
