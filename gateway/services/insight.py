"""The figures of every open brew, for the page, `/manage`, alarms, Home Assistant and metrics alike."""

import asyncio
import logging
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from gateway.clock import Clock
from gateway.domain.brewsession import BrewSession
from gateway.errors import StoreUnavailable
from gateway.events import EVERYTHING, StoredNotices, Topic, TopicListener
from gateway.insight.records import Insight, Sample
from gateway.services.insight_series import Background, BrewLines, BrewSeries, Device
from gateway.store.protocol import Store
from gateway.store.records import NewSample

log = logging.getLogger(__name__)

T = TypeVar("T")

BREWS = 200
"""Open brews that are kept in memory, the latest ones; figures of others are made when asked for."""

KEPT = 500
"""Brews whose figures are kept that are not followed, 1 to 2 kB each."""

KEPT_S = 60
"""Seconds for which figures of a brew without news are given out again."""

LOOK_S = 300
"""Seconds after which figures are made anew without any news: time alone changes them, too."""

JOB_S = 0.1
"""Seconds of work in a thread after which others have their turn."""

PAUSE_S, PAUSE_TIMES, PAUSE_MOST_S = 1.0, 1000.0, 30.0
"""Seconds between two looks at news, or so many times as long as a look took: a burst is one look.

A reading that comes during a look waits some milliseconds. So looks take a thousandth of the time. Who asks
for figures has them at once all the same.
"""

AT_ONCE = 100
"""New readings that are put into their series at once; more of them go to a thread, for some milliseconds."""

AGAIN_S, AGAIN_TIMES = 5.0, 20.0
"""A brew is read again after so many seconds at the earliest, and so many times as long as reading took."""

READ_S = 120 * 86_400
"""Seconds of a brew's end that are read; of an older brew the beginning, too."""

BEGINNING_S = 14 * 3600
"""Seconds of the beginning, in which the original gravity is measured."""

FIRST_PLACE = (-1, b"")
"""The place before all readings of a brew."""


@dataclass(slots=True)
class Followed:
    """An open brew in memory. Times without a word are of the monotonic clock."""

    session: BrewSession
    series: BrewSeries | None = None
    insight: Insight | None = None
    made_at: int = 0
    """Wall time (Unix seconds) of the figures."""
    has_news: bool = True
    """Whether there are samples that are not in the figures."""
    is_stale: bool = True
    """Whether the brew must be read again."""
    not_before: float = 0.0


@dataclass(frozen=True, slots=True)
class Kept:
    """Figures of a brew that is not followed: made at a wall time (Unix seconds), of a state of the store."""

    tag: str | None
    made_at: int
    insight: Insight
    lead: Device


@dataclass(slots=True)
class News:
    """What the notices said since the last look."""

    arrivals: bool = False
    sessions: bool = False
    brews: set[int] = field(default_factory=set)
    devices: set[int] = field(default_factory=set)
    everything: bool = False

    def note(self, topics: Collection[Topic]) -> None:
        """Note what topics may have changed."""
        for topic in topics:
            if topic.kind == EVERYTHING:
                self.everything = self.sessions = True
            elif topic.kind in {"reading", "brew"} and topic.brew is not None:
                self.brews.add(topic.brew)
                self.sessions = self.sessions or topic.kind == "brew"
            elif topic.kind == "reading":
                self.arrivals = True
            elif topic.kind == "device" and topic.device is not None:
                self.devices.add(topic.device)


