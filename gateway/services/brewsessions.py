"""Changes to brew sessions, and to the devices in them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import count

from gateway.clock import Clock
from gateway.domain.brewsession import DEFAULT_PHASE, DETAIL_MEMBERS, PHASE_AFTER_FERMENTING, BrewSession
from gateway.domain.device import Device, find_device
from gateway.domain.reading import Reading
from gateway.domain.recipe import Recipe
from gateway.domain.texts import NOT_TEXT
from gateway.domain.units import TYPICAL_SG, to_sg
from gateway.errors import InvalidInput, NameTaken, NotFound
from gateway.events import StoredNotices
from gateway.services.library import Library
from gateway.store.protocol import Store
from gateway.store.queries import Search

BATCHCODE_LETTERS = 5
"""Initials of the recipe's title in a batch code that nobody chose."""

TEXT_CHARACTERS = 1000
"""Characters of a batch code, a phase or a detail at most."""

NOTES_CHARACTERS = 100_000

PURGED_AT_ONCE = 500
"""Readings that are deleted in one transaction: about 10 ms in which no other one is stored."""

NUMERAL = re.compile(r"[0-9]{1,4}(\.[0-9]{1,6})?")

ALL_SESSIONS = 1_000_000
"""More than an account will ever have."""


@dataclass(frozen=True, slots=True)
class SessionChange:
    """Changes of a session; None leaves a member as it is.

    A folder of 0 is no folder, an upstream of 0 stops forwarding, an empty `og` takes the original gravity
    that was set by hand back. `ended` marks the brew done, or takes that back. `lead_device` is the device
    whose gravity the figures follow, 0 leaves the choice to the gateway. `recipe_id` is for a new session
    only.
    """

    recipe_id: int | None = None
    batchcode: str | None = None
    phase: str | None = None
    userdate: str | None = None
    notes: str | None = None
    folder_id: int | None = None
    upstream_id: int | None = None
    details: Mapping[str, str | None] = field(default_factory=dict)
    og: str | None = None
    og_unit: str | None = None
    ended: bool | None = None
    send_notes: bool | None = None
    lead_device: int | None = None


@dataclass(frozen=True, slots=True)
class Assigned:
    """A device, its new brew session, the one before, and how many readings moved with the device."""

    device: Device
    session: BrewSession
    before: BrewSession | None
    claimed: int


@dataclass(frozen=True, slots=True)
class NextBrew:
    """A new brew session, and its devices as they were before."""

    session: BrewSession
    devices: list[Device]


def local_day(unix_seconds: float) -> str:
    """Return the calendar day at that time, in the machine's time zone, YYYY-MM-DD."""
    return datetime.fromtimestamp(unix_seconds, UTC).astimezone().date().isoformat()


