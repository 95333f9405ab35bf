"""What the page shows of a brew: its insight, the last reading, the day, and which brews run."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, tzinfo

from gateway.clock import Clock
from gateway.domain.brewsession import BrewSession
from gateway.insight import figures as formulas
from gateway.insight.records import Insight
from gateway.services.insight import InsightService
from gateway.store.protocol import Store
from gateway.store.records import QUIET_S, BrewFacts, FoundValue

BY_HAND, ESTIMATED = "hand", "recipe"
"""Origins of an original gravity: a person, and the recipe, which only expects it."""

STILL_S = {"finished": 48 * 3600, "stuck": 36 * 3600}
"""Seconds for which gravity had not moved when a phase was entered."""

KEPT = 500
"""Brews whose facts are kept in memory, 1 kB each at most."""


@dataclass(frozen=True, slots=True)
class Latest:
    """A value and its time (Unix seconds). `by_hand` says that a person measured it."""

    value: float
    at: int
    device_id: int | None = None
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Original:
    """The original gravity (SG) and its origin, in the words of the insight."""

    sg: float
    origin: str


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a brew; None where there is nothing to make a figure from.

    `gravity` and `temp` are the last reading's, SG and °C. `original`, `attenuation` and `abv` (percent) and
    `per_day` (SG) are those of the insight, which smooths; of a brew without a current gravity, attenuation
    and alcohol are those of the last reading. `final` is the final gravity that the recipe expects. `day`
    counts from 1, the day of `began_at` (Unix seconds). `still_since` is the time (Unix seconds) since which
    gravity has not moved at least; `seems_done` says that fermentation is over.
    """

    session_id: int
    gravity: Latest | None
    temp: Latest | None
    original: Original | None
    final: float | None
    attenuation: float | None
    abv: float | None
    per_day: float | None
    day: int | None
    began_at: int | None
    last_at: int | None
    still_since: int | None = None
    seems_done: bool = False
    insight: Insight = field(default_factory=lambda: Insight(0))


class FigureService:
    """A service that makes figures. It keeps what the store told, until that changes."""

    def __init__(self, store: Store, insight: InsightService, clock: Clock) -> None:
        self._store = store
        self._insight = insight
        self._clock = clock
        self._kept: OrderedDict[int, tuple[str, BrewFacts]] = OrderedDict()

    async def of(self, session: BrewSession, zone: tzinfo | None = None) -> Figures:
        """Return the figures of a brew; days are those of the zone, by default of the machine."""
        return (await self.of_all([session], zone))[session.id]

    async def of_all(
        self, sessions: Sequence[BrewSession], zone: tzinfo | None = None
    ) -> Mapping[int, Figures]:
        """Return the figures of brews by their ids, as `of` does."""
        figures = self._store.figures
        tags = await figures.tags([session.id for session in sessions])
        found: dict[int, BrewFacts] = {}
        for session in sessions:
            tag, facts = self._kept.get(session.id, ("", None))
            if facts is not None and tag == tags.get(session.id):
                found[session.id] = facts
        missing = [session.id for session in sessions if session.id not in found]
        if missing:
            found |= await figures.facts(missing)
        for session_id in missing:
            if session_id in tags:
                self._kept[session_id] = tags[session_id], found[session_id]
                self._kept.move_to_end(session_id)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        insights, now = await self._insight.of_all(sessions), self._clock.now()
        made = {}
        for session in sessions:
            figure = figures_of(session, found[session.id], insights[session.id])
            made[session.id] = replace(figure, day=_day(session, figure, now, zone))
        return made

    async def running(self, account_id: int) -> list[int]:
        """Return the ids of the account's brews that run: those with a device first, then the newest ones."""
        now = self._clock.now()
        running = [brew for brew in await self._store.figures.activity(account_id) if brew.is_running(now)]
        # Not by the latest reading: the order would change with each one.
        running.sort(key=lambda brew: (not brew.has_device, -brew.session_id))
        return [brew.session_id for brew in running]

    async def finished(self, account_id: int, searched: str = "") -> list[int]:
        """Return the ids of the account's finished brews, the last one first.

        `searched` is part of the batch code or of the recipe's title, in any case.
        """
        now, wanted = self._clock.now(), searched.strip().casefold()
        finished = [
            brew
            for brew in await self._store.figures.activity(account_id)
            if not brew.is_running(now) and wanted in brew.searched
        ]
        finished.sort(key=lambda brew: -(brew.ended_at or brew.happened_at))
        return [brew.session_id for brew in finished]


def figures_of(session: BrewSession, facts: BrewFacts, insight: Insight) -> Figures:
    """Make the figures of a brew; without `day`, which depends on the time of day."""
    gravity, og = _latest(facts.gravity), insight.og
    attenuation, abv = insight.attenuation, insight.abv
    if insight.sg is None and gravity is not None and og is not None and not og.is_estimate:
        attenuation = formulas.attenuation(og.sg, gravity.value)
        abv = formulas.abv(og.sg, gravity.value)[0]
    done = is_done(insight)
    still = STILL_S["finished"] if done else STILL_S.get(insight.phase or "")
    return Figures(
        session_id=session.id,
        gravity=gravity,
        temp=_latest(facts.temp),
        original=None if og is None else Original(og.sg, og.origin),
        final=facts.final,
        attenuation=attenuation,
        abv=abv,
        per_day=insight.rate,
        day=None,
        began_at=facts.first_at,
        last_at=facts.last_at,
        still_since=None if still is None or insight.phase_since is None else _entered(insight) - still,
        seems_done=done,
        insight=insight,
    )


def is_done(insight: Insight) -> bool:
    """Return whether fermentation is over, also where the beer was cooled since."""
    if insight.phase == "cold_crash":
        return len(insight.changes) > 1 and insight.changes[-2].phase == "finished"
    return insight.phase == "finished"


def _entered(insight: Insight) -> int:
    """Return the time at which the phase was entered, before a cold crash."""
    if insight.phase == "cold_crash" and len(insight.changes) > 1:
        return insight.changes[-2].at
    return insight.phase_since or 0


def _latest(found: FoundValue | None) -> Latest | None:
    return None if found is None else Latest(*found)


def _day(session: BrewSession, figures: Figures, now: float, zone: tzinfo | None) -> int | None:
    """Return the number of the day in the brew's life, today or on its last day; None if none has begun."""
    until, last = now, figures.last_at
    if session.ended_at is not None:
        until = session.ended_at
    elif last is not None and now - last > QUIET_S:
        until = last
    first: date
    if figures.began_at is not None:
        first = datetime.fromtimestamp(figures.began_at, zone).date()
    else:
        try:
            first = date.fromisoformat(session.userdate)
        except ValueError:
            return None
    return max((datetime.fromtimestamp(until, zone).date() - first).days, 0) + 1
