"""Targets: what the user says of them, and how each is doing in the gateway that runs."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

from gateway.config import base_url, is_key, read_key
from gateway.domain.brewsession import BrewSession
from gateway.domain.target import MIRROR, PER_MINUTE, UPSTREAM, Target, TargetState
from gateway.domain.texts import did_you_mean
from gateway.errors import InvalidInput, NameTaken, NotFound
from gateway.events import ChangeNotices, StoredNotices
from gateway.services.key_files import keep_key, key_file
from gateway.store.protocol import Store

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

PER_MINUTE_MAX = 6000

NOT_RUNNING = TargetState("no gateway is running")


class TargetService:
    """Changes targets; whoever forwards has followed when a call returns, and tells `states` by name."""

    def __init__(self, store: Store, directory: Path, notices: StoredNotices) -> None:
        """`directory` holds the data, and the keys that `login` is given."""
        self._store = store
        self._directory = directory
        self._notices = notices
        self.changed = ChangeNotices()
        self.states: dict[str, TargetState] = {}

    async def named(self, name: str) -> Target:
        """The target of that name; `NotFound` says where the names are shown."""
        known = {target.name: target for target in await self._store.targets.all()}
        if name not in known:
            raise NotFound(f"no target {name!r}{did_you_mean(name, known)}; `targets list` shows them")
        return known[name]

    async def add(self, name: str, url: str, key_file: str, per_minute: int = PER_MINUTE) -> Target:
        """A new one; its key file has to be there and readable by whoever forwards."""
        if not 1 <= per_minute <= PER_MINUTE_MAX:
            raise InvalidInput(f"requests per minute: 1 to {PER_MINUTE_MAX}")
        address = checked(name, url)
        key_of(replace(Target(name, address, key_file)))
        target = Target(name, address, key_file, per_minute)
        await self._store.targets.add(target)
        await self.changed.notify()
        return target

    async def login(self, name: str, url: str, key: str) -> Target:
        """Keep the key in a file of its own; add the target, or give the one of that name address and key."""
        address = checked(name, url)
        if not is_key(key):
            raise InvalidInput("an API key is one line of letters, digits and signs")
        for target in await self._store.targets.all():
            if target.url == address and target.name != name:
                remedy = f"`targets login {target.name}` gives that one another key"
                if target.from_options:
                    remedy = f"its key is in the file {target.key_file}"
                raise NameTaken(f"{address} is the target {target.name} already; {remedy}")
        path = await asyncio.to_thread(keep_key, self._directory, name, key)
        target = Target(name, address, str(path))
        await self._store.targets.put(target)
        await self.changed.notify()
        return target

    async def remove(self, name: str) -> None:
        """Forget it; one that an option of `serve` names goes with that option."""
        target = await self.named(name)
        if target.from_options:
            raise InvalidInput(
                f"{name} is named by an option of `serve`; leave that out, or `targets pause` it"
            )
        await self._store.targets.remove(name)
        await self.changed.notify()
        if target.key_file == str(path := key_file(self._directory, name)):
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def pause(self, name: str) -> None:
        """Send nothing there until `resume`, restarts included; everything is kept."""
        await self._set_paused(name, paused=True)

    async def resume(self, name: str) -> None:
        """Go on, and at once: whatever it waited for counts no longer."""
        await self._set_paused(name, paused=False)

    async def _set_paused(self, name: str, *, paused: bool) -> None:
        await self._store.targets.pause((await self.named(name)).name, paused=paused)
        await self.changed.notify()

    async def map(self, session: BrewSession, name: str, upstream_id: int) -> None:
        """Forward the brew session there, under that number; 0 stops it."""
        target = await self.named(name)
        own = target.unnamed if session.upstream is None else session.upstream == target.url
        if own:
            changed = replace(session, upstream_id=upstream_id or None)
            await self._store.sessions.update(changed)
        else:
            await self._store.targets.map(session.id, target.url, upstream_id or None)
        self._notices.notify()

    async def resend(self, name: str, since: int, session_id: int | None) -> dict[int, int]:
        """Look for the readings since then (Unix seconds), send what is missing; how many, by session."""
        target = await self.named(name)
        found = await self._store.outbox.send_again(
            target.url, since, unnamed=target.unnamed, session_id=session_id
        )
        self._notices.notify()
        return found

    def state_of(self, target: Target) -> TargetState:
        """How it is doing, in words."""
        if target.paused:
            return TargetState(f"paused by you; `targets resume {target.name}` goes on")
        return self.states.get(target.name, NOT_RUNNING)


def checked(name: str, url: str) -> str:
    """The base URL of a target to be; `InvalidInput` where it, or the name, cannot be."""
    if not NAME.fullmatch(name):
        raise InvalidInput("a target's name is of letters, digits, '-', '_' and '.', 64 of them at most")
    if name in {UPSTREAM, MIRROR}:
        raise InvalidInput(f"{name} is what `serve --{name}-...` names; take another name")
    try:
        return base_url(url)
    except ValueError as error:
        raise InvalidInput(f"the address {error}") from error


def key_of(target: Target) -> str:
    """The key, from its file; `ConfigError` says what is wrong with that."""
    return read_key(Path(target.key_file), f"key file of target {target.name}")