class InsightService:
    """Keeps the series of open brews in memory, and follows the notices of changes.

    Where `run` does not run, in a command of its own process or in a test, figures are made when asked for.
    """

    def __init__(self, store: Store, notices: StoredNotices, clock: Clock) -> None:
        self._store = store
        self._notices = notices
        self._clock = clock
        self._brews: dict[int, Followed] = {}
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self._listener: TopicListener | None = None
        self._news = News(everything=True, sessions=True)
        self._place: tuple[int, bytes] | None = None
        self._failing = False
        self._is_over = False
        # One at a time: a progress is made for one thread, and a Raspberry Pi has other things to do.
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Follow changes until cancelled; publish the topic `insight` when figures of a brew have changed."""
        with self._notices.follow() as listener:
            self._listener, self._is_over = listener, False
            try:
                while True:
                    begun = self._clock.monotonic()
                    await self._look(None)
                    took = self._clock.monotonic() - begun
                    await self._clock.sleep(min(max(PAUSE_S, PAUSE_TIMES * took), PAUSE_MOST_S))
                    await listener.wait(self._wait_s())
            finally:
                self._listener, self._is_over = None, True
                self._brews.clear()
                self._news = News(everything=True, sessions=True)

    async def of(self, session: BrewSession) -> Insight:
        """Return the figures of a brew, now; those of a brew that ended, at its last reading."""
        return (await self.of_all([session]))[session.id]

    async def of_all(self, sessions: Sequence[BrewSession]) -> Mapping[int, Insight]:
        """Return the figures of brews by their ids."""
        if self._listener is not None:
            await self._look([session.id for session in sessions])
        found: dict[int, Insight] = {}
        for session in sessions:
            followed = self._brews.get(session.id)
            if followed is not None and followed.insight is not None:
                found[session.id] = followed.insight
        others = [session for session in sessions if session.id not in found]
        for session, kept in zip(others, await self._made(others), strict=True):
            found[session.id] = kept.insight
        return found

    async def leading_device(self, session_id: int) -> int | None:
        """Return the id of the device whose series the figures are made of; None for an import."""
        followed = self._brews.get(session_id)
        if self._listener is not None:
            # Of a hundred brews in a row the first one takes the news, and the others cost nothing.
            is_new = self._failing or self._listener.has_topics
            if is_new or followed is None or followed.series is None or followed.is_stale:
                await self._look([session_id])
                followed = self._brews.get(session_id)
        if followed is not None and followed.series is not None:
            return followed.series.lead
        session = await self._store.sessions.get(session_id)
        return None if session is None else (await self._made([session]))[0].lead

    async def at(self, session: BrewSession, now: int, *, arrived_by: int | None = None) -> Insight:
        """Return the figures at a time; with `arrived_by`, of what had arrived by then (Unix seconds)."""
        background = await self._background(session)
        lines = await self._lines(session.id, now, arrived_by)
        return await asyncio.to_thread(lambda: BrewSeries(background, lines).insight(now, self._stops))

    def _wait_s(self) -> float:
        """Return the seconds until the next look without news."""
        if self._failing:
            return AGAIN_S
        due = [followed.not_before for followed in self._brews.values() if followed.is_stale]
        return min(max(min(due) - self._clock.monotonic(), 0.0) if due else LOOK_S, LOOK_S)

    async def _look(self, wanted: Collection[int] | None) -> None:
        """Follow what has changed: of the wanted brews at once, else as often as is good for the gateway.

        Figures stay as they were while the store is not available.
        """
        try:
            async with self._turn:
                await self._take_news()
            for session_id in list(self._brews) if wanted is None else wanted:
                async with self._turn:
                    await self._read_again(session_id, at_once=wanted is not None)
            await self._make(self._brews if wanted is None else wanted, KEPT_S if wanted else LOOK_S)
        except StoreUnavailable as error:
            if not (self._failing or self._is_over):
                log.warning("insight: figures stay as they are for now: %s", error)
            self._failing = True
        except Exception:  # of any kind: figures that cannot be made end no gateway
            if not self._failing:
                log.exception("insight: figures stay as they are: a look failed")
            self._failing = True
        else:
            if self._failing:
                log.info("insight: figures follow the readings again")
            self._failing = False

    async def _take_news(self) -> None:
        if self._listener is not None:
            self._news.note(self._listener.take())
        news = self._news
        if self._place is None:
            self._place = await self._store.figures.newest()
        if news.sessions or news.brews - self._brews.keys():
            await self._find_open()
        if news.arrivals or news.everything:
            await self._take_arrivals()
        for session_id, followed in self._brews.items():
            devices = frozenset() if followed.series is None else followed.series.devices
            if news.everything or session_id in news.brews or devices & news.devices:
                followed.is_stale = True
        # Only now: what was not done because the store failed is still to be done.
        self._news = News()

    async def _find_open(self) -> None:
        """Find the brews that run."""
        now, found = self._clock.now(), []
        for account in await self._store.accounts.all():
            found += [brew for brew in await self._store.figures.activity(account.id) if brew.is_running(now)]
        found.sort(key=lambda brew: (-brew.happened_at, brew.session_id))
        ids = {brew.session_id for brew in found[:BREWS]}
        for session in await self._store.sessions.all():
            if session.id not in ids:
                self._brews.pop(session.id, None)
            elif session.id not in self._brews:
                self._brews[session.id] = Followed(session)
            else:
                self._brews[session.id].session = session
        for gone in self._brews.keys() - ids:
            del self._brews[gone]

    async def _take_arrivals(self) -> None:
        """Put new readings into their series."""
        place = self._place or (0, b"")
        while rows := await self._store.figures.arrivals(place):
            put = partial(_put, dict(self._brews), rows, is_new=rows[0].seq > place[0])
            if len(rows) > AT_ONCE:
                await _in_thread(put)
            else:
                put()
            self._place = place = rows[-1].seq, rows[-1].oid

    async def _read_again(self, session_id: int, *, at_once: bool) -> None:
        followed = self._brews.get(session_id)
        begun = self._clock.monotonic()
        if followed is None or not followed.is_stale or (begun < followed.not_before and not at_once):
            return
        followed.is_stale = False
        try:
            background = await self._background(followed.session)
            lines = await self._lines(session_id, None, None)
            followed.series = await asyncio.to_thread(BrewSeries, background, lines)
        except ValueError:  # of a damaged row, perhaps: the others go on, and this one with its next news
            log.exception("insight: figures of brew session %d stay as they are", session_id)
            return
        except BaseException:
            followed.is_stale = True
            raise
        finally:
            took = self._clock.monotonic() - begun
            followed.not_before = begun + max(AGAIN_S, AGAIN_TIMES * took)
        followed.has_news = True

    async def _make(self, wanted: Collection[int], kept_s: float) -> None:
        """Make the figures of brews that have news, or whose figures are old."""
        now = int(self._clock.now())
        due = [
            (session_id, followed, followed.series)
            for session_id in wanted
            if (followed := self._brews.get(session_id)) is not None
            and followed.series is not None
            and (followed.has_news or followed.insight is None or not 0 <= now - followed.made_at < kept_s)
        ]
        while due:
            async with self._turn:
                made = await _in_thread(partial(self._insights, [series for _, _, series in due], now))
            for (session_id, followed, series), insight in zip(due, made, strict=False):
                if followed.series is not series:  # read again meanwhile
                    continue
                before, followed.insight = followed.insight, insight
                followed.made_at, followed.has_news = now, False
                if before is None or replace(before, now=now, day=insight.day) != insight:
                    self._notices.publish("insight", brew=session_id)
            due = due[len(made) :]

    def _insights(self, series: Sequence[BrewSeries], now: int) -> list[Insight]:
        """Make the figures of the first ones, in a thread, for `JOB_S`."""
        end, made = time.monotonic() + JOB_S, []
        for each in series:
            made.append(each.insight(now, self._stops))
            if time.monotonic() > end:
                break
        return made

    async def _made(self, sessions: Sequence[BrewSession]) -> list[Kept]:
        """Return the figures of brews that are not followed, kept where nothing has changed."""
        if not sessions:
            return []
        now = int(self._clock.now())
        tags = await self._store.figures.tags([session.id for session in sessions])
        made = []
        for session in sessions:
            kept, tag = self._kept.get(session.id), tags.get(session.id)
            ended = session.ended_at is not None or session.is_over
            fresh = kept is not None and (ended or 0 <= now - kept.made_at < KEPT_S)
            if kept is None or tag is None or kept.tag != tag or not fresh:
                background = await self._background(session)
                lines = await self._lines(session.id, None, None)
                async with self._turn:
                    kept = await asyncio.to_thread(self._keep, background, lines, tag, now, ended)
            self._kept[session.id] = kept
            self._kept.move_to_end(session.id)
            made.append(kept)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return made

    async def _background(self, session: BrewSession) -> Background:
        events = await self._store.events.of_session(session.id)
        return Background(session, events, await self._store.figures.expected(session.id))

    async def _lines(self, session_id: int, until: int | None, arrived_by: int | None) -> BrewLines:
        """Read the readings of a brew: the last `READ_S`, and the beginning."""
        lines = BrewLines()
        span = await self._store.series.span(session_id=session_id)
        if span is None:
            return lines
        first, last = span
        last = last if until is None else min(last, until)
        place, resume = FIRST_PLACE, last - READ_S
        while rows := await self._store.figures.samples(session_id, place, last, arrived_by=arrived_by):
            for row in rows:
                if row.at >= resume or row.at <= first + BEGINNING_S:
                    lines.add(row.device_id, row.at, row.sg, row.celsius)
            place = rows[-1].at, rows[-1].oid
            if first + BEGINNING_S < place[0] < resume:
                place = resume - 1, b""
        return lines

    def _keep(self, background: Background, lines: BrewLines, tag: str | None, now: int, ended: bool) -> Kept:
        """Make the figures of a brew that is not followed."""
        series = BrewSeries(background, lines)
        at = series.last_at if ended and series.last_at is not None else now
        return Kept(tag, now, series.insight(at, self._stops), series.lead)

    def _stops(self) -> bool:
        return self._is_over


def _put(brews: Mapping[int, Followed], rows: Sequence[NewSample], *, is_new: bool) -> None:
    """Put readings into the series of their brews; others than new ones may come a second time."""
    by_brew: defaultdict[int, list[NewSample]] = defaultdict(list)
    for row in rows:
        if row.session_id is not None and row.session_id in brews:
            by_brew[row.session_id].append(row)
    for session_id, news in by_brew.items():
        followed = brews[session_id]
        if followed.series is None or followed.is_stale or not is_new:
            followed.is_stale = True
            continue
        samples = [(row.device_id, Sample(row.at, row.sg, row.celsius)) for row in news]
        followed.is_stale = not followed.series.put(samples)
        followed.has_news = True


async def _in_thread(work: Callable[[], T]) -> T:
    """Return what a thread made. Who is cancelled waits for its end: no other one may use a series before."""
    made = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(made)
    except asyncio.CancelledError:
        await asyncio.wait([made])
        raise
