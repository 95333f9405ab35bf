"""One run: recipes, brew sessions, readings, photos, in this order; each record is kept once it is here."""

import asyncio
import logging
from collections.abc import Awaitable
from weakref import WeakKeyDictionary

import aiohttp

from gateway.domain.progress import Progress
from gateway.mirror import photos, readings, recipes, sessions
from gateway.mirror.client import MirrorStopped, NotThere, RemoteService, RemoteUnreadable
from gateway.mirror.counts import RECIPES, SESSIONS, MirrorCounts
from gateway.mirror.links import SESSION, Links
from gateway.mirror.run import MirrorSource, Run
from gateway.network import sends_key_in_the_clear
from gateway.services.build import Services
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

_turns: WeakKeyDictionary[Store, asyncio.Lock] = WeakKeyDictionary()
"""Two runs at once into one store would copy everything twice."""


def under_way(store: Store) -> asyncio.Lock:
    """Held while a run copies into this store."""
    return _turns.setdefault(store, asyncio.Lock())


async def mirror(
    services: Services, source: MirrorSource, account_id: int, progress: Progress
) -> MirrorCounts:
    """Copy what is new there into the account; `GatewayError` where it cannot go on, what is here stays."""
    async with (
        under_way(services.store),
        aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as client,
    ):
        service = RemoteService(client, source.url, source.key, services.clock, rate=source.rate)
        run = Run(service, services, account_id, MirrorCounts(), progress)
        if sends_key_in_the_clear(source.url):
            run.tally.report(f"{source.name}: plain http, anyone on the way can read the key; use https")
        try:
            await _copy(run, source)
        finally:
            run.tally.requests = service.requests
            services.notices.notify()
        return run.tally


async def _copy(run: Run, source: MirrorSource) -> None:
    of_recipes = recipes.RecipeCopies(run, await Links.load(run, recipes.KIND))
    ours = await sessions.forwarded_there(run, source.unnamed)
    of_sessions = sessions.SessionCopies(run, of_recipes, await Links.load(run, SESSION), ours)
    of_readings = readings.ReadingCopies(run, await run.known(readings.KIND))
    await _list(run, RECIPES, of_recipes.copy_all())
    await _list(run, SESSIONS, of_sessions.copy_all())
    if run.tally.renumbered and not of_recipes.read_whole:
        await _list(run, RECIPES, of_recipes.copy_whole())
    await of_readings.copy_all(of_sessions.copied)
    if source.photos:
        await photos.PhotoCopies(run, await Links.load(run, photos.KIND), of_recipes).copy_all()


async def _list(run: Run, kind: str, copying: Awaitable[None]) -> None:
    """Copy a list; where it cannot be read to its end, the others still can."""
    try:
        await copying
    except NotThere as error:
        remedy = "is it the address without /v1?"
        raise MirrorStopped(f"{run.service.name} has no list of {kind} ({error}); {remedy}") from error
    except RemoteUnreadable as error:
        run.tally.failed(kind, f"the list of {kind} cannot be read to its end: {error}")
