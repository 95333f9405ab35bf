"""Link records of the service to their copies, by number, `created_at` and token at the service."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gateway.domain.recipe import Recipe
from gateway.mirror.run import PENDING, Run
from gateway.mirror.validate import seconds
from gateway.store.records import Mirrored

log = logging.getLogger(__name__)

SESSION = "brewsession"
"""The kind of record that readings are forwarded to."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a record of the service. `created_at` is Unix seconds; None and "" if not given."""

    id: str
    created_at: int | None
    token: str = ""

    def is_of(self, entry: Mirrored) -> bool:
        """Return whether the entry may be of this record: no member that both have differs."""
        # Unknown members do not count, because a service need not give the time of a record.
        other_time = None not in {self.created_at, entry.created_at} and self.created_at != entry.created_at
        other_token = bool(self.token and entry.token) and self.token != entry.token
        return self.id == entry.remote_id and not other_time and not other_token


class Links:
    """The copies of one kind of record, by number at the service; also of records that had it formerly."""

    def __init__(self, run: Run, kind: str, current: Mapping[str, Mirrored], former: list[Mirrored]) -> None:
        self._run = run
        self._kind = kind
        self._current = dict(current)
        self._former = former

    @classmethod
    async def load(cls, run: Run, kind: str) -> "Links":
        """Load the notes of earlier runs."""
        key = (run.service.name, run.account_id, kind)
        mirrors = run.store.mirrors
        return cls(run, kind, await mirrors.copies(*key), await mirrors.former(*key))

    def get(self, remote_id: str) -> Mirrored | None:
        """Return the entry that was copied under this number last."""
        return self._current.get(remote_id)

    def local_ids(self) -> Iterator[str]:
        """Iterate over our ids of all copies, former ones too."""
        return (entry.local_id for entry in (*self._current.values(), *self._former))

    def copies(self) -> dict[str, str]:
        """Return our id of every finished copy, by the id at the service."""
        return {
            remote: entry.local_id for remote, entry in self._current.items() if entry.local_id != PENDING
        }

    def is_former(self, local_id: str) -> bool:
        """Return whether our record was copied from a record whose number belongs to another one now."""
        return local_id in {entry.local_id for entry in self._former}

    async def find(self, record: Identity) -> Mirrored | None:
        """Return the copy of this record. Detach the copy of another record that had the number before."""
        entry = self._current.get(record.id)
        if entry is not None and record.is_of(entry):
            return entry
        if entry is not None:
            await self._detach(entry)
        again = [entry for entry in self._former if record.is_of(entry)]
        if not again:
            return None
        self._former.remove(again[-1])
        await self.remember(record, again[-1].local_id, again[-1].remote_updated_at, again[-1].said)
        return self._current[record.id]

    async def _detach(self, entry: Mirrored) -> None:
        run = self._run
        if not run.result.renumbered:
            line = (
                f"{run.service.shown} was renumbered: {self._kind} {entry.remote_id} is another record now "
                "than the one that was copied; copies of such records stay as they are, without a link, and "
                "readings of such brew sessions are no longer forwarded there"
            )
            run.result.report_renumbered(line)
            log.warning("mirror: %s", line)
        place = (run.service.name, run.account_id)
        if self._kind == SESSION:
            for session_id in await run.store.mirrors.stop_forwarding(*place, int(entry.remote_id)):
                run.result.report(
                    f"brew session {session_id} is no longer forwarded: its number there, {entry.remote_id}, "
                    f"is another's; `sessions update {session_id} --upstream-id NUMBER` names a new one"
                )
        await run.store.mirrors.make_former(*place, self._kind, entry.remote_id)
        del self._current[entry.remote_id]
        if entry.local_id != PENDING:
            self._former.append(entry)

    async def remember(self, record: Identity, local_id: str, version: str, note: str | None = None) -> None:
        """Note that this version of the record was copied."""
        await self._run.remember(self._kind, self._entry(record, local_id, version, note))

    async def add_recipe(self, record: Identity, recipe: Recipe) -> Recipe:
        """Store a new recipe with a note that its copy has begun: a later run finds it by its token."""
        entry = self._entry(record, PENDING, PENDING, None)
        return await self._run.store.mirrors.add_recipe(self._run.service.name, self._kind, recipe, entry)

    def _entry(self, record: Identity, local_id: str, version: str, note: str | None) -> Mirrored:
        before = self._current.get(record.id)
        created_at, token = record.created_at, record.token or None
        if before is not None and before.local_id == local_id:  # time and token that it gave once still hold
            created_at = before.created_at if created_at is None else created_at
            token = token or before.token
        entry = Mirrored(record.id, local_id, version, created_at, token, note)
        self._current[record.id] = entry
        return entry


def went_back(entry: Mirrored, version: str) -> bool:
    """Return whether the record is older than its copy: then the service was set back to a backup."""
    copied_at, changed_at = seconds(entry.remote_updated_at), seconds(version)
    return copied_at is not None and changed_at is not None and changed_at < copied_at


def edited_since(entry: Mirrored, updated_at: int) -> bool:
    """Return whether a copy that was changed at this time was changed here; True if that is not known."""
    copied_at = seconds(entry.remote_updated_at)
    return copied_at is None or updated_at > copied_at