class BrewSessionService:
    """A service that changes brew sessions and their devices, and notifies the forwarder."""

    def __init__(self, store: Store, library: Library, notices: StoredNotices, clock: Clock) -> None:
        self._store = store
        self._library = library
        self._notices = notices
        self._clock = clock

    async def add_session(
        self,
        account_id: int,
        said: SessionChange,
        *,
        device_id: int | None = None,
        since: float | None = None,
        again: bool = True,
    ) -> BrewSession:
        """Add a brew session. With a recipe, it gets a snapshot that later changes do not reach.

        With `device_id`, put that device into it. Its readings since `since` (Unix seconds) come along, from
        no brew session and from the one that the device leaves. Without `again`, raise `NameTaken` if another
        brew session under way has its batch code.
        """
        session, snapshot = await self._new_session(account_id, said)
        if not again:
            await self._check_first(session)
        claim_since = None if since is None else int(since)
        session = await self._store.sessions.add(session, snapshot, device_id=device_id, since=claim_since)
        self._notices.notify("brew", brew=session.id)
        return session

    async def _new_session(self, account_id: int, said: SessionChange) -> tuple[BrewSession, Recipe | None]:
        now = int(self._clock.now())
        session = BrewSession(0, account_id, "", DEFAULT_PHASE, 0, None, now, now)
        session = replace(session, userdate=local_day(now))
        recipe = await self._store.recipes.get(said.recipe_id) if said.recipe_id else None
        if said.recipe_id and (recipe is None or recipe.account_id != account_id):
            raise NotFound(f"no recipe {said.recipe_id}; `recipes list` shows them")
        if said.batchcode is None:
            if recipe is None:
                raise InvalidInput("a brew session needs a batch code, or a recipe to make one from")
            # Initials with the first number that is free: HP001.
            initials = initials_of(recipe.content.title)
            search = Search(account_id=account_id, keyword=initials, limit=ALL_SESSIONS)
            _, found = await self._store.sessions.search(search)
            taken = {entry.session.batchcode for entry in found}
            codes = (f"{initials}{number:03d}" for number in count(1))
            said = replace(said, batchcode=next(code for code in codes if code not in taken))
        session = await self._changed(session, said)
        return session, None if recipe is None else self._library.snapshot_of(recipe)

    async def update_session(self, session: BrewSession, said: SessionChange) -> BrewSession:
        """Apply changes to a session. The end of a brew releases its devices; taken back, they return."""
        if said.recipe_id is not None:
            raise InvalidInput("a brew session keeps the recipe that it began with")
        now = int(self._clock.now())
        changed = replace(await self._changed(session, said), updated_at=now)
        if said.ended and session.ended_at is None:
            changed = replace(changed, ended_at=now, phase=said.phase or PHASE_AFTER_FERMENTING)
            await self._store.sessions.end(changed, now)
        elif said.ended is False and session.ended_at is not None:
            changed = replace(changed, ended_at=None, not_yet_at=None)
            if said.phase is None:
                changed = replace(changed, phase=await self._phase_before(session))
            await self._store.sessions.reopen(changed, now)
        else:
            await self._store.sessions.update(changed)
        self._notices.notify("brew", brew=session.id)
        return changed

    async def _phase_before(self, session: BrewSession) -> str:
        """Return the phase that a session had before its end, unless the phase was changed since."""
        for event in await self._store.events.of_session(session.id):
            if event.kind == "ended" and event.facts.get("phase") == session.phase:
                return str(event.facts["before"])
        return session.phase

    async def not_yet(self, session: BrewSession) -> None:
        """Remember the answer that the brew is not done yet: nobody is asked again for two days."""
        await self._store.sessions.update(replace(session, not_yet_at=int(self._clock.now())))
        self._notices.notify("brew", brew=session.id)

    async def delete_session(self, session: BrewSession) -> None:
        """Mark a session deleted; its readings stay, and its devices are in no session."""
        await self._store.sessions.delete(session.id, int(self._clock.now()))
        self._notices.notify("brew", brew=session.id)

    async def undelete_session(self, session_id: int) -> BrewSession:
        """Bring a deleted session back with its readings, but without its devices."""
        await self._store.sessions.undelete(session_id, int(self._clock.now()))
        self._notices.notify("brew", brew=session_id)
        session = await self._store.sessions.get(session_id)
        if session is None:
            raise NotFound(f"brew session {session_id} was deleted again")
        return session

    async def purge_session(self, session_id: int, told: Callable[[int], None]) -> int:
        """Delete a deleted session and its readings for good; report the count, and return the total."""
        total = 0
        while True:
            gone = await self._store.sessions.purge(session_id, PURGED_AT_ONCE)
            total += gone
            told(total)
            if gone < PURGED_AT_ONCE:
                return total

    async def _changed(self, session: BrewSession, said: SessionChange) -> BrewSession:
        _check(said)
        if said.lead_device:
            await self._check_lead(session, said.lead_device)
        if said.folder_id:
            await self._library.own_folder(session.account_id, said.folder_id, "brewsession")
        return replace(
            session,
            batchcode=_said(said.batchcode, session.batchcode).strip(),
            phase=_said(said.phase, session.phase),
            userdate=_said(said.userdate, session.userdate),
            notes=session.notes if said.notes is None else said.notes,
            folder_id=session.folder_id if said.folder_id is None else said.folder_id or None,
            upstream_id=session.upstream_id if said.upstream_id is None else said.upstream_id or None,
            details={**session.details, **said.details},
            og=session.og if said.og is None else said.og or None,
            og_unit=session.og_unit if said.og is None else (said.og and (said.og_unit or "G")) or None,
            send_notes=session.send_notes if said.send_notes is None else said.send_notes,
            lead_device=session.lead_device if said.lead_device is None else said.lead_device or None,
        )

    async def _check_lead(self, session: BrewSession, device_id: int) -> None:
        """Raise `InvalidInput` for a device that is not in the brew and has no readings there."""
        devices = await self._store.devices.all()
        inside = any((device.id, device.session_id) == (device_id, session.id) for device in devices)
        if not inside and await self._store.series.span(session_id=session.id, device_id=device_id) is None:
            raise InvalidInput(f"device {device_id} has no readings in this brew session")

    async def twins(self, session: BrewSession) -> list[BrewSession]:
        """Find other brew sessions of the account with the same batch code that are not over."""
        code = session.batchcode.casefold()
        return [
            other
            for other in await self._store.sessions.all()
            if (other.account_id, other.batchcode.casefold()) == (session.account_id, code)
            and other.id != session.id
            and not other.is_over
        ]

    async def _check_first(self, session: BrewSession, ended_id: int | None = None) -> None:
        """Raise `NameTaken` if a brew session under way, but for the one that ends, has the batch code."""
        twins = [twin for twin in await self.twins(session) if twin.id != ended_id]
        if twins:
            first = twins[0].id
            raise NameTaken(
                f"{' '.join(session.batchcode.split())} is brew session {first} already; "
                f"`sessions update {first}` changes that one, --again makes a second one"
            )

    async def next_session(
        self,
        old: BrewSession,
        phase: str,
        said: SessionChange,
        since: float | None = None,
        *,
        again: bool = True,
    ) -> NextBrew:
        """End a brew, whose phase becomes `phase`, and add the next, which takes over the devices.

        Their readings since `since` (Unix seconds), the moment at which the new beer began, belong to the new
        brew. Without `again`, raise `NameTaken` if a third brew session under way has the new batch code.
        """
        now = int(self._clock.now())
        began = now if since is None else min(int(since), now)
        ended_at = began if old.ended_at is None else old.ended_at
        ended = replace(await self._changed(old, SessionChange(phase=phase)), ended_at=ended_at)
        new, snapshot = await self._new_session(old.account_id, said)
        if not again:
            await self._check_first(new, old.id)
        new, moved = await self._store.sessions.follow(
            replace(ended, updated_at=now), new, snapshot, None if since is None else int(since), now
        )
        self._notices.notify()
        return NextBrew(new, [device for device in await self._store.devices.all() if device.id in moved])

    async def last_readings(self, session: BrewSession, limit: int) -> list[tuple[Device, Reading]]:
        """Return the last readings of the devices in a brew, newest first, with their devices."""
        found = [
            (device, stored.reading)
            for device in await self._store.devices.all()
            if device.session_id == session.id
            for stored in await self._store.payloads.latest(device.id, limit)
        ]
        return sorted(found, key=lambda pair: -pair[1].created_at)[:limit]

    async def assign(self, device: str, session_id: int, since: float | None) -> Assigned:
        """Put a device into a session, with its unassigned readings since `since` (Unix seconds)."""
        found = find_device(await self._store.devices.all(), device)
        session = await self._store.sessions.get(session_id)
        if session is None:
            raise NotFound(f"no brew session {session_id}; `sessions list` shows them")
        before = None if found.session_id is None else await self._store.sessions.get(found.session_id)
        claim_since = None if since is None else int(since)
        claimed = await self._store.devices.assign(found.id, session_id, claim_since, int(self._clock.now()))
        self._notices.notify("device", device=found.id)
        for brew in {session.id, found.session_id}:
            self._notices.publish("brew", brew=brew)
        return Assigned(found, session, before, claimed)

    async def release(self, device: str) -> None:
        """Take a device out of its session; its readings stay there."""
        found = find_device(await self._store.devices.all(), device)
        await self._store.devices.release(found.id, int(self._clock.now()))
        self._notices.notify("device", device=found.id)
        self._notices.publish("brew", brew=found.session_id)


