"""What nobody forwards although something is forwarded: devices and readings that were forgotten.

Where no target exists, everything stays here on purpose, and there is nothing to say.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.domain.target import Target
from gateway.store.protocol import Store

NAMED_SESSIONS = 5
"""Brew sessions that one sentence names; of the others it says how many."""


@dataclass(frozen=True, slots=True)
class Unforwarded:
    """What goes nowhere, in a sentence without its full stop, and what to do about it."""

    text: str
    remedy: str


async def forwarded_sessions(store: Store, targets: Sequence[Target]) -> set[int]:
    """Ids of the brew sessions that at least one of these targets takes."""
    return {session for target in targets for session in await store.targets.sessions(target)}


async def devices_to_nowhere(store: Store, targets: Sequence[Target]) -> list[Unforwarded]:
    """Each device that reports into a brew session which no target takes."""
    if not targets:
        return []
    taken = await forwarded_sessions(store, targets)
    sessions = {session.id: session for session in await store.sessions.all() if session.id not in taken}
    devices = await store.devices.all()
    return [
        _of_device(called(device, devices), sessions[device.session_id], targets)
        for device in devices
        if device.session_id in sessions
    ]


def _of_device(device: str, session: BrewSession, targets: Sequence[Target]) -> Unforwarded:
    text = f"device {device} reports into brew session {which(session)}, which goes nowhere"
    return Unforwarded(text, _mapping(session, targets))


async def session_to_nowhere(store: Store, session: BrewSession) -> Unforwarded | None:
    """The same of one brew session, where a target exists and none takes it."""
    targets = await store.targets.all()
    if not targets or session.id in await forwarded_sessions(store, targets):
        return None
    return Unforwarded(f"brew session {which(session)} goes nowhere", _mapping(session, targets))


async def readings_to_nowhere(store: Store, targets: Sequence[Target]) -> list[Unforwarded]:
    """Readings in brew sessions without a target, and those of devices that are in no brew session."""
    if not targets:
        return []
    taken = await forwarded_sessions(store, targets)
    own = await store.totals.own_readings()
    left = [s for s in await store.sessions.all() if not s.is_over and own.get(s.id) and s.id not in taken]
    found = [_in_sessions(left, sum(own[session.id] for session in left), targets)] if left else []
    unassigned = await store.totals.unassigned() if taken else {}
    devices = await store.devices.all()
    return found + [
        _unassigned(called(device, devices), unassigned[device.id])
        for device in devices
        if device.id in unassigned and device.session_id is None
    ]


def _unassigned(device: str, count: int) -> Unforwarded:
    text = f"{_readings(count)} of device {device} {_verb(count, 'is', 'are')} in no brew session"
    remedy = f"`devices assign {device} SESSION --since DAY` puts what came since a day into one"
    return Unforwarded(f"{text} and {_verb(count, 'waits', 'wait')} for nobody", remedy)


def _in_sessions(sessions: Sequence[BrewSession], count: int, targets: Sequence[Target]) -> Unforwarded:
    named = ", ".join(map(which, sessions[:NAMED_SESSIONS]))
    more = f" and {len(sessions) - NAMED_SESSIONS} more" if len(sessions) > NAMED_SESSIONS else ""
    noun = "brew session" if len(sessions) == 1 else "brew sessions"
    wait = _verb(count, "waits", "wait")
    text = f"{_readings(count)} in {noun} {named}{more} {wait} for nobody: no target takes them"
    return Unforwarded(text, _mapping(sessions[0], targets))


def _mapping(session: BrewSession, targets: Sequence[Target]) -> str:
    """How a brew session gets to the first of the targets: its own where there is one."""
    name = targets[0].name
    numbers = f"`targets sessions {name}` shows the numbers there"
    return f"`targets map {name} {session.id} NUMBER` forwards it; {numbers}"


def twin_warning(session: BrewSession, twins: Sequence[BrewSession]) -> str | None:
    """What to say of other brew sessions under way that have the session's batch code, if there are any."""
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
    """A brew session by id and batch code: `1 (HP001)`."""
    return label(session.id, session.batchcode)


def label(session_id: int, batchcode: str) -> str:
    """A brew session by id and batch code: `1 (HP001)`."""
    return f"{session_id} ({' '.join(batchcode.split())})"


def called(device: Device, devices: Sequence[Device]) -> str:
    """A device by its label or name where no other has that, else by its key; as a shell takes it."""
    alike = [other for other in devices if device.title in {other.title, other.name, other.stable_id}]
    return shlex.quote(device.title if device.title.isprintable() and len(alike) == 1 else device.key)


def _readings(count: int) -> str:
    return f"{count:,} reading{'' if count == 1 else 's'}"


def _verb(count: int, one: str, several: str) -> str:
    return one if count == 1 else several
