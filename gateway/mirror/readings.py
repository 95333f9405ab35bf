"""Copy readings of brew sessions; never double readings that are from here or were copied before."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import Reading
from gateway.errors import InvalidInput
from gateway.formats.readings.rows import given_id
from gateway.mirror.checkpoint import Checkpoint, PageTracker
from gateway.mirror.client import NotThere, RemoteUnreadable
from gateway.mirror.counts import READINGS
from gateway.mirror.matching import match_readings
from gateway.mirror.pages import Listing, read_pages
from gateway.mirror.records import reading_of
from gateway.mirror.run import FailureLimit, Run
from gateway.mirror.sessions import SessionCopy
from gateway.store.records import Mirrored

KIND = "readings"
"""The kind of note under which the time of the last copied reading of a brew session is remembered."""

PAGE = 1000
"""Readings in a page."""


class ReadingCopies:
    """Copies the readings of one run."""

    def __init__(self, run: Run, notes: Mapping[str, Mirrored]) -> None:
        self._run = run
        self._notes = notes
        self._counts = run.result.counts[READINGS]
        self._nameless: set[str] = set()

    async def copy_all(self, sessions: Sequence[SessionCopy]) -> None:
        """Copy the readings of all brew sessions. Ask for each: an import does not change a session."""
        limit = FailureLimit()
        for done, session in enumerate(sessions, 1):
            try:
                await self._copy(session)
                limit.succeeded()
            except NotThere:
                limit.succeeded()  # "no records found": it has none
            except RemoteUnreadable as error:
                self._run.result.failed(READINGS, f"readings of brew session {session.remote_id}: {error}")
                limit.failed()
            if limit.reached:
                self._run.result.report("readings: too many failures, the rest is left to the next run")
                return
            self._run.progress(done, len(sessions), READINGS)

    async def _copy(self, copy: SessionCopy) -> None:
        """Copy the readings from the last copied day on; all readings if that day does not fit any more."""
        session = await self._run.store.sessions.get(copy.local_id)
        if session is None:
            return  # deleted a moment ago
        mark = self._notes.get(copy.remote_id)
        if mark is None or mark.local_id != str(session.id):
            mark = Mirrored(copy.remote_id, str(session.id), "")
        checkpoint = Checkpoint.from_text(mark.said)
        now = self._run.now
        tracker = None
        if not copy.changed and not checkpoint.is_due(now):
            updated = self._counts.updated
            tracker = await self._copy_from(session, mark, checkpoint)
            if self._counts.updated > updated and checkpoint.place:
                tracker = None  # a calibration there changes the older ones, too
        if tracker is None:
            checkpoint = Checkpoint()
            tracker = await self._copy_from(session, mark, checkpoint)
        if tracker is not None:
            text = tracker.checkpoint(checkpoint.full_at if checkpoint.place else now, now).as_text()
            await self._run.remember(KIND, replace(mark, remote_updated_at=tracker.newest, said=text))

    async def _copy_from(self, session: BrewSession, mark: Mirrored, start: Checkpoint) -> PageTracker | None:
        """Copy readings from a checkpoint on; None if another reading stands in its place now."""
        path = f"/v1/fermentation/{mark.remote_id}"
        listing = Listing(path, READINGS, PAGE, offset_name="skip", begin=start.place)
        tracker, rest = PageTracker(), list[Reading]()
        self._nameless.clear()
        try:
            async for page in read_pages(self._run.service, listing, partial(self._lost, mark)):
                if not tracker.begun and not start.fits(page):
                    return None
                tracker.add(page)
                now = self._run.services.clock.now()
                readings, nameless, wrong = await asyncio.to_thread(_readings, page.records, now)
                self._nameless |= nameless
                for reason in wrong:
                    self._lost(mark, reason)
                rest += readings
                # Without readings of the last second: the next page may have more of that second.
                end = len(rest)
                while end and rest[end - 1].created_at == rest[-1].created_at:
                    end -= 1
                await self._take(session, mark, rest[:end])
                rest = rest[end:]
        except NotThere:
            if start.place > 0:
                return None
            raise
        await self._take(session, mark, rest)
        return tracker

    async def _take(self, session: BrewSession, mark: Mirrored, readings: list[Reading]) -> None:
        """Store readings that are new or were corrected at the service."""
        if not readings:
            return
        store, upstream = self._run.store.readings, self._run.service.name
        here = await store.find_matches(session, readings, upstream)
        new, pairs = await asyncio.to_thread(match_readings, readings, here, self._nameless)
        if new:
            await store.add_mirrored(session, new)
        updated = kept = 0
        # Noted before the correction: after a crash all are read again, as any of them may have changed.
        if corrected := await store.differing(pairs):
            await self._run.remember(KIND, replace(mark, said=Checkpoint().as_text()))
            updated, kept = await store.correct(session, corrected, upstream, self._run.now)
        self._counts.copied += len(new)
        self._counts.updated += updated
        self._counts.kept += kept
        self._counts.unchanged += len(readings) - len(new) - updated - kept

    def _lost(self, mark: Mirrored, reason: str) -> None:
        where = f"brew session {mark.remote_id}"
        self._run.result.failed(READINGS, f"a reading of {where}: {reason}")


def _readings(values: Iterable[object], now: float) -> tuple[list[Reading], set[str], list[str]]:
    """Return readings, ids made for readings without one, and the faults of unreadable records."""
    readings, nameless, wrong = [], set(), []
    for value in values:
        try:
            readings.append(reading_of(value, now))
        except InvalidInput as error:
            name = str(value.get("created_at"))[:32] if isinstance(value, dict) else "no object"
            wrong.append(f"{name}: {error}")
            continue
        if isinstance(value, dict) and given_id(value.get("_id")) is None:
            nameless.add(readings[-1].oid)
    return readings, nameless, wrong
