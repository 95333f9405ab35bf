"""The import endpoint's rules: check every row, then reset and insert in one transaction."""

import asyncio
from collections.abc import Callable, Sequence

from gateway.clock import Clock
from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import Reading
from gateway.errors import StoreUnavailable
from gateway.events import StoredNotices
from gateway.formats.readings import ImportContext, Media, parse_csv, parse_json
from gateway.stats import Stats
from gateway.store.protocol import Store

THREAD_BYTES = 64 * 1024
"""Longer bodies are parsed in a thread: 64 KiB take about a millisecond, 10 MiB several hundred."""

PARSERS: dict[Media, Callable[[bytes, ImportContext], list[Reading]]] = {"json": parse_json, "csv": parse_csv}


class Importing:
    """Imports into brew sessions, one at a time: the largest import takes some 100 MB of memory."""

    def __init__(
        self,
        store: Store,
        notices: StoredNotices,
        stats: Stats,
        clock: Clock,
        held_back: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`held_back` returns why our clock gives no reading its time for now, or None."""
        self._store = store
        self._notices = notices
        self._stats = stats
        self._clock = clock
        self._held_back = held_back
        self._turn = asyncio.Lock()

    async def run(
        self,
        session: BrewSession,
        body: bytes,
        media: Media,
        caller_ip: str,
        reset: bool,
        later: Sequence[str] = (),
    ) -> int:
        """Import all readings of a body, or none; return how many.

        With `reset`, the session's other readings are deleted, but for those with an id in `later`.
        """
        context = ImportContext(self._clock.now(), caller_ip)
        parse = PARSERS[media]
        async with self._turn:
            if len(body) > THREAD_BYTES:
                readings = await asyncio.to_thread(parse, body, context)
            else:
                readings = parse(body, context)
            if any(r.created_at == int(context.now) for r in readings) and (why := self._held_back()):
                raise StoreUnavailable(f"say created_at, or send this again later: the gateway {why}")
            if readings or reset:
                await self._store.readings.import_readings(
                    session, readings, reset=reset, unsaid=context.unsaid, later=later
                )
                self._notices.notify("reading", brew=session.id)
        self._stats.imported += len(readings)
        return len(readings)

    async def take_back(self, session: BrewSession, ids: Sequence[str]) -> int:
        """Undo the edits of readings with these ids, or of all readings of the session without ids.

        Return the number of edited readings; `NotFound` for an id that the session does not have.
        """
        count = await self._store.readings.take_back(session, ids, int(self._clock.now()))
        self._notices.notify("reading", brew=session.id)
        return count
