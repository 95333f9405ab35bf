"""Runs one forwarder for each target, each for itself: a dead target delays no other."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import aiohttp

from gateway.clock import Clock
from gateway.config import read_key
from gateway.domain.target import MIRROR, UPSTREAM, Target, TargetState
from gateway.domain.texts import shown_url
from gateway.errors import StoreUnavailable
from gateway.events import ChangeNotices, StoredNotices
from gateway.forward.client import open_session
from gateway.forward.forwarder import Forwarder
from gateway.forward.import_target import ImportTarget
from gateway.forward.schedule import ForwardSettings
from gateway.settings import Settings
from gateway.stats import Stats
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

TABLE_AGAIN_S = 5.0
"""Seconds until the table of targets is read again after a failure."""


PAUSED = "paused by the user"
"""The state of a target that the owner has paused."""


class Forwarding:
    """Follows the table of targets: starts, stops and restarts forwarders, and keeps `states` up to date."""

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
        """`held_back` returns why nothing may be forwarded now, or None; `notices` wake when that ends."""
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
        """Run until cancelled. A forwarder that dies of a bug ends this, too."""
        async with (
            open_session() as client,
            asyncio.TaskGroup() as group,
            aclosing(self._changed.follow()) as changes,
        ):
            async for _ in changes:
                while True:
                    try:
                        targets = await self._store.targets.all()
                        break
                    except StoreUnavailable as error:
                        log.warning("forward: the table of targets cannot be read: %s", error)
                        await self._clock.sleep(TABLE_AGAIN_S)
                await self._follow(targets, group, client)

    async def _follow(
        self, targets: Sequence[Target], group: asyncio.TaskGroup, client: aiohttp.ClientSession
    ) -> None:
        # Stopped before others start: a target whose settings changed must not run twice.
        for target in [target for target in self._running if target not in targets or target.paused]:
            task = self._running.pop(target)
            task.cancel()
            await asyncio.wait([task])
            self._states.pop(target.name, None)
            self._stats.forget(f"upstream {shown_url(target.url)}")
        self._stats.targets.clear()
        for target in targets:
            self._stats.targets[target.url] = target.unnamed
            if target.paused:
                self._stats.say(f"upstream {shown_url(target.url)}", PAUSED, well=False)
            elif target not in self._running:
                forwarder = self._forwarder(target, client)
                self._running[target] = group.create_task(forwarder.run(), name=f"forwarder {target.name}")

    def _forwarder(self, target: Target, client: aiohttp.ClientSession) -> Forwarder:
        def key() -> str:
            return read_key(Path(target.key_file), f"key file of target {target.name}")

        def notify(state: TargetState) -> None:
            self._states[target.name] = state
            self._notices.publish("sending")

        service = ImportTarget(client, target.url, key, self._clock, per_minute=target.per_minute)
        settings = replace(self._settings, unnamed=target.unnamed)
        return Forwarder(
            self._store, service, self._notices, self._stats, self._clock, settings,
            notify=notify, held_back=self._held_back,
        )  # fmt: skip


def targets_of(settings: Settings) -> list[Target]:
    """Return the targets that options name.

    A mirrored service is a target, too: its brew sessions' readings go there, whatever the upstream is.
    """
    targets = []
    if settings.upstream_url:
        targets.append(_target(UPSTREAM, settings.upstream_url, settings.upstream_key_file))
    if settings.mirror_from and not settings.mirrors_upstream:
        targets.append(_target(MIRROR, settings.mirror_from, settings.mirror_key_file))
    return targets


def _target(name: str, url: str, key_file: Path | None) -> Target:
    # A missing key file is no error here: the settings have been checked before.
    path = str((key_file or Path()).absolute())
    return Target(name, url.rstrip("/"), path, from_options=True, unnamed=name == UPSTREAM)
