"""Upkeep of the store while the gateway runs: salvage, scrub, retention, and words for the health page."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from gateway.clock import Clock
from gateway.errors import StoreUnavailable
from gateway.intake.intake import Intake
from gateway.services.access import Access
from gateway.services.logins import Logins
from gateway.stats import Stats
from gateway.store.protocol import Store
from gateway.store.records import Finished, StoreCondition

log = logging.getLogger(__name__)

TEND_S = 5.0
"""Seconds between two checks of disk and quota: readings are taken again at most so long after trouble."""

SALVAGE_PAUSE_S = 0.02
"""Seconds between two slices of salvage: new readings go first."""

SCRUB_ROUND_S = 86_400.0
"""Seconds in which all readings are verified once."""

SCRUB_PAUSES_S = (0.05, 60.0)
"""The shortest and the longest pause between two steps of the scrub, in seconds."""

SCRUB_READINGS = 200
"""Readings of one step, for spreading a round over the day."""

SCRUB_NOTED_S = 600.0
"""Seconds between two notes of the scrub's place: each note is a commit."""

RETENTION_S = 3_600.0


SLICE_S = 0.05
"""Seconds that one deletion may take of the writer."""

FIRST_SLICE_READINGS = 25
MOST_READINGS = 500

DAY_S = 86_400

KEYS_NOTED_S = 60.0
"""Seconds between two notes of the last uses of keys: one commit for all of them."""

AUDIT_PRUNED_S = 3_600.0
"""Seconds between two deletions of rows of the audit log, and of alarms, that are too old."""

NEARLY_FULL = 0.9
"""Share of the quota in use from which somebody should make room: at the quota nothing is taken."""

ALARM_DAYS, ALARM_EVENTS = 365, 10_000
"""Days that the history of alarms is kept, and its events at most."""


