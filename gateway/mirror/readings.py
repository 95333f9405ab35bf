"""Copying the readings of a brew session: what came from here, or was copied before, is not taken again."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gateway.domain.brewsession import BrewSession
from gateway.domain.reading import Reading
from gateway.errors import InvalidInput
from gateway.forward.readback import missing
from gateway.mirror.client import NotThere, Unreadable
from gateway.mirror.members import seconds
from gateway.mirror.pages import Listing, Page, pages
from gateway.mirror.records import reading_of
from gateway.mirror.run import Patience, Run
from gateway.mirror.sessions import Copied
from gateway.mirror.tally import READINGS
from gateway.store.protocol import Mirrored

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

    async def copy_all(self, sessions: Sequence[Copied]) -> None:
        """Those of all brew sessions; an import is no change of its session, so each is asked."""
        patience = Patience()
        for done, session in enumerate(sessions, 1):
            try:
                await self._copy(session)
                patience.succeeded()
            except NotThere:
                patience.succeeded()  # "no records found": it has none
            except Unreadable as error:
                self._run.tally.failed(READINGS, f"readings of brew session {session.remote_id}: {error}")
                patience.failed()
            if patience.lost:
                self._run.tally.report("readings: too many failures, the rest is left to the next run")
                return
            self._run.progress(done, len(sessions), READINGS)

    async def _copy(self, copied: Copied) -> None:
        """From the last day that was copied on; all of them where the session itself has changed."""
        session = await self._run.store.sessions.get(copied.local_id)
        if session is None:
            return  # deleted a moment ago
        mark = self._known.get(copied.remote_id)
        since = 0 if mark is None else seconds(mark.remote_updated_at) or 0
        query = {"from": self._run.day_before(since)} if since and not copied.changed else {}
        listing = Listing(f"/v1/fermentation/{copied.remote_id}", READINGS, PAGE, query, "skip")
        newest, held = since, list[Reading]()
        async for page in pages(self._run.service, listing, self._lost_of(copied)):
            held += await self._read(page, copied)
            newest = max([newest, *(reading.created_at for reading in held)])
            whole, held = _whole_seconds(held)
            await self._take(session, whole)
        await self._take(session, held)
        if newest > since:
            stamp = datetime.fromtimestamp(newest, UTC).isoformat()
            await self._run.remember(KIND, Mirrored(copied.remote_id, str(session.id), stamp))

    async def _read(self, page: Page, copied: Copied) -> list[Reading]:
        readings, wrong = await asyncio.to_thread(_readings, page.records, self._run.parts.clock.now())
        for reason in wrong:
            self._lost_of(copied)(reason)
        return readings

    async def _take(self, session: BrewSession, readings: list[Reading]) -> None:
        """Keep what is not here. What of it came from here was stored before the service could show it."""
        if not readings:
            return
        times = [reading.created_at for reading in readings]
        here = await self._run.store.readings.between(session, min(times), max(times))
        new = await asyncio.to_thread(not_here, readings, here)
        if new:
            await self._run.store.readings.add_mirrored(session, new)
        self._counts.copied += len(new)
        self._counts.unchanged += len(readings) - len(new)

    def _lost_of(self, copied: Copied) -> "_Lost":
        return _Lost(self._run, copied)


class _Lost:
    """Reports a reading of one brew session."""

    def __init__(self, run: Run, copied: Copied) -> None:
        self._run = run
        self._where = f"brew session {copied.remote_id}"

    def __call__(self, reason: str) -> None:
        self._run.tally.failed(READINGS, f"a reading of {self._where}: {reason}")


def not_here(there: Sequence[Reading], here: Sequence[Reading]) -> list[Reading]:
    """Readings that are not among those here: by id, else by what they say, counted."""
    rows = [json.dumps(_shown(reading)) for reading in there]
    return [there[place] for place in missing(rows, [_shown(reading) for reading in here])]


def _readings(values: Iterable[object], now: float) -> tuple[list[Reading], list[str]]:
    """Readings, and what is wrong with the others."""
    readings, wrong = [], []
    for value in values:
        try:
            readings.append(reading_of(value, now))
        except InvalidInput as error:
            wrong.append(f"{_known_by(value)}: {error}")
    return readings, wrong


def _known_by(value: object) -> str:
    return str(value.get("created_at"))[:32] if isinstance(value, dict) else "no object"


def _shown(reading: Reading) -> dict[str, Any]:
    """As much of the specification's shape as comparing needs."""
    return {
        "_id": {"$oid": reading.oid},
        "name": reading.name,
        "gravity": reading.gravity,
        "gravity_unit": reading.gravity_unit,
        "temp": reading.temp,
        "temp_unit": reading.temp_unit,
        "created_at": datetime.fromtimestamp(reading.created_at, UTC).isoformat(),
    }


def _whole_seconds(readings: list[Reading]) -> tuple[list[Reading], list[Reading]]:
    """All but those of the last second, and these: the next page may have more of them to be counted with."""
    place = len(readings)
    while place and readings[place - 1].created_at == readings[-1].created_at:
        place -= 1
    return readings[:place], readings[place:]
