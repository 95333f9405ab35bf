"""One forwarder per target, each for itself: a dead target delays no other."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import aiohttp

from gateway.clock import Clock
from gateway.config import Settings, read_key
from gateway.domain.target import MIRROR, UPSTREAM, Target, TargetState
from gateway.errors import StoreUnavailable
from gateway.events import ChangeNotices, StoredNotices
from gateway.forward.client import open_session
from gateway.forward.forwarder import Forwarder
from gateway.forward.import_target import ImportTarget
from gateway.forward.schedule import ForwardSettings
from gateway.stats import Stats
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 5.0
"""Where the table of targets could not be read."""


class Forwarding:
    """Follows the table of targets: starts, stops, restarts forwarders; tells how they do in `states`."""

    def __init__(
        self,
        store: Store,
        notices: StoredNotices,
        stats: Stats,
        clock: Clock,
        settings: ForwardSettings,
        *,
        changed: ChangeNotices,
        states: dict[str, TargetState],
        held_back: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`held_back` says why nothing may be forwarded for now, or None; `notices` ring when that ends."""
        self._store = store
        self._notices = notices
        self._stats = stats
        self._clock = clock
        self._settings = settings
        self._changed = changed
        self._states = states
        self._held_back = held_back
        self._running: dict[Target, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Go on until cancelled. A forwarder that dies of a bug takes this along."""
        async with (
            open_session() as client,
            asyncio.TaskGroup() as group,
            aclosing(self._changed.follow()) as changes,
        ):
            async for _ in changes:
                await self._follow(await self._table(), group, client)

    async def _table(self) -> Sequence[Target]:
        while True:
            try:
                return await self._store.targets.all()
            except StoreUnavailable as error:
                log.warning("forward: which targets there are cannot be read: %s", error)
                await self._clock.sleep(LOOK_AGAIN_S)

    async def _follow(
        self, targets: Sequence[Target], group: asyncio.TaskGroup, client: aiohttp.ClientSession
    ) -> None:
        for target in [target for target in self._running if target not in targets or target.paused]:
            await self._stop(target)
        self._stats.targets.clear()
        for target in targets:
            self._stats.targets[target.url] = target.unnamed
            if target.paused:
                self._stats.say(f"upstream {target.url}", "paused by the user", well=False)
            elif target not in self._running:
                forwarder = self._forwarder(target, client)
                self._running[target] = group.create_task(forwarder.run(), name=f"forwarder {target.name}")

    def _forwarder(self, target: Target, client: aiohttp.ClientSession) -> Forwarder:
        def key() -> str:
            return read_key(Path(target.key_file), f"key file of target {target.name}")

        def tell(state: TargetState) -> None:
            self._states[target.name] = state

        service = ImportTarget(client, target.url, key, self._clock, per_minute=target.per_minute)
        settings = replace(self._settings, unnamed=target.unnamed)
        return Forwarder(
            self._store, service, self._notices, self._stats, self._clock, settings,
            tell=tell, held_back=self._held_back,
        )  # fmt: skip

    async def _stop(self, target: Target) -> None:
        task = self._running.pop(target)
        task.cancel()
        await asyncio.wait([task])
        self._states.pop(target.name, None)
        self._stats.forget(f"upstream {target.url}")


def targets_of(settings: Settings) -> list[Target]:
    """Those that options name. Readings of what is mirrored go there, whatever the upstream is."""
    told = []
    if settings.upstream_url:
        told.append(_target(UPSTREAM, settings.upstream_url, settings.upstream_key_file))
    if settings.mirror_from and not settings.mirrors_upstream:
        told.append(_target(MIRROR, settings.mirror_from, settings.mirror_key_file))
    return told


def _target(name: str, url: str, key_file: Path | None) -> Target:
    """What is wrong with the key file was said before; here it may be none."""
    path = str((key_file or Path()).absolute())
    return Target(name, url.rstrip("/"), path, from_options=True, unnamed=name == UPSTREAM)
