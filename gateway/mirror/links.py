"""Which record there is which here: the same only with the same number, `created_at` and token there."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gateway.domain.recipe import Recipe
from gateway.mirror.run import PENDING, Run
from gateway.mirror.validate import seconds
from gateway.store.records import Mirrored

log = logging.getLogger(__name__)

SESSION = "brewsession"
"""The kind of record that something is forwarded to."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes a record there itself; `created_at` is Unix seconds; None and "" are what is not said."""

    id: str
    created_at: int | None
    token: str = ""

    def is_of(self, entry: Mirrored) -> bool:
        """Whether nothing speaks against it: a service need not say when a record was made."""
        other_time = None not in {self.created_at, entry.created_at} and self.created_at != entry.created_at
        other_token = bool(self.token and entry.token) and self.token != entry.token
        return self.id == entry.remote_id and not other_time and not other_token


class Links:
    """The copies of one kind of record, by the number there; what a number was before is kept, too."""

    def __init__(self, run: Run, kind: str, known: Mapping[str, Mirrored], former: list[Mirrored]) -> None:
        self._run = run
        self._kind = kind
        self._known = dict(known)
        self._former = former

    @classmethod
    async def load(cls, run: Run, kind: str) -> "Links":
        """All that earlier runs have noted."""
        which = (run.service.name, run.account_id, kind)
        mirrors = run.store.mirrors
        return cls(run, kind, await mirrors.copies(*which), await mirrors.former(*which))

    def get(self, remote_id: str) -> Mirrored | None:
        """Whatever was copied under this number last."""
        return self._known.get(remote_id)

    def local_ids(self) -> Iterator[str]:
        """Of all copies, former ones too."""
        return (entry.local_id for entry in (*self._known.values(), *self._former))

    def copies(self) -> dict[str, str]:
        """The id here of every copy that is finished, by the id there."""
        return {remote: entry.local_id for remote, entry in self._known.items() if entry.local_id != PENDING}

    def is_former(self, local_id: str) -> bool:
        """Whether what is here was copied from a record whose number is another's now."""
        return local_id in {entry.local_id for entry in self._former}

    async def of(self, record: Identity) -> Mirrored | None:
        """The copy of this record; one of another record that had the number before is let go."""
        known = self._known.get(record.id)
        if known is not None and record.is_of(known):
            return known
        if known is not None:
            await self._part(known)
        again = [entry for entry in self._former if record.is_of(entry)]
        if not again:
            return None
        self._former.remove(again[-1])
        await self.remember(record, again[-1].local_id, again[-1].remote_updated_at, again[-1].said)
        return self._known[record.id]

    async def _part(self, known: Mirrored) -> None:
        run = self._run
        if not run.tally.renumbered:
            line = (
                f"{run.service.name} was renumbered: {self._kind} {known.remote_id} is another one now "
                "than the one that was copied; such copies stay as they are, linked to nothing, and what "
                "hydrometers report into such brew sessions is no longer forwarded there"
            )
            run.tally.say_renumbered(line)
            log.warning("mirror: %s", line)
        where = (run.service.name, run.account_id)
        if self._kind == SESSION:
            for session_id in await run.store.mirrors.stop_forwarding(*where, int(known.remote_id)):
                run.tally.report(
                    f"brew session {session_id} is no longer forwarded: its number there, {known.remote_id}, "
                    f"is another's; `sessions update {session_id} --upstream-id NUMBER` names a new one"
                )
        await run.store.mirrors.make_former(*where, self._kind, known.remote_id)
        del self._known[known.remote_id]
        if known.local_id != PENDING:
            self._former.append(known)

    async def remember(self, record: Identity, local_id: str, version: str, said: str | None = None) -> None:
        """That this was copied, and which version of it."""
        await self._run.remember(self._kind, self._entry(record, local_id, version, said))

    async def add_recipe(self, record: Identity, recipe: Recipe) -> Recipe:
        """Store a new recipe and note, with it, that its copy has begun: later it is known by its token."""
        entry = self._entry(record, PENDING, PENDING, None)
        return await self._run.store.mirrors.add_recipe(self._run.service.name, self._kind, recipe, entry)

    def _entry(self, record: Identity, local_id: str, version: str, said: str | None) -> Mirrored:
        known = self._known.get(record.id)
        created_at, token = record.created_at, record.token or None
        if known is not None and known.local_id == local_id:  # what it said once still holds
            created_at = known.created_at if created_at is None else created_at
            token = token or known.token
        entry = Mirrored(record.id, local_id, version, created_at, token, said)
        self._known[record.id] = entry
        return entry


def went_back(entry: Mirrored, version: str) -> bool:
    """Whether the record there is older than what was copied: the source is an older state of itself."""
    copied_at, changed_at = seconds(entry.remote_updated_at), seconds(version)
    return copied_at is not None and changed_at is not None and changed_at < copied_at


def edited_since(entry: Mirrored, updated_at: int) -> bool:
    """Whether a copy that was changed at this time was changed here, as far as that can be known."""
    copied_at = seconds(entry.remote_updated_at)
    return copied_at is None or updated_at > copied_at