class Retention:
    """The deletion of readings of brew sessions whose last reading is older than `keep_days`.

    A reading is deleted only if it is forwarded to every target, and its session has no open attempt and no
    device. All other readings are kept for ever.
    """

    def __init__(self, store: Store, keep_days: int) -> None:
        self._store = store
        self._keep_days = keep_days
        self._readings = FIRST_SLICE_READINGS

    async def run_once(self, now: float) -> int:
        """Delete all readings that are due, and log each session; return how many."""
        before = int(now) - self._keep_days * DAY_S
        total = 0
        for session in await self._store.upkeep.finished(before):
            gone = await self._prune(session, before)
            if gone:
                total += gone
                log.info(
                    "retention: deleted %d readings of brew session %d, forwarded and older than %d days",
                    gone, session.session_id, self._keep_days,
                )  # fmt: skip
        return total

    async def _prune(self, session: Finished, before: int) -> int:
        total = 0
        while True:
            wanted = self._readings
            gone, seconds = await self._store.upkeep.prune(session, before, wanted)
            total += gone
            # Well below the slice, so that a step which takes longer than the last still fits.
            if seconds > SLICE_S / 2:
                self._readings = max(1, wanted // 2)
            elif seconds < SLICE_S / 8:
                self._readings = min(MOST_READINGS, wanted * 2)
            if gone < wanted:
                return total


class Upkeep:
    """The upkeep beside the listeners, as long as the gateway runs; no failure of the store ends it."""

    def __init__(
        self,
        store: Store,
        access: Access,
        logins: Logins,
        intake: Intake,
        stats: Stats,
        clock: Clock,
        retention: Retention | None = None,
        held_back: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`held_back` returns why nothing may be deleted by its age for now, or None."""
        self._store = store
        self._access = access
        self._logins = logins
        self._intake = intake
        self._stats = stats
        self._clock = clock
        self._retention = retention
        self._held_back = held_back
        self._repairs = 0
        self._damaged = 0

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._again(self.tend, TEND_S, "store"), name="store-tend")
            tasks.create_task(self._again(self._salvage, TEND_S, "store"), name="store-salvage")
            scrub = self._again(self.scrub_round, SCRUB_PAUSES_S[1], "scrub")
            tasks.create_task(scrub, name="store-scrub")
            keys = self._again(self._note_uses, KEYS_NOTED_S, "store")
            tasks.create_task(keys, name="store-keys")
            tasks.create_task(self._again(self._prune_history, AUDIT_PRUNED_S, "store"), name="store-audit")
            if self._retention is not None:
                retain = self._again(self._retain, RETENTION_S, "retention")
                tasks.create_task(retain, name="store-retention")

    async def _note_uses(self) -> None:
        await self._access.note()
        await self._logins.note()

    async def tend(self) -> None:
        """Repair the store if possible, and report its parts on the health page."""
        await self._store.upkeep.tend()
        condition = await self._store.upkeep.condition()
        well = condition.trouble is None and not condition.salvaging
        self._stats.say("store", in_words(condition), well=well)
        engine = self._store.upkeep.engine()
        advice = f"; it {engine.words}" if engine.wal_reset_bug else ""
        self._stats.say("sqlite", f"{engine.version}: ok{advice}")
        if condition.repairs != self._repairs:
            self._repairs = condition.repairs
            await self._intake.devices.load()  # devices may be lost, or have other ids
            await self._access.start()
            await self._logins.start()

    async def scrub_round(self) -> None:
        """Verify all readings once, unless that was done within the last day."""
        condition = await self._store.upkeep.condition()
        since = self._clock.now() - condition.scrubbed_at
        if 0 <= since < SCRUB_ROUND_S:
            self._stats.say("scrub", "ok")
            return
        place: int | None = condition.scrubbed_until
        readings = await self._store.readings.count()
        pause = SCRUB_ROUND_S / 2 / max(1, readings // SCRUB_READINGS)
        pause = min(max(pause, SCRUB_PAUSES_S[0]), SCRUB_PAUSES_S[1])
        noted_at = self._clock.monotonic()
        while place is not None:
            if not self._store.upkeep.busy:
                place = await self._store.upkeep.scrub(place)
            self._stats.say("scrub", f"verified up to reading {place}" if place else "ok")
            if place is not None and self._clock.monotonic() - noted_at > SCRUB_NOTED_S:
                await self._store.upkeep.note_scrub(place, None)
                noted_at = self._clock.monotonic()
            if place is not None:
                await self._clock.sleep(pause)
        await self._store.upkeep.note_scrub(0, int(self._clock.now()))

    async def _salvage(self) -> None:
        while await self._store.upkeep.salvage():
            await self._clock.sleep(SALVAGE_PAUSE_S)

    async def _retain(self) -> None:
        if held := self._held_back():
            self._stats.say("retention", held, well=False)
        elif self._retention is not None:
            gone = await self._retention.run_once(self._clock.now())
            self._stats.say("retention", f"ok; deleted {gone} forwarded readings in the last run")

    async def _prune_history(self) -> None:
        if self._held_back() is None:  # by a wrong clock, every row could be too old
            await self._store.audit.prune(int(self._clock.now()))
            await self._store.alarms.prune(int(self._clock.now()) - ALARM_DAYS * DAY_S, ALARM_EVENTS)

    async def _again(self, task: Callable[[], Awaitable[None]], seconds: float, part: str) -> None:
        while True:
            try:
                await task()
            except StoreUnavailable as error:
                log.debug("upkeep: put off: %s", error)
                self._stats.say(part, str(error), well=False)
            await self._clock.sleep(seconds)


def in_words(condition: StoreCondition) -> str:
    """Put the condition of the store into words, for the part `store` of the health page."""
    words = [condition.trouble] if condition.trouble else ["ok"]
    if condition.salvaging:
        words.append("readings of a damaged file are being salvaged; forwarding waits for that")
    if condition.damages:
        last = condition.damages[-1]
        words.append(
            f"a damaged file is kept as {last.aside} ({last.reason}); of it {last.salvaged} readings were "
            f"salvaged and {last.quarantined} are in quarantine"
        )
    if condition.damaged:
        words.append(f"{condition.damaged} damaged readings in quarantine so far")
    return "; ".join(words)


log = logging.getLogger(__name__)
