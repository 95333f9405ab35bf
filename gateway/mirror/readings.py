"""Copying the readings of a brew session: what came from here, or was copied before, is not taken again."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import Reading
from gateway.errors import InvalidInput
from gateway.formats.readings.rows import given_id
from gateway.mirror.client import NotThere, RemoteUnreadable
from gateway.mirror.counts import READINGS
from gateway.mirror.matching import matched
from gateway.mirror.pages import Listing, RemotePage, pages
from gateway.mirror.reach import Reach, Walk
from gateway.mirror.records import reading_of
from gateway.mirror.run import Patience, Run
from gateway.mirror.sessions import Copied
from gateway.store.records import Mirrored

KIND = "readings"
"""Under which is remembered up to which time the readings of a brew session were copied."""

PAGE = 1000
"""Readings in a page, and at once into the store."""


class ReadingCopies:
    """The readings of one run."""

    def __init__(self, run: Run, known: Mapping[str, Mirrored]) -> None:
        self._run = run
        self._known = known
        self._counts = run.tally.counts[READINGS]
        self._nameless: set[str] = set()

    async def copy_all(self, sessions: Sequence[Copied]) -> None:
        """Those of all brew sessions; an import is no change of its session, so each is asked."""
        patience = Patience()
        for done, session in enumerate(sessions, 1):
            try:
                await self._copy(session)
                patience.succeeded()
            except NotThere:
                patience.succeeded()  # "no records found": it has none
            except RemoteUnreadable as error:
                self._run.tally.failed(READINGS, f"readings of brew session {session.remote_id}: {error}")
                patience.failed()
            if patience.lost:
                self._run.tally.report("readings: too many failures, the rest is left to the next run")
                return
            self._run.progress(done, len(sessions), READINGS)

    async def _copy(self, copied: Copied) -> None:
        """From the last day that was copied on; all of them where that does not tell what there is."""
        session = await self._run.store.sessions.get(copied.local_id)
        if session is None:
            return  # deleted a moment ago
        mark = self._known.get(copied.remote_id)
        if mark is None or mark.local_id != str(session.id):
            mark = Mirrored(copied.remote_id, str(session.id), "")
        reach = Reach.from_text(mark.said)
        now = self._run.now
        walk = None
        if not copied.changed and not reach.is_due(now):
            updated = self._counts.updated
            walk = await self._walk(session, mark, reach)
            if self._counts.updated > updated and reach.place:
                walk = None  # a calibration there changes the older ones, too
        if walk is None:
            reach = Reach()
            walk = await self._walk(session, mark, reach)
        if walk is not None:
            said = walk.reach(reach.full_at if reach.place else now, now).as_text()
            await self._run.remember(KIND, replace(mark, remote_updated_at=walk.newest, said=said))

    async def _walk(self, session: BrewSession, mark: Mirrored, reach: Reach) -> Walk | None:
        """Take what is there from a place on; None where there is something else in that place."""
        path = f"/v1/fermentation/{mark.remote_id}"
        listing = Listing(path, READINGS, PAGE, skipping="skip", begin=reach.place)
        walk, held = Walk(), list[Reading]()
        self._nameless.clear()
        try:
            async for page in pages(self._run.service, listing, self._lost_of(mark)):
                if not walk.begun and not reach.fits(page):
                    return None
                walk.follow(page)
                held += await self._read(page, mark)
                whole, held = _whole_seconds(held)
                await self._take(session, mark, whole)
        except NotThere:
            if reach.place > 0:
                return None
            raise
        await self._take(session, mark, held)
        return walk

    async def _read(self, page: RemotePage, mark: Mirrored) -> list[Reading]:
        now = self._run.services.clock.now()
        readings, nameless, wrong = await asyncio.to_thread(_readings, page.records, now)
        self._nameless |= nameless
        for reason in wrong:
            self._lost_of(mark)(reason)
        return readings

    async def _take(self, session: BrewSession, mark: Mirrored, readings: list[Reading]) -> None:
        """Keep what is not here, and what was corrected; what came from here was here before it was there."""
        if not readings:
            return
        store, upstream = self._run.store.readings, self._run.service.name
        here = await store.find_matches(session, readings, upstream)
        new, pairs = await asyncio.to_thread(matched, readings, here, self._nameless)
        if new:
            await store.add_mirrored(session, new)
        updated = kept = 0
        if corrected := await store.differing(pairs):
            await self._run.remember(
                KIND, replace(mark, said=Reach().as_text())
            )  # before: all may have changed
            updated, kept = await store.correct(session, corrected, upstream, self._run.now)
        self._counts.copied += len(new)
        self._counts.updated += updated
        self._counts.kept += kept
        self._counts.unchanged += len(readings) - len(new) - updated - kept

    def _lost_of(self, mark: Mirrored) -> "_Lost":
        return _Lost(self._run, mark.remote_id)


class _Lost:
    """Reports a reading of one brew session."""

    def __init__(self, run: Run, remote_id: str) -> None:
        self._run = run
        self._where = f"brew session {remote_id}"

    def __call__(self, reason: str) -> None:
        self._run.tally.failed(READINGS, f"a reading of {self._where}: {reason}")


def _readings(values: Iterable[object], now: float) -> tuple[list[Reading], set[str], list[str]]:
    """Readings, the ids that were made for those without one, and what is wrong with the others."""
    readings, nameless, wrong = [], set(), []
    for value in values:
        try:
            readings.append(reading_of(value, now))
        except InvalidInput as error:
            wrong.append(f"{_known_by(value)}: {error}")
            continue
        if isinstance(value, dict) and given_id(value.get("_id")) is None:
            nameless.add(readings[-1].oid)
    return readings, nameless, wrong


def _known_by(value: object) -> str:
    return str(value.get("created_at"))[:32] if isinstance(value, dict) else "no object"


def _whole_seconds(readings: list[Reading]) -> tuple[list[Reading], list[Reading]]:
    """All but those of the last second, and these: the next page may have more of them to be counted with."""
    place = len(readings)
    while place and readings[place - 1].created_at == readings[-1].created_at:
        place -= 1
    return readings[:place], readings[place:]
