"""Devices and readings that no target takes, though a target exists: somebody may have forgotten them.

Without any target, everything stays here on purpose, and nothing is reported. Targets of other kinds than a
Brewing Data Service get what is mapped to them, and count as none here.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.domain.target import SERVICE, Target
from gateway.store.protocol import Store

NAMED_SESSIONS = 5
"""Brew sessions that one sentence names at most; the others are counted."""


@dataclass(frozen=True, slots=True)
class Unforwarded:
    """A device or readings that no target takes, as a sentence without full stop, and a remedy."""

    text: str
    remedy: str


async def forwarded_sessions(store: Store, targets: Sequence[Target]) -> set[int]:
    """Return the ids of brew sessions that at least one of these targets takes."""
    return {session for target in targets for session in await store.targets.sessions(target)}


async def devices_to_nowhere(store: Store, targets: Sequence[Target]) -> list[Unforwarded]:
    """Find the devices in brew sessions that no target takes."""
    targets = _services(targets)
    if not targets:
        return []
    taken = await forwarded_sessions(store, targets)
    sessions = {session.id: session for session in await store.sessions.all() if session.id not in taken}
    devices = await store.devices.all()
    return [
        Unforwarded(
            f"device {called(device, devices)} reports into brew session {which(session)}, "
            "which goes nowhere",
            _mapping(session, targets),
        )
        for device in devices
        if (session := sessions.get(device.session_id or 0)) is not None
    ]


async def session_to_nowhere(store: Store, session: BrewSession) -> Unforwarded | None:
    """Return a finding if targets exist and none takes the brew session, else None."""
    targets = _services(await store.targets.all())
    if not targets or session.id in await forwarded_sessions(store, targets):
        return None
    return Unforwarded(f"brew session {which(session)} goes nowhere", _mapping(session, targets))


async def readings_to_nowhere(store: Store, targets: Sequence[Target]) -> list[Unforwarded]:
    """Find readings in brew sessions without a target, and readings of devices in no brew session."""
    targets = _services(targets)
    if not targets:
        return []
    taken = await forwarded_sessions(store, targets)
    own = await store.totals.own_readings()
    left = [s for s in await store.sessions.all() if not s.is_over and own.get(s.id) and s.id not in taken]
    found: list[Unforwarded] = []
    if left:
        count = sum(own[session.id] for session in left)
        named = ", ".join(map(which, left[:NAMED_SESSIONS]))
        more = f" and {len(left) - NAMED_SESSIONS} more" if len(left) > NAMED_SESSIONS else ""
        noun = "brew session" if len(left) == 1 else "brew sessions"
        wait = _verb(count, "waits", "wait")
        text = f"{_readings(count)} in {noun} {named}{more} {wait} for nobody: no target takes them"
        found.append(Unforwarded(text, _mapping(left[0], targets)))
    unassigned = await store.totals.unassigned() if taken else {}
    devices = await store.devices.all()
    for device in devices:
        if device.id in unassigned and device.session_id is None:
            count, name = unassigned[device.id], called(device, devices)
            text = f"{_readings(count)} of device {name} {_verb(count, 'is', 'are')} in no brew session"
            remedy = f"`devices assign {name} SESSION --since DAY` puts what came since a day into one"
            found.append(Unforwarded(f"{text} and {_verb(count, 'waits', 'wait')} for nobody", remedy))
    return found


def _services(targets: Sequence[Target]) -> list[Target]:
    return [target for target in targets if target.kind == SERVICE]


def _mapping(session: BrewSession, targets: Sequence[Target]) -> str:
    """Return the remedy: how to forward a brew session to the first target."""
    name = targets[0].name
    numbers = f"`targets sessions {name}` shows the numbers there"
    return f"`targets map {name} {session.id} NUMBER` forwards it; {numbers}"


def twin_warning(session: BrewSession, twins: Sequence[BrewSession]) -> str | None:
    """Return a warning about other brew sessions with the same batch code, None without any."""
    if not twins:
        return None
    first = twins[0].id
    numbers = " and ".join(str(twin.id) for twin in twins)
    have = f"brew session {numbers} has" if len(twins) == 1 else f"brew sessions {numbers} have"
    return (
        f"{have} the batch code {session.batchcode}, too; if it is the same beer, keep one: "
        f"`sessions update {first}` changes that one, `sessions delete {session.id}` removes this one"
    )


def which(session: BrewSession) -> str:
    """Show a brew session by id and batch code: `1 (HP001)`."""
    return label(session.id, session.batchcode)


def label(session_id: int, batchcode: str) -> str:
    """Show a brew session by its id and batch code, the latter on one line."""
    return f"{session_id} ({' '.join(batchcode.split())})"


def called(device: Device, devices: Sequence[Device]) -> str:
    """Show a device by its title if no other device has it, else by its key, quoted for a shell."""
    alike = [other for other in devices if device.title in {other.title, other.name, other.stable_id}]
    return shlex.quote(device.title if device.title.isprintable() and len(alike) == 1 else device.key)


def _readings(count: int) -> str:
    return f"{count:,} reading{'' if count == 1 else 's'}"


def _verb(count: int, one: str, several: str) -> str:
    return one if count == 1 else several
