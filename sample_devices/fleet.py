"""Run many simulated devices side by side, each on its own beat, until told to stop."""

import asyncio
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from sample_devices.devices import KINDS, Simulated
from sample_devices.faults import NO_FAULTS, Faults, Sending
from sample_devices.transports.errors import NotAnswered
from sample_devices.wire.report import HttpReport, MqttReport, Report, Said

FINISH_DEADLINE_S = 8.0  # for reports in flight after the stop; below the 10 s Docker waits
SAME_BYTES_S = 60.0  # a server may take the same bytes of a device within so long for one delivery

REAL_EVERY_S = 60.0
"""Seconds between two reports of a device once simulated time is real time."""

_STOPPED = "stopped before it was answered"
_NOTHING = Said("", None, None, None, None, None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One reading of a report as the fleet prints it: texts as on the wire, and how it was answered."""

    kind: str
    name: str
    device_id: str | None
    transport: str
    gravity: str | None
    gravity_unit: str | None
    temp: str | None
    temp_unit: str | None
    answered: bool
    error: str | None
    number: int  # counts the simulated moments of this device from 1, one step apart
    sent_at: float  # Unix seconds, when it left for the first time
    facts: Mapping[str, str | float]  # further values, by the names of devices.md section 2
    measured_at: float | None = None  # the device's own time in Unix seconds, where it sends one
    readings: int = 1  # in this report; each has a line of its own
    fault: str | None = None
    expected: bool = True  # False where a server should store no reading

    def as_json(self) -> str:
        """Give one JSON object on one line; the last four members only where they are not as usual."""
        usual = {"measured_at": None, "readings": 1, "fault": None, "expected": True}
        said = {key: value for key, value in asdict(self).items() if key not in usual or value != usual[key]}
        return json.dumps(said, ensure_ascii=False)

    def as_text(self) -> str:
        """Give one short line for people."""
        how = "answered" if self.answered else f"NOT answered: {self.error}"
        if self.fault is not None:
            how += f" ({self.fault})"
        gravity, temp = _value(self.gravity, self.gravity_unit), _value(self.temp, self.temp_unit)
        return f"{self.kind:<15} {self.name:<15} #{self.number:<4} {gravity:<10} {temp:<9} {how}"


def _value(text: str | None, unit: str | None) -> str:
    return "-" if text is None else f"{text} {unit or ''}".rstrip()


@dataclass(slots=True)
class Tally:
    """How many reports were sent and how many of them answered."""

    sent: int = 0
    answered: int = 0


@dataclass(frozen=True, slots=True)
class Beat:
    """Real seconds between the reports of a device, and simulated seconds that each advances.

    A device begins `apart_s` after the one before it; None spreads all over one interval. From `lapse_s` on,
    simulated time is real time, with a report every `REAL_EVERY_S`.
    """

    every_s: float
    step_s: float
    apart_s: float | None = None
    lapse_s: float = math.inf

    def head_start_s(self, index: int, devices: int) -> float:
        """Return the real seconds from the fleet's start to a device's first report."""
        return index * (self.every_s / devices if self.apart_s is None else self.apart_s)

    def at(self, running_s: float) -> tuple[float, float]:
        """Return the interval and the step for a fleet that runs for so many seconds."""
        real = running_s >= self.lapse_s
        return (REAL_EVERY_S, REAL_EVERY_S) if real else (self.every_s, self.step_s)


def introductions(devices: Sequence[Simulated]) -> list[str]:
    """Return a JSON line for each reading that a device's reports have: its kind, its name and its id."""
    return [
        json.dumps({"device": {"kind": device.kind, "name": said.name, "device_id": said.device_id}})
        for device in devices
        for said in device.report(0.0).said
    ]


async def run(
    devices: Sequence[Simulated],
    beat: Beat,
    stop: asyncio.Event,
    tell: Callable[[Outcome], None],
    faults: Faults = NO_FAULTS,
) -> Tally:
    """Let the devices report until the event is set; reports in flight get a bounded time to end."""
    tally = Tally()

    def count(outcomes: list[Outcome]) -> None:
        tally.sent += 1
        tally.answered += outcomes[0].answered
        for outcome in outcomes:
            tell(outcome)

    try:
        async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as group:
            for index, device in enumerate(devices):
                life = _Life(device, index, faults, beat, count)
                lives = life.live(beat.head_start_s(index, len(devices)), stop)
                group.create_task(lives, name=f"device {index} {device.kind}")
            await stop.wait()
            limit.reschedule(asyncio.get_running_loop().time() + FINISH_DEADLINE_S)
    except TimeoutError:
        pass  # every report that was cut off has told so itself
    return tally


class _Life:
    """One device while the fleet runs: its simulated time, the count of its reports, what it sent of late."""

    def __init__(
        self,
        device: Simulated,
        index: int,
        faults: Faults,
        beat: Beat,
        tell: Callable[[list[Outcome]], None],
    ) -> None:
        self._device = device
        self._index = index
        self._faults = faults
        self._beat = beat
        self._tell = tell
        self._number = 0
        self._sent_at: dict[object, float] = {}

    async def live(self, head_start_s: float, stop: asyncio.Event) -> None:
        """Report again and again, as after each deep sleep; never twice for the same reading."""
        loop = asyncio.get_running_loop()
        began, elapsed_s = loop.time(), 0.0
        due = began + head_start_s
        while not await _stopped_before(stop, due):
            every_s, step_s = self._beat.at(loop.time() - began)
            planned = self._faults.sendings(self._device, self._index, elapsed_s, step_s)
            numbered = list(enumerate(planned, self._number + 1))
            self._number += len(planned)
            elapsed_s += len(planned) * step_s
            await self._send_all([each for each in numbered if self._is_new(each[1], loop.time())])
            # A slow answer delays the device; it does not make it hurry afterwards.
            due = max(due + every_s, loop.time())

    def _is_new(self, sending: Sending, now: float) -> bool:
        """Tell whether a server can tell this report from the last ones; coarse devices repeat themselves."""
        self._sent_at = {each: at for each, at in self._sent_at.items() if now - at < SAME_BYTES_S}
        content = _content(sending.copies[0])
        if sending.expected and content in self._sent_at:
            return False
        self._sent_at[content] = now
        return True

    async def _send_all(self, numbered: Sequence[tuple[int, Sending]]) -> None:
        """Send a burst at once, except by MQTT, where a client id has one connection at a time."""
        if KINDS[self._device.kind].transport == "mqtt":
            for number, sending in numbered:
                await self._report_once(sending, number)
        else:
            await asyncio.gather(*(self._report_once(sending, number) for number, sending in numbered))

    async def _report_once(self, sending: Sending, number: int) -> None:
        sent_at = time.time() + sending.pause_s
        try:
            await asyncio.sleep(sending.pause_s)
            for report in sending.copies:
                await self._device.send(report)
        except NotAnswered as failure:
            error: str | None = str(failure)
        except asyncio.CancelledError:
            self._tell(self._outcomes(sending, number, sent_at, _STOPPED))
            raise
        else:
            error = None
        self._tell(self._outcomes(sending, number, sent_at, error))

    def _outcomes(self, sending: Sending, number: int, sent_at: float, error: str | None) -> list[Outcome]:
        kind = self._device.kind
        return [
            Outcome(
                kind=kind, transport=KINDS[kind].transport, answered=error is None, error=error,
                number=number, sent_at=round(sent_at, 3), readings=len(sending.said), fault=sending.fault,
                expected=sending.expected, **asdict(said),
            )
            for said in sending.said or (_NOTHING,)
        ]  # fmt: skip


def _content(report: Report) -> object:
    """Give what a server can compare of a report: its bytes, without MQTT's flags."""
    match report:
        case HttpReport():
            return report.request
        case MqttReport():
            return tuple((message.topic, message.payload) for message in report.messages)
        case _:
            return report.data


async def _stopped_before(stop: asyncio.Event, due: float) -> bool:
    """Wait for the stop until a moment of the loop's clock; tell whether it came."""
    try:
        async with asyncio.timeout_at(due):
            await stop.wait()
    except TimeoutError:
        return stop.is_set()
    return True
