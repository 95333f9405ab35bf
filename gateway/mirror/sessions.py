"""Copy brew sessions: every member, the recipe, and the number for forwarding."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gateway.domain.brewsession import DEVICE_MEMBERS, BrewSession
from gateway.errors import InvalidInput, NameTaken
from gateway.mirror.client import NotThere, RemoteUnreadable
from gateway.mirror.counts import SESSIONS
from gateway.mirror.links import Links, edited_since, went_back
from gateway.mirror.merging import Digests, Members, compare, digests_from_json, digests_of, digests_to_json
from gateway.mirror.pages import Listing, read_pages
from gateway.mirror.recipes import RecipeCopies
from gateway.mirror.records import SourceSession, session_of
from gateway.mirror.run import PENDING, Run
from gateway.store.records import Mirrored

FOLDER, NOTES = "<folder>", "<notes>"
"""Names of folder and notes among the members of a session; no detail can have such a name."""

WRITTEN = ("batchcode", "phase", "userdate")
"""Members that are no details and have the same form on both sides."""

MEMBER = "brewsessions"
PATH = "/v1/brewsessions"

PAGE = 100
"""Brew sessions in a page: no known service gives fewer."""


@dataclass(frozen=True, slots=True)
class SessionCopy:
    """A brew session whose readings are to be copied; `changed` if it was changed since the last run."""

    remote_id: str
    local_id: int
    changed: bool


class SessionCopies:
    """Copies the brew sessions of one run. `ours` are our sessions that are forwarded there, by number."""

    def __init__(
        self,
        run: Run,
        recipes: RecipeCopies,
        links: Links,
        ours: Mapping[str, BrewSession],
    ) -> None:
        self._run = run
        self._recipes = recipes
        self._links = links
        self._ours = ours
        self._counts = run.result.counts[SESSIONS]
        self._copied: dict[str, SessionCopy] = {}

    @property
    def copied(self) -> list[SessionCopy]:
        """Return the brew sessions that were read so far and are not deleted here."""
        return list(self._copied.values())

    async def copy_all(self) -> None:
        """Copy every brew session that is new or changed."""
        # All of them each time, because a session shows a device's last reading, which does not change it.
        done = 0
        listing = Listing(PATH, MEMBER, PAGE, {"sort": "created_at:1"})
        async for page in read_pages(self._run.service, listing, self._lost):
            for value in page.records:
                found = await self._copy(value)
                if found is not None:
                    self._copied[found.remote_id] = found
            done += len(page.records)
            self._run.progress(done, max(done, page.total or 0), SESSIONS)

    async def _copy(self, value: object) -> SessionCopy | None:
        try:
            remote = session_of(value, self._run.service.name, self._run.account_id, self._run.now)
            return None if remote.deleted else await self._copy_read(remote)
        except (InvalidInput, RemoteUnreadable) as error:
            where = str(value.get("id"))[:20] if isinstance(value, dict) else "without an id"
            self._lost(f"{where}: {error}")
            return None

    async def _copy_read(self, remote: SourceSession) -> SessionCopy | None:
        current = self._links.get(remote.id)
        before = await self._links.find(remote.identity)
        if before is None:
            # Not ours if the number was copied before, because ours belongs to another session there.
            here = self._ours.get(remote.id) if current is None else None
            return await (self._add(remote) if here is None else self._update(remote, here, None))
        here = await self._run.store.sessions.get(int(before.local_id))
        if here is None:
            self._counts.kept += 1  # deleted here
            return None
        if before.remote_updated_at != remote.version and not went_back(before, remote.version):
            return await self._update(remote, here, before)
        await self._refresh(remote, here)
        if before.remote_updated_at == remote.version:
            self._counts.unchanged += 1
        else:
            self._counts.kept += 1
        return SessionCopy(remote.id, here.id, changed=False)

    async def _add(self, remote: SourceSession) -> SessionCopy:
        session, settled = await self._resolve(remote)
        sessions = self._run.store.sessions
        try:
            added = await sessions.add(session)
        except NameTaken:
            added = await sessions.add(replace(session, id=0))
        self._counts.copied += 1
        await self._remember(remote, added.id, settled)
        return SessionCopy(remote.id, added.id, changed=True)

    async def _update(
        self, remote: SourceSession, here: BrewSession, before: Mirrored | None
    ) -> SessionCopy | None:
        """Merge a brew session with its copy. Keep the copy's own forwarding, whatever the service says."""
        there, settled = await self._resolve(remote)
        latest = await self._run.store.sessions.get(here.id)  # again, as requests took their time
        if latest is None:
            self._counts.kept += 1  # deleted here
            return None
        if not settled and not there.recipe_id:
            there = replace(there, recipe_id=latest.recipe_id)  # its recipe could not be copied this time
        folder = latest.folder_id and await self._run.store.folders.get(latest.folder_id)
        ours, theirs = _members(latest, folder.name if folder else None), _members(there, remote.folder)
        ours_is_later = before is not None and latest.updated_at > there.updated_at
        last: Digests | None = {}  # a session of ours that becomes the copy has no last state
        if before is not None:
            last = digests_from_json(before.said)
            if last is None and not edited_since(before, latest.updated_at):
                last = digests_of(ours)
        found = compare(last, ours, theirs, ours_is_later=ours_is_later)
        if found.stay and not found.taken:
            await self._refresh(remote, latest)
            self._counts.kept += 1
        else:
            merged = _merged(latest, there, found.taken)
            if found.stay:
                merged = replace(merged, updated_at=max(latest.updated_at, there.updated_at))
            await self._run.store.sessions.update(merged)
            self._counts.updated += 1
        await self._remember(remote, here.id, settled)
        return SessionCopy(remote.id, here.id, changed=True)

    async def _refresh(self, remote: SourceSession, here: BrewSession) -> None:
        """Take over the members about the device, which change without the session."""
        details = {name: text for name, text in here.details.items() if name not in DEVICE_MEMBERS}
        there = remote.session.details
        details |= {name: there[name] for name in DEVICE_MEMBERS if name in there}
        if details != here.details:
            await self._run.store.sessions.update(replace(here, details=details))

    async def _resolve(self, remote: SourceSession) -> tuple[BrewSession, bool]:
        """Return the session with our ids of its recipe and folder, and whether these are final."""
        recipe_id, settled = await self._recipes.resolve(
            remote.recipe_id, partial(self._recipe_in_entry, remote)
        )
        folder_id = await self._run.folder_id("brewsession", remote.folder)
        return replace(remote.session, recipe_id=recipe_id or 0, folder_id=folder_id), settled

    async def _recipe_in_entry(self, remote: SourceSession) -> Any:
        """Return the recipe as the session's own entry shows it; None without one."""
        try:
            document = await self._run.service.json(f"{PATH}/{remote.id}")
        except NotThere:
            return None
        found = document.get(MEMBER)
        entry = found[0] if isinstance(found, list) and found else None
        recipe = entry.get("recipe") if isinstance(entry, dict) else None
        return recipe if isinstance(recipe, dict) and recipe.get("title") else None

    async def _remember(self, remote: SourceSession, local_id: int, settled: bool) -> None:
        version = remote.version if settled else PENDING
        digests = digests_to_json(digests_of(_members(remote.session, remote.folder)))
        await self._links.remember(remote.identity, str(local_id), version, digests)

    def _lost(self, line: str) -> None:
        self._run.result.failed(SESSIONS, f"brew session {line}")


