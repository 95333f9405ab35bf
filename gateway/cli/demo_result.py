"""The demo's rows of devices, and its final proof that nothing is lost."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from gateway.cli.demo_state import Named, State

MEASURED = ("gravity", "gravity_unit", "temp", "temp_unit")


@dataclass(slots=True)
class DeviceRow:
    """A device of the gateway: its last reading, and the numbers of its readings here and upstream.

    `named` devices have a row of their own, with a curve: days since `began_at` (Unix seconds), and SG.
    `account_key` reads the brew session if it belongs to another account than the page's.
    """

    name: str
    family: str
    named: Named | None = None
    sg: float | None = None
    celsius: float | None = None
    began_at: float = 0.0
    curve: list[tuple[float, float]] = field(default_factory=list)
    state: State = "pitched"
    stored: int = 0
    forwarded: int = 0
    upstream: int = 0
    session_id: int | None = None
    upstream_id: int | None = None
    account_key: str = ""


@dataclass(slots=True)
class DemoSent:
    """The number of readings that the devices have sent, and of readings that were answered."""

    sent: int = 0
    answered: int = 0


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The final figures of the demo; `faults` are sentences.

    `thinned` readings come from bridges that push every few seconds, of which one a minute is kept.
    """

    sent: int
    answered: int
    stored: int
    thinned: int
    upstream: int
    faults: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Return whether every answered reading is stored, is upstream exactly once, and is given back."""
        return self.stored > 0 and not self.faults


def judged(sent: DemoSent, stored: int, thinned: int, upstream: int, faults: list[str]) -> DemoResult:
    """Make the result. A reading that was sent but not answered may be stored all the same."""
    if stored + thinned < sent.answered:
        faults.append(f"{sent.answered - thinned - stored} answered readings are not stored")
    if stored + thinned > sent.sent:
        faults.append(f"{stored + thinned - sent.sent} stored readings were never sent")
    return DemoResult(sent.sent, sent.answered, stored, thinned, upstream, tuple(faults))


def compare(row: DeviceRow, here: list[dict[str, Any]], there: list[dict[str, Any]]) -> list[str]:
    """Return the faults in one device's readings, as sentences."""
    faults = []
    if len(here) != row.stored:
        faults.append(f"{row.stored} stored, {len(here)} come back from the gateway")
    copies = Counter(reading_id(reading) for reading in there)
    wanted = {reading_id(reading): _measured(reading) for reading in here}
    if missing := len(wanted.keys() - copies.keys()):
        faults.append(f"{missing} stored readings are not upstream")
    if doubled := sum(count > 1 for count in copies.values()):
        faults.append(f"{doubled} readings are upstream more than once")
    if unknown := len(copies.keys() - wanted.keys()):
        faults.append(f"{unknown} readings upstream that the gateway does not have")
    if changed := sum(wanted.get(reading_id(one), _measured(one)) != _measured(one) for one in there):
        faults.append(f"{changed} readings have other values upstream")
    return [f"{row.family} {row.name}: {fault}" for fault in faults]


def reading_id(reading: dict[str, Any]) -> str:
    """Return the id that a reading keeps on its way."""
    return str(reading["_id"]["$oid"])


def _measured(reading: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(reading[member] for member in MEASURED)
