"""What speaks against the time that the machine says. Pure.

| the clock is suspect | until |
|---|---|
| before `RELEASED_AT` | it is set; never by waiting |
| more than 2 minutes before readings that are stored | it is set, or a day has passed |
| at the start, network time switched on and not there yet | it is there, or an hour since boot has passed |
| after a jump of more than 2 minutes that no time server explains | it jumps back, one does, or an hour |
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.clock import RELEASED_AT

JUMP_S = 120.0
"""Wall against monotonic time; leap seconds and the slewing of time services stay below."""

JUMP_WAIT_S = 3_600.0
"""After a jump that nobody explains, this long the new time is not believed."""

BEHIND_WAIT_S = 86_400.0
"""So long a time is not believed that lies before what is stored."""

BOOT_WAIT_S = 3_600.0
"""Since boot: so long a time service that is switched on is waited for."""

_FAR = 253_402_300_799.0
"""The end of the year 9999 in Unix seconds: `datetime` shows nothing later."""

REMEDY = "switch on network time (`timedatectl set-ntp true`) or set the clock (`timedatectl set-time`)"


@dataclass(frozen=True, slots=True)
class Suspicion:
    """Why the clock is not believed; `until` is in seconds since boot, None where waiting does not end it."""

    reason: str
    until: float | None


def judge(
    wall: float, since_boot: float, expected: float | None, newest: float, *, awaited: bool
) -> Suspicion | None:
    """Why this wall time is not to be believed, or None; Unix seconds, but for those since boot.

    `expected` follows from the last time that was believed, `newest` is the latest arrival that is stored;
    `awaited`: a time service is at work that has no answer yet.
    """
    if expected is not None and abs(wall - expected) <= JUMP_S:
        return None
    says = f"it says {shown(wall)}"
    if wall < RELEASED_AT:
        return Suspicion(f"{says}, which is before this program was made; {REMEDY}", None)
    latest = newest if expected is None else max(newest, expected)
    if wall < latest - JUMP_S:
        until = since_boot + BEHIND_WAIT_S
        return Suspicion(f"{says}, but it was {shown(latest)} already; {REMEDY}", until)
    if expected is not None:
        return Suspicion(f"{says}, where {shown(expected)} was expected; {REMEDY}", since_boot + JUMP_WAIT_S)
    if awaited and since_boot < BOOT_WAIT_S:
        return Suspicion("network time has not come yet since the machine started", BOOT_WAIT_S)
    return None


def shown(unix_seconds: float) -> str:
    """As people read it, to the minute."""
    moment = datetime.fromtimestamp(min(unix_seconds, _FAR), UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"
