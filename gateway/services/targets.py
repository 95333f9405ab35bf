"""Targets: add, change, try out and remove them, and the state of each in the gateway that runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.clock import Clock
from gateway.config import base_url, is_key
from gateway.domain.brewsession import BrewSession
from gateway.domain.target import (
    MIRROR,
    NAME,
    NAME_RULE,
    PER_MINUTE,
    PER_MINUTE_MAX,
    SERVICE,
    UPSTREAM,
    Delivery,
    Target,
    TargetState,
)
from gateway.domain.texts import did_you_mean, shown_url
from gateway.errors import ConfigError, InvalidInput, NameTaken, NotFound
from gateway.events import ChangeNotices, StoredNotices
from gateway.forward.client import open_session
from gateway.forward.kinds.service import ImportTarget
from gateway.forward.kinds.table import NOWHERE, key_of, mapped
from gateway.forward.probe import ProbeFinding, Row, brew_sessions, probe, probe_mapped, reached
from gateway.services.key_files import is_own, keep_key, key_file, url_name
from gateway.store.protocol import Store

NOT_RUNNING = TargetState("no gateway is running")


@dataclass(frozen=True, slots=True)
class TargetSummary:
    """A target, its state, and counts of the readings of each brew session there."""

    target: Target
    state: TargetState
    deliveries: tuple[Delivery, ...]


@dataclass(frozen=True, slots=True)
class RemoteSession:
    """A brew session of the service.

    `here` are the ids of our brew sessions that are forwarded to it. `like` is the id of one that is under
    way with the same batch code and is not forwarded to this target, if there is one.
    """

    row: Row
    here: tuple[int, ...]
    like: int | None


class TargetService:
    """A service that changes targets. When a call returns, the forwarder has followed."""

    def __init__(self, store: Store, directory: Path, notices: StoredNotices, clock: Clock) -> None:
        """`directory` holds the data, and the keys that are given as text."""
        self._store = store
        self._directory = directory
        self._notices = notices
        self._clock = clock
        self.changed = ChangeNotices()
        self.states: dict[str, TargetState] = {}
        self.around = NOWHERE
        """Where nothing may be sent to; the gateway that runs sets it."""

    async def named(self, name: str) -> Target:
        """Return the target of that name; `NotFound` suggests a similar name."""
        targets = {target.name: target for target in await self._store.targets.all()}
        if name not in targets:
            raise NotFound(f"no target {name!r}{did_you_mean(name, targets)}; `targets list` shows them")
        return targets[name]

    async def summary(self, name: str) -> TargetSummary:
        """Return the target of that name with its state and counts of readings."""
        target = await self.named(name)
        return next(each for each in await self.summaries() if each.target.name == target.name)

    async def summaries(self) -> list[TargetSummary]:
        """Return every target with its state and counts of readings."""
        deliveries = await self._store.deliveries.counts()
        return [
            TargetSummary(
                target, self.state_of(target), tuple(d for d in deliveries if d.target == target.name)
            )
            for target in await self._store.targets.all()
        ]

    async def add(self, name: str, url: str, key_file: str, per_minute: int = PER_MINUTE) -> Target:
        """Add a target. Its key file must exist and be readable by the gateway."""
        check_rate(per_minute)
        target = Target(name, checked(name, url), key_file, per_minute)
        _readable_key(target)
        await self._store.targets.add(target)
        self._notices.publish("sending")
        await self.changed.notify()
        return target

    async def add_with_key(self, name: str, url: str, key: str, per_minute: int = PER_MINUTE) -> Target:
        """Add a target whose key the gateway keeps in a file of its own."""
        check_rate(per_minute)
        target = Target(name, checked(name, url), str(key_file(self._directory, name)), per_minute)
        check_key(key)
        # First the target, not the key: a name that is taken must not lose its key to the newcomer.
        await self._store.targets.add(target)
        try:
            await asyncio.to_thread(keep_key, self._directory, name, key)
        except BaseException:
            await self._store.targets.remove(name)
            raise
        self._notices.publish("sending")
        await self.changed.notify()
        return target

    async def _service(self, name: str) -> Target:
        """Return the Brewing Data Service of that name; `InvalidInput` for a target of another kind."""
        target = await self.named(name)
        if target.kind != SERVICE:
            raise InvalidInput(
                f"{name} has no brew sessions of its own: `targets map {name} --device`, `--brew` or `--all`"
            )
        return target

    async def login(self, name: str, url: str, key: str) -> Target:
        """Try address and key. If both are right, keep the key and add the target, or change it.

        Otherwise raise `InvalidInput` and change nothing.
        """
        found = await self.reach(checked(name, url), key)
        if not found.ok:
            raise InvalidInput(f"{found.words}; nothing was changed")
        return await self.keep(name, url, key)

    async def reach(self, url: str, key: str) -> ProbeFinding:
        """Try address and key, and keep nothing."""
        check_key(key)
        async with self._client(url, key) as service:
            return await reached(service)

    async def keep(self, name: str, url: str, key: str) -> Target:
        """Keep the key and add the target, or change it, without trying them; `login` tries them first."""
        address = checked(name, url)
        check_key(key)
        for target in await self._store.targets.all():
            if target.name == name and target.kind != SERVICE:
                raise NameTaken(f"{name} is a target of the kind {target.kind} already")
            if target.url == address and target.name != name:
                remedy = f"`targets login {target.name}` gives that one another key"
                if target.from_options:
                    remedy = f"its key is in the file {target.key_file}"
                raise NameTaken(f"{shown_url(address)} is the target {target.name} already; {remedy}")
        path = await asyncio.to_thread(keep_key, self._directory, name, key)
        target = Target(name, address, str(path))
        await self._store.targets.put(target)
        self._notices.publish("sending")
        await self.changed.notify()
        return target

    async def test(self, name: str) -> list[ProbeFinding]:
        """Ask the target whether address, key and brew sessions are right. Leave no reading there."""
        target = await self.named(name)
        if target.kind != SERVICE:
            try:
                kind = mapped(target, self._clock, self.around)
            except ConfigError as error:
                return [ProbeFinding(False, str(error), "cannot_be_used", {"reason": str(error)})]
            return await probe_mapped(kind, target.name, goes=bool(await self._store.routes.of(target.url)))
        try:
            key = key_of(target)
        except ConfigError as error:
            return [ProbeFinding(False, str(error), "key_file", {"reason": str(error)})]
        sessions = await self._store.targets.sessions(target)
        async with self._client(target.url, key) as service:
            return await probe(service, target.name, sessions)

    async def remote_sessions(self, name: str) -> list[RemoteSession]:
        """Return the brew sessions that the service has, the newest first."""
        target = await self._service(name)
        async with self._client(target.url, _readable_key(target)) as service:
            rows = await brew_sessions(service)
        mapped = await self._store.targets.sessions(target)
        here: dict[str, list[int]] = {}
        for session_id, upstream_id in sorted(mapped.items()):
            here.setdefault(str(upstream_id), []).append(session_id)
        free = [s for s in await self._store.sessions.all() if s.id not in mapped and not s.is_over]
        by_code = {session.batchcode.casefold(): session.id for session in free if session.batchcode}
        return [
            RemoteSession(row, tuple(here.get(row["number"], ())), by_code.get(row["batchcode"].casefold()))
            for row in rows
        ]

    @asynccontextmanager
    async def _client(self, url: str, key: str) -> AsyncIterator[ImportTarget]:
        async with open_session() as client:
            yield ImportTarget(client, url, key, self._clock)

    async def remove(self, name: str) -> None:
        """Forget a target; `InvalidInput` for a target that an option of `serve` names."""
        target = await self.named(name)
        if target.from_options:
            raise InvalidInput(
                f"{name} is named by an option of `serve`; leave that out, or `targets pause` it"
            )
        await self._store.targets.remove(name)
        self._notices.publish("sending")
        await self.changed.notify()
        for kept, path in ((name, target.key_file), (url_name(name), target.options.get("url_file", ""))):
            if is_own(self._directory, kept, Path(path)):
                await asyncio.to_thread(Path(path).unlink, missing_ok=True)

    async def pause(self, name: str) -> None:
        """Send nothing to the target until `resume`, restarts included; everything is kept for it."""
        await self._set_paused(name, paused=True)

    async def resume(self, name: str) -> None:
        """Resume forwarding to the target at once, without an earlier delay."""
        await self._set_paused(name, paused=False)

    async def _set_paused(self, name: str, *, paused: bool) -> None:
        await self._store.targets.pause((await self.named(name)).name, paused=paused)
        self._notices.publish("sending")
        await self.changed.notify()

    async def map(self, session: BrewSession, name: str, upstream_id: int) -> None:
        """Forward the brew session to the target, under its number there; 0 stops forwarding."""
        target = await self._service(name)
        own = target.unnamed if session.upstream is None else session.upstream == target.url
        if own:
            changed = replace(session, upstream_id=upstream_id or None)
            await self._store.sessions.update(changed)
        else:
            await self._store.targets.map(session.id, target.url, upstream_id or None)
        self._notices.notify("sending")

    async def resend(self, name: str, since: int, session_id: int | None) -> dict[int, int]:
        """Queue readings since `since` (Unix seconds): each is looked for at the target, and sent if missing.

        Return the number of readings by brew session.
        """
        target = await self._service(name)
        if session_id is not None and session_id not in await self._store.targets.sessions(target):
            raise InvalidInput(
                f"brew session {session_id} is not forwarded there; `targets map` changes that"
            )
        found = await self._store.outbox.send_again(
            target.url, since, unnamed=target.unnamed, session_id=session_id
        )
        self._notices.notify("sending")
        return found

    def state_of(self, target: Target) -> TargetState:
        """Return the target's state in words."""
        if target.paused:
            return TargetState(f"paused by you; `targets resume {target.name}` goes on", kind="paused")
        return self.states.get(target.name, NOT_RUNNING)


