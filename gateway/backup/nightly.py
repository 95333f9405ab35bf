"""A backup every night at three, local time; a missed one is made up for at the next start.

A failure is an error in the log and on the health page. It is retried every hour, and touches nothing else.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.backup import backup
from gateway.backup.backup import Work
from gateway.clock import Clock
from gateway.domain.audit import AuditEntry
from gateway.errors import GatewayError, StoreUnavailable, in_words
from gateway.stats import Stats

log = logging.getLogger(__name__)

HOUR = 3
"""The hour of the local day at which a backup is due."""

FIRST_LOOK_S = 30.0
"""Seconds from the start to the first look: devices that waited for the gateway go first."""

LOOK_S = 600.0
"""Seconds between two looks at most: the clock may be set at any time."""

RETRY_S = 3_600.0

BELIEVED_FROM = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""Unix seconds. An earlier time means that nobody has set the machine's clock yet."""

NAME = re.compile(r"hydrometer-gateway-(\d{8}T\d{6}Z)\.tar")
STAMP = "%Y%m%dT%H%M%SZ"

PART = "nightly backup"
"""The name of the nightly backup among the gateway's parts."""


class NightlyBackup:
    """Keep the newest `keep` backups in a directory. It must exist: without it the disk is not mounted."""

    def __init__(
        self,
        data_dir: Path,
        directory: Path,
        keep: int,
        stats: Stats,
        clock: Clock,
        on_made: Callable[[AuditEntry], Awaitable[None]],
    ) -> None:
        """`on_made` gets the row of the audit log for each backup."""
        self._data_dir = data_dir
        self._directory = directory
        self._keep = keep
        self._stats = stats
        self._clock = clock
        self._on_made = on_made

    async def run(self) -> None:
        """Make a backup whenever one is due, until cancelled."""
        wait = FIRST_LOOK_S
        while True:
            await self._clock.sleep(wait)
            wait = await self.look()

    async def look(self) -> float:
        """Make a backup if one is due; return the seconds until the next look."""
        now = self._clock.now()
        if now < BELIEVED_FROM:
            self._say("waits until the machine knows what time it is", well=False)
            return LOOK_S
        due = last_due(now)
        try:
            newest = await asyncio.to_thread(self._newest, now)
            self._stats.backed_up_at = newest
            if newest is None or newest < due:
                await self._make(now)
            else:
                self._say(f"ok: {made_name(newest)}")
        except GatewayError as error:
            return self._failed(str(error))
        except OSError as error:
            return self._failed(f"{self._directory}: {in_words(error)}")
        except Exception:
            log.exception("backup: %s failed", PART)
            return self._failed("see the log")
        return min(LOOK_S, max(1.0, next_due(self._clock.now()) - self._clock.now()))

    def _newest(self, now: float) -> float | None:
        if not self._directory.is_dir():
            raise StoreUnavailable(f"there is no directory {self._directory}: is the disk mounted?")
        return max((made for made in made_in(self._directory) if made <= now), default=None)

    async def _make(self, now: float) -> None:
        work = Work()
        self._say("is being made")
        try:
            made = await asyncio.to_thread(self._make_and_tidy, now, work)
        finally:
            work.stopped = True  # where we are cancelled, the thread goes on by itself otherwise
        self._stats.backed_up_at = now
        log.info("backup: %s, %d readings, %d bytes", made.path, made.contents.counts["readings"], made.bytes)
        if made.missing:
            log.warning(
                "backup: %d photos are missing or damaged, the first is %s",
                len(made.missing),
                made.missing[0],
            )
        self._say(f"ok: {made.path.name}")
        with suppress(StoreUnavailable):  # the backup is there all the same
            await self._on_made(AuditEntry("backup", f"backup:{made.path.name}", f"{made.bytes} bytes"))

    def _make_and_tidy(self, now: float, work: Work) -> backup.Made:
        for left in self._directory.glob(".hydrometer-gateway-*.tar.*"):
            left.unlink(missing_ok=True)
        made = backup.make(self._data_dir, self._directory / made_name(now), work, now=now)
        before = sorted((time for time in made_in(self._directory) if time <= now), reverse=True)
        for time in before[self._keep :]:
            with suppress(OSError):
                (self._directory / made_name(time)).unlink()
        return made

    def _failed(self, reason: str) -> float:
        log.error("backup: the %s failed: %s", PART, reason)
        self._say(f"FAILED, is tried again within an hour: {reason}", well=False)
        return RETRY_S

    def _say(self, state: str, *, well: bool = True) -> None:
        self._stats.say(PART, f"into {self._directory}: {state}", well=well)


def made_name(unix_seconds: float) -> str:
    """Return the file name of a backup made at that time."""
    return f"hydrometer-gateway-{datetime.fromtimestamp(unix_seconds, UTC).strftime(STAMP)}.tar"


def made_in(directory: Path) -> list[float]:
    """List the times (Unix seconds) of the nightly backups in a directory."""
    found = (NAME.fullmatch(path.name) for path in directory.iterdir())
    times = []
    for match in filter(None, found):
        with suppress(ValueError):
            times.append(datetime.strptime(match[1], STAMP).replace(tzinfo=UTC).timestamp())
    return times


def last_due(now: float) -> float:
    """Return the last three o'clock, local time, at or before `now`; both are Unix seconds."""
    today = _at_three(now, 0)
    return today if today <= now else _at_three(now, -1)


def next_due(now: float) -> float:
    """Return the next three o'clock, local time, after `now`; both are Unix seconds."""
    today = _at_three(now, 0)
    return today if today > now else _at_three(now, 1)


def _at_three(now: float, days: int) -> float:
    local = datetime.fromtimestamp(now, UTC).astimezone().replace(tzinfo=None) + timedelta(days=days)
    return local.replace(hour=HOUR, minute=0, second=0, microsecond=0).astimezone().timestamp()