def _members(session: BrewSession, folder: str | None) -> Members:
    """Return the members that can be changed on either side."""
    details = {name: text for name, text in session.details.items() if name not in DEVICE_MEMBERS}
    written = {name: getattr(session, name) for name in WRITTEN}
    return {**details, **written, NOTES: session.notes, FOLDER: folder}


def _merged(here: BrewSession, there: BrewSession, taken: frozenset[str]) -> BrewSession:
    def side(name: str) -> BrewSession:
        return there if name in taken else here

    names = {**there.details, **here.details}
    details = {n: (there if n in DEVICE_MEMBERS else side(n)).details.get(n) for n in names}
    return replace(
        there,
        id=here.id,
        upstream=here.upstream or there.upstream,
        upstream_id=here.upstream_id,
        notes=side(NOTES).notes,
        folder_id=side(FOLDER).folder_id,
        og=here.og,
        og_unit=here.og_unit,
        ended_at=here.ended_at,
        not_yet_at=here.not_yet_at,
        send_notes=here.send_notes,
        lead_device=here.lead_device,
        details={name: text for name, text in details.items() if text is not None},
        **{name: getattr(side(name), name) for name in WRITTEN},
    )


async def forwarded_there(run: Run, unnamed: bool) -> dict[str, BrewSession]:
    """Return the account's sessions that are forwarded to the service, by their number there.

    Include a copy whose note a crash has prevented. With `unnamed`, include sessions that name no service;
    else only the ones of them that were forwarded there before.
    """
    delivered = await run.store.outbox.forwarded(run.service.name)
    found = {}
    for session in await run.store.sessions.all():
        named = session.upstream == run.service.name
        implied = session.upstream is None and (unnamed or session.id in delivered)
        if session.account_id == run.account_id and session.upstream_id and (named or implied):
            found[str(session.upstream_id)] = session
    return found
