"""What goes wrong between a device and its server: a report, and how it leaves with a fault.

The faults are our own; the reasons are those of devices.md: brokers and forwarders deliver twice,
bridges late and several at once, small buffers cut bodies (4.4), clocks start at 1970 (7.5).
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from sample_devices.devices import Simulated
from sample_devices.wire.report import HttpReport, Message, MqttReport, Report, Said, TcpReport

FAULTS = {
    "duplicate": "the same bytes twice in a row; one reading is due",
    "late": "delivered after a pause, with its own earlier time where the device sends one",
    "truncated": "the body is cut, by HTTP half of the time with the connection; no reading is due",
    "garbage": "random bytes instead of the body; no reading is due",
    "wrong-clock": "a device time of 1970 or 2106; only devices that send their time",
    "burst": "five reports at once, all of them due",
    "retained": "published retained, and once more not retained; one reading is due; only MQTT",
}

DEFAULT_SHARE = 0.1
BURST_REPORTS = 5
LATE_PAUSE_S = 1.0  # real seconds that a late report is held back
LATE_BY = timedelta(minutes=30)  # how much older its own time is
GARBAGE_BYTES = 48
TEXT_BYTES_KEPT = 3  # of a body that is no JSON: so few that no value in it is whole

_UNSET_CLOCK = datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
_OVERFLOWN_CLOCK = datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC)  # all 32 bits set
_NO_UTF8 = b"\xff\xfe"
_CONTENT_LENGTH = re.compile(rb"(?i)(\r\ncontent-length: *)\d+")


class NotApplicable(Exception):
    """A fault that this device cannot have, with the reason for the user."""


@dataclass(frozen=True, slots=True)
class Sending:
    """One report as it leaves: what it says, the copies in order, and whether its readings are due."""

    said: tuple[Said, ...]
    copies: tuple[Report, ...]
    fault: str | None = None
    pause_s: float = 0.0
    expected: bool = True


class Faults(NamedTuple):
    """Which faults a fleet has, in what share of its reports, drawn from a seed."""

    chosen: tuple[str, ...] = ()
    share: float = DEFAULT_SHARE
    seed: int = 1

    def sendings(self, device: Simulated, index: int, elapsed_s: float, step_s: float) -> list[Sending]:
        """Plan the report of a moment: as it should be, or with a fault this device can have."""
        draw = random.Random(f"{self.seed}|{index}|{elapsed_s}|fault")
        if self.chosen and draw.random() < self.share:
            for fault in draw.sample(self.chosen, len(self.chosen)):
                try:
                    return faulty(device, fault, elapsed_s, step_s)
                except NotApplicable:
                    continue
        return [plain(device.report(elapsed_s))]


NO_FAULTS = Faults()


def plain(report: Report) -> Sending:
    """Give a report that leaves as it should."""
    return Sending(report.said, (report,), expected=bool(report.said))


def faulty(device: Simulated, fault: str, elapsed_s: float, step_s: float) -> list[Sending]:
    """Plan the report of a moment with a fault; a burst also takes the next moments, a step apart."""
    draw = random.Random(f"{device.kind}|{elapsed_s}|{fault}")
    if fault == "burst":
        moments = [elapsed_s + step_s * number for number in range(BURST_REPORTS)]
        return [replace(plain(device.report(moment)), fault=fault) for moment in moments]
    return [_one(device, fault, elapsed_s, draw)]


def _one(device: Simulated, fault: str, elapsed_s: float, draw: random.Random) -> Sending:
    now = datetime.now(UTC).astimezone()
    sent = plain(device.report(elapsed_s, now))
    (report,) = sent.copies
    match fault:
        case "duplicate":
            return replace(sent, fault=fault, copies=(report, report))
        case "late":
            late = plain(device.report(elapsed_s, now - LATE_BY))
            return replace(late, fault=fault, pause_s=LATE_PAUSE_S)
        case "wrong-clock":
            return replace(plain(_with_wrong_clock(device, elapsed_s, now, draw)), fault=fault)
        case "retained":
            return replace(sent, fault=fault, copies=_retained(report))
        case "truncated":
            return replace(sent, fault=fault, copies=(_truncated(report, draw),), expected=False)
        case "garbage":
            noise = _NO_UTF8 + draw.randbytes(GARBAGE_BYTES)
            return replace(sent, fault=fault, copies=(_with_body(report, lambda _: noise),), expected=False)
    raise ValueError(f"there is no fault {fault!r}")


def _with_wrong_clock(device: Simulated, elapsed_s: float, now: datetime, draw: random.Random) -> Report:
    wrong = draw.choice((_UNSET_CLOCK, _OVERFLOWN_CLOCK)).astimezone(now.tzinfo)
    report = device.report(elapsed_s, wrong)
    if report == device.report(elapsed_s, now):
        raise NotApplicable(f"{device.kind} sends no time of its own")
    return report


def _retained(report: Report) -> tuple[Report, ...]:
    if not isinstance(report, MqttReport):
        raise NotApplicable("only MQTT messages can be retained")
    return tuple(
        replace(report, messages=tuple(message._replace(retain=retain) for message in report.messages))
        for retain in (True, False)
    )


def _truncated(report: Report, draw: random.Random) -> Report:
    """Cut the body; half of the time the whole length is still declared, and the connection ends there."""
    short = _with_body(report, _cut)
    if isinstance(report, HttpReport) and isinstance(short, HttpReport) and draw.random() < 0.5:
        head, _, _ = report.request.partition(b"\r\n\r\n")
        _, _, body = short.request.partition(b"\r\n\r\n")
        return replace(report, request=head + b"\r\n\r\n" + body, cut=True)
    return short


def _cut(body: bytes) -> bytes:
    """Halve JSON, which then never parses; leave of anything else too little for a value."""
    return body[: len(body) // 2] if body.lstrip()[:1] in {b"{", b"["} else body[:TEXT_BYTES_KEPT]


def _with_body(report: Report, change: Callable[[bytes], bytes]) -> Report:
    """Change the body of a report, or each of its messages; the length that is declared stays true."""
    match report:
        case HttpReport():
            head, _, body = report.request.partition(b"\r\n\r\n")
            if not body:
                raise NotApplicable("a request without a body has nothing to break")
            body = change(body)
            head = _CONTENT_LENGTH.sub(rb"\g<1>%d" % len(body), head)
            return replace(report, request=head + b"\r\n\r\n" + body)
        case TcpReport():
            return replace(report, data=change(report.data))
        case MqttReport():
            return replace(report, messages=tuple(_with_payload(each, change) for each in report.messages))


def _with_payload(message: Message, change: Callable[[bytes], bytes]) -> Message:
    if change is _cut and message.payload.lstrip()[:1] not in {b"{", b"["}:
        raise NotApplicable("half of a message with one value is another value")
    return message._replace(payload=change(message.payload))