def _check_original(said: SessionChange) -> None:
    if said.og_unit is not None and not said.og:
        raise InvalidInput("og_unit goes with og")
    if not said.og:
        return
    try:
        sg = to_sg(float(said.og), said.og_unit or "G") if NUMERAL.fullmatch(said.og) else None
    except ZeroDivisionError:
        sg = None
    if said.og_unit not in {None, "G", "P"} or sg is None or not TYPICAL_SG[0] <= sg <= TYPICAL_SG[1]:
        raise InvalidInput("og must be a gravity, such as 1.050, or 12.4 with the og_unit P")


def initials_of(title: str) -> str:
    """Return the initials of a recipe's title in upper case: `Harbour Porter` gives HP."""
    initials = "".join(word[0] for word in title.split() if word[0].isalnum())
    return initials[:BATCHCODE_LETTERS].upper() or "B"


def _said(new: str | None, old: str) -> str:
    return old if new is None else new


def _check(said: SessionChange) -> None:
    """Raise `InvalidInput` for changes that no session can have."""
    _check_original(said)
    if said.batchcode is not None and not said.batchcode.strip():
        raise InvalidInput("the batch code is empty")
    if said.userdate is not None:
        try:
            is_day = date.fromisoformat(said.userdate).isoformat() == said.userdate
        except ValueError:
            is_day = False
        if not is_day:
            raise InvalidInput("userdate must be a day, YYYY-MM-DD")
    unknown = said.details.keys() - set(DETAIL_MEMBERS)
    if unknown:
        raise InvalidInput(f"a brew session has no {', '.join(sorted(unknown))}")
    short = (said.batchcode, said.phase, *said.details.values())
    if any(text is not None and len(text) > TEXT_CHARACTERS for text in short):
        raise InvalidInput(f"longer than {TEXT_CHARACTERS} characters")
    if said.notes is not None and len(said.notes) > NOTES_CHARACTERS:
        raise InvalidInput(f"notes are longer than {NOTES_CHARACTERS} characters")
    if any(text is not None and NOT_TEXT.search(text) for text in (*short, said.notes)):
        raise InvalidInput("NUL and halves of surrogate pairs are no text")