def check_rate(per_minute: int) -> None:
    """Raise `InvalidInput` for a number of requests a minute that is not taken."""
    if not 1 <= per_minute <= PER_MINUTE_MAX:
        raise InvalidInput(f"requests per minute: 1 to {PER_MINUTE_MAX}")


def check_key(key: str) -> None:
    """Raise `InvalidInput` for a text that is no API key."""
    if not is_key(key):
        raise InvalidInput("an API key is one line of letters, digits and signs")


def _readable_key(target: Target) -> str:
    """Read the target's key for a command; `InvalidInput` names the mistake, because the user can mend it."""
    try:
        return key_of(target)
    except ConfigError as error:
        raise InvalidInput(str(error)) from error


def checked(name: str, url: str) -> str:
    """Return the base URL of a new target; `InvalidInput` if the URL or the name is not valid."""
    check_name(name)
    try:
        return base_url(url)
    except ValueError as error:
        raise InvalidInput(f"the address {error}") from error


def check_name(name: str) -> None:
    """Raise `InvalidInput` for a text that no target may be called."""
    if not NAME.fullmatch(name):
        raise InvalidInput(NAME_RULE)
    if name in {UPSTREAM, MIRROR}:
        raise InvalidInput(f"{name} is what `serve --{name}-...` names; take another name")
