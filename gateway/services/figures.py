"""The figures of a brew, for the page, the alarms and other systems alike."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo

from gateway.clock import Clock
from gateway.domain import units
from gateway.domain.brewsession import PHASES_AFTER, BrewSession
from gateway.domain.units import SECONDS_PER_DAY
from gateway.store.protocol import Store
from gateway.store.records import BrewActivity, BrewFacts, FoundValue, MeanGravity

BY_HAND, MEASURED = "hand", "measured"
"""The origins of an original gravity."""

QUIET_S = 30 * SECONDS_PER_DAY
"""Seconds without any news after which a brew without a device no longer runs."""

ENOUGH = 3
"""Readings in some hours that make a median."""

STILL_S = 48 * 3600
"""Seconds without a change after which fermentation may be over."""

STILL_SG = 0.001
"""The most by which averages differ while nothing changes: a step of a Tilt, twice the noise of a spindle."""

STILL_ATTENUATION = 65.0
"""Percent of attenuation below which a brew that does not move is stuck, and not done."""

FEW_MEANS, MANY_MEANS = 9, 56
"""Averages of 6 hours: two days and the hours before them; two weeks, for a brew that does not move."""

ROUNDING = 1e-9
"""SG that the subtraction of two gravities may add."""

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
    """The original gravity (SG) and its origin: set by `hand`, or `measured` in the first 12 hours."""

    sg: float
    origin: str


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a brew; None where there is nothing to make a figure from.

    `gravity` and `final` are specific gravities, `temp` is in °C, `per_day` is the change of SG in a day,
    `attenuation` and `abv` are percent. `final` is the final gravity that the recipe expects.
    `day` counts from 1, the day of `began_at` (Unix seconds). `still_since` is the time (Unix seconds) since
    which gravity has not moved, if that is long enough; `seems_done` says that the beer is probably done.
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


class FigureService:
    """A service that makes figures. It keeps what the store told, until that changes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._kept: OrderedDict[int, tuple[str, Figures]] = OrderedDict()

    async def of(self, session: BrewSession, zone: tzinfo | None = None) -> Figures:
        """Return the figures of a brew; days are those of the zone, by default of the machine."""
        return (await self.of_all([session], zone))[session.id]

    async def of_all(
        self, sessions: Sequence[BrewSession], zone: tzinfo | None = None
    ) -> Mapping[int, Figures]:
        """Return the figures of brews by their ids, as `of` does."""
        figures = self._store.figures
        tags = await figures.tags([session.id for session in sessions])
        found = {}
        for session in sessions:
            tag, made = self._kept.get(session.id, ("", None))
            if made is not None and tag == tags.get(session.id):
                found[session.id] = made
        missing = [session for session in sessions if session.id not in found]
        facts = await figures.facts([session.id for session in missing], FEW_MEANS) if missing else {}
        for session in missing:
            made = figures_of(session, facts[session.id])
            if made.still_since is not None:
                made = _stillness(made, await figures.means(session.id, MANY_MEANS))
            found[session.id] = made
            if session.id in tags:
                self._kept[session.id] = tags[session.id], made
                self._kept.move_to_end(session.id)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        now = self._clock.now()
        return {
            session.id: replace(found[session.id], day=_day(session, found[session.id], now, zone))
            for session in sessions
        }

    async def running(self, account_id: int) -> list[int]:
        """Return the ids of the account's brews that run: those with a device first, then the newest ones."""
        now = self._clock.now()
        running = [brew for brew in await self._store.figures.activity(account_id) if is_running(brew, now)]
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
            if not is_running(brew, now) and wanted in brew.searched
        ]
        finished.sort(key=lambda brew: -(brew.ended_at or brew.happened_at))
        return [brew.session_id for brew in finished]


def is_running(brew: BrewActivity, now: float) -> bool:
    """Return whether a brew runs: it is not marked done, and a device is in it or there was news lately."""
    if brew.ended_at is not None:
        return False
    # A phase after fermenting ends a brew without a device, too: so earlier versions and other services do.
    over = brew.phase.strip().casefold() in PHASES_AFTER
    return brew.has_device or (not over and brew.happened_at > now - QUIET_S)


def figures_of(session: BrewSession, facts: BrewFacts) -> Figures:
    """Make the figures of a brew; without `day`, which depends on the time of day."""
    by_hand = session.og_by_hand
    original = None
    if by_hand is not None:
        original = Original(by_hand, BY_HAND)
    elif facts.first_hours:
        original = Original(median(facts.first_hours), MEASURED)
    gravity = _latest(facts.gravity)
    per_day = None
    if min(len(facts.recent), len(facts.day_before)) >= ENOUGH:
        per_day = median(facts.recent) - median(facts.day_before)
    attenuation = abv = None
    if original is not None and gravity is not None:
        abv = units.abv(original.sg, gravity.value)
        # Wort of no extract cannot be attenuated.
        if original.sg > 1:
            attenuation = 100 * (original.sg - gravity.value) / (original.sg - 1)
    made = Figures(
        session_id=session.id,
        gravity=gravity,
        temp=_latest(facts.temp),
        original=original,
        final=facts.final,
        attenuation=attenuation,
        abv=abv,
        per_day=per_day,
        day=None,
        began_at=facts.first_at,
        last_at=facts.last_at,
    )
    return _stillness(made, facts.means)


def median(values: Sequence[float]) -> float:
    """Return the middle value, or the average of the two in the middle."""
    # Not that of `statistics`, which imports a megabyte for it.
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _latest(found: FoundValue | None) -> Latest | None:
    return None if found is None else Latest(*found)


def _stillness(figures: Figures, means: Iterable[MeanGravity]) -> Figures:
    """Return the figures with the time since which nothing has changed, if that is long enough.

    Averages are compared, because single readings of a spindle differ by more than a day's change.
    """
    newest = lowest = highest = since = None
    for mean in means:
        if mean.sg is None:
            continue  # a gap says nothing
        lowest = mean.sg if lowest is None else min(lowest, mean.sg)
        highest = mean.sg if highest is None else max(highest, mean.sg)
        if highest - lowest > STILL_SG + ROUNDING:
            break
        newest, since = newest or mean.since, mean.since
    if newest is None or since is None or newest - since < STILL_S:
        return replace(figures, still_since=None, seems_done=False)
    attenuation = figures.attenuation
    done = attenuation is not None and attenuation >= STILL_ATTENUATION
    return replace(figures, still_since=since, seems_done=done)


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
