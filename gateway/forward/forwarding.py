"""Runs one forwarder for each target, each for itself: a dead target delays no other."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import cast

import aiohttp

from gateway.clock import Clock
from gateway.domain.target import MIRROR, SERVICE, UPSTREAM, Target, TargetState
from gateway.errors import ConfigError, StoreUnavailable
from gateway.events import ChangeNotices, StoredNotices
from gateway.forward.client import open_session
from gateway.forward.forwarder import Forwarder
from gateway.forward.kinds import Kind, LatestKind, Policy, Queue
from gateway.forward.kinds.table import NOWHERE, Means, Surroundings, made
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
        around: Surroundings = NOWHERE,
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
        self._around = around
        self._running: dict[Target, asyncio.Task[None]] = {}
        self._known: Sequence[Target] = ()

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
        for target in self._known:  # also those that did not run: paused ones, and ones that cannot be made
            if target not in self._running:
                self._states.pop(target.name, None)
                self._stats.forget(f"upstream {target.shown}")
        self._known = targets
        self._stats.targets.clear()
        for target in targets:
            if target.kind == SERVICE:
                self._stats.targets[target.url] = target.unnamed
            if target.paused:
                self._stats.say(f"upstream {target.shown}", PAUSED, well=False)
            elif target not in self._running:
                try:
                    kind = made(target, Means(client, self._clock, self._around))
                except ConfigError as error:  # such as a topic that an option of `serve` has taken since
                    state = TargetState(f"is paused: {error}", kind="blocked", reason=str(error))
                    self._states[target.name] = state
                    self._stats.say(f"upstream {target.shown}", state.words, well=False)
                    continue
                task = group.create_task(self._forward(target, kind), name=f"forwarder {target.name}")
                self._running[target] = task

    async def _forward(self, target: Target, kind: Kind) -> None:
        try:
            await self._forwarder(target, kind).run()
        finally:
            await kind.close()

    def _forwarder(self, target: Target, kind: Kind) -> Forwarder:
        def notify(state: TargetState) -> None:
            self._states[target.name] = state
            self._notices.publish("sending")

        settings = replace(
            self._settings,
            unnamed=target.unnamed,
            batch_readings=kind.most or self._settings.batch_readings,
            batch_seconds=self._settings.batch_seconds if kind.gather_s is None else kind.gather_s,
            readback_delay_s=0.0 if kind.repeat_is_harmless else self._settings.readback_delay_s,
        )
        return Forwarder(
            self._queue(kind), kind, self._notices, self._stats, self._clock, settings,
            notify=notify, held_back=self._held_back,
        )  # fmt: skip

    def _queue(self, kind: Kind) -> Queue:
        if kind.policy is Policy.BACKLOG:
            return self._store.outbox if kind.lane == "brew session" else self._store.routes
        from gateway.forward.kinds.latest import LatestQueue

        latest = cast("LatestKind", kind)
        return LatestQueue(
            self._store, self._clock, latest.min_interval_s, by_session=latest.interval_by_session
        )


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
