"""Copy a service in one run: recipes, brew sessions, readings, photos. Each copied record stays."""

import asyncio
import logging
from collections.abc import Awaitable
from weakref import WeakKeyDictionary

from gateway.domain.progress import Progress
from gateway.forward.client import open_session
from gateway.mirror import photos, readings, recipes, sessions
from gateway.mirror.client import MirrorStopped, NotThere, RemoteService, RemoteUnreadable
from gateway.mirror.counts import RECIPES, SESSIONS, MirrorCounts
from gateway.mirror.links import SESSION, Links
from gateway.mirror.run import MirrorSource, Run
from gateway.network import sends_key_in_the_clear
from gateway.services.build import Services
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

_locks: WeakKeyDictionary[Store, asyncio.Lock] = WeakKeyDictionary()
"""A lock for each store: two runs at once would copy everything twice."""


def under_way(store: Store) -> asyncio.Lock:
    """Return the lock that a run holds while it copies into this store."""
    return _locks.setdefault(store, asyncio.Lock())


async def mirror(
    services: Services, source: MirrorSource, account_id: int, progress: Progress
) -> MirrorCounts:
    """Copy new and changed records into the account. Raise `GatewayError` if it cannot go on; copies stay."""
    async with (
        under_way(services.store),
        open_session() as client,
    ):
        service = RemoteService(client, source.url, source.key, services.clock, rate=source.rate)
        run = Run(service, services, account_id, MirrorCounts(), progress)
        if sends_key_in_the_clear(source.url):
            run.result.report(f"{service.shown}: plain http, anyone on the way can read the key; use https")
        try:
            await _copy_all(run, source)
        finally:
            run.result.requests = service.requests
            services.notices.notify()
        return run.result


async def _copy_all(run: Run, source: MirrorSource) -> None:
    of_recipes = recipes.RecipeCopies(run, await Links.load(run, recipes.KIND))
    ours = await sessions.forwarded_there(run, source.unnamed)
    of_sessions = sessions.SessionCopies(run, of_recipes, await Links.load(run, SESSION), ours)
    of_readings = readings.ReadingCopies(run, await run.mirrored(readings.KIND))
    await _list(run, RECIPES, of_recipes.copy_all())
    await _list(run, SESSIONS, of_sessions.copy_all())
    # Under new numbers any recipe may be another, so all of them are read.
    if run.result.renumbered and not of_recipes.read_whole:
        await _list(run, RECIPES, of_recipes.copy_whole())
    await of_readings.copy_all(of_sessions.copied)
    if source.photos:
        await photos.PhotoCopies(run, await Links.load(run, photos.KIND), of_recipes).copy_all()


async def _list(run: Run, kind: str, copying: Awaitable[None]) -> None:
    """Copy a list. If it cannot be read to its end, report that; other lists can still be read."""
    try:
        await copying
    except NotThere as error:
        remedy = "give the address without /v1"
        raise MirrorStopped(f"{run.service.shown} has no list of {kind} ({error}); {remedy}") from error
    except RemoteUnreadable as error:
        run.result.failed(kind, f"the list of {kind} cannot be read to its end: {error}")
