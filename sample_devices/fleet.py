"""Run many simulated devices side by side, each on its own beat, until told to stop."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from sample_devices.devices import KINDS, Simulated
from sample_devices.transports.errors import NotAnswered

FINISH_DEADLINE_S = 8.0  # for reports in flight after the stop; below the 10 s Docker waits

_STOPPED = "stopped before it was answered"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One report as the fleet prints it: texts as on the wire, and how it was answered."""

    kind: str
    name: str
    device_id: str | None
    transport: str
    gravity: str
    gravity_unit: str
    temp: str
    temp_unit: str
    answered: bool
    error: str | None
    number: int  # counts the reports of this device from 1

    def as_json(self) -> str:
        """Give one JSON object on one line."""
        return json.dumps(asdict(self), ensure_ascii=False)

    def as_text(self) -> str:
        """Give one short line for people."""
        how = "answered" if self.answered else f"NOT answered: {self.error}"
        gravity, temp = f"{self.gravity} {self.gravity_unit}", f"{self.temp} {self.temp_unit}"
        return f"{self.kind:<15} {self.name:<15} #{self.number:<4} {gravity:<10} {temp:<9} {how}"


@dataclass(slots=True)
class Tally:
    """How many reports were sent and how many of them answered."""

    sent: int = 0
    answered: int = 0


@dataclass(frozen=True, slots=True)
class Beat:
    """Real seconds between the reports of a device, and simulated seconds that each advances."""

    every_s: float
    step_s: float


async def run(
    devices: Sequence[Simulated], beat: Beat, stop: asyncio.Event, tell: Callable[[Outcome], None]
) -> Tally:
    """Let the devices report until the event is set; reports in flight get a bounded time to end."""
    tally = Tally()

    def count(outcome: Outcome) -> None:
        tally.sent += 1
        tally.answered += outcome.answered
        tell(outcome)

    try:
        async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as group:
            for index, device in enumerate(devices):
                lives = _live(device, beat, index * beat.every_s / len(devices), stop, count)
                group.create_task(lives, name=f"device {index} {device.kind}")
            await stop.wait()
            limit.reschedule(asyncio.get_running_loop().time() + FINISH_DEADLINE_S)
    except TimeoutError:
        pass  # every report that was cut off has told so itself
    return tally


async def _live(
    device: Simulated, beat: Beat, head_start_s: float, stop: asyncio.Event, tell: Callable[[Outcome], None]
) -> None:
    """Report again and again, as after each deep sleep; never twice for the same reading."""
    loop = asyncio.get_running_loop()
    due = loop.time() + head_start_s
    number = 0
    while not await _stopped_before(stop, due):
        number += 1
        tell(await _report_once(device, number, beat.step_s, tell))
        # A slow answer delays the device; it does not make it hurry afterwards.
        due = max(due + beat.every_s, loop.time())


async def _report_once(
    device: Simulated, number: int, step_s: float, tell: Callable[[Outcome], None]
) -> Outcome:
    report = device.report((number - 1) * step_s)

    def outcome(error: str | None) -> Outcome:
        transport = KINDS[device.kind].transport
        said = asdict(report.said)
        return Outcome(
            kind=device.kind, transport=transport, answered=error is None, error=error, number=number, **said
        )

    try:
        await device.send(report)
    except NotAnswered as failure:
        return outcome(str(failure))
    except asyncio.CancelledError:
        tell(outcome(_STOPPED))
        raise
    return outcome(None)


async def _stopped_before(stop: asyncio.Event, due: float) -> bool:
    """Wait for the stop until a moment of the loop's clock; tell whether it came."""
    try:
        async with asyncio.timeout_at(due):
            await stop.wait()
    except TimeoutError:
        return stop.is_set()
    return True
