"""The series of a brew: which device leads, and what the insight is made of beside its readings. Pure."""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isnan, nan
from typing import NamedTuple

from gateway.domain.brew_event import HAND_READING, PITCHED, RISE, SUGAR, BrewEvent
from gateway.domain.brewsession import BrewSession
from gateway.errors import StoreUnavailable
from gateway.insight.progress import Progress
from gateway.insight.records import Facts, Insight, Sample
from gateway.store.records import Expected

HOUR_S = 3600

LEADING_H = 24
"""Hours whose readings decide which device leads."""

MORE = 1.25
"""So many times the readings of the leading device another one must have: two equal ones never take turns."""

HAND_BEFORE_S, HAND_AFTER_S = 24 * HOUR_S, 3 * HOUR_S
"""Seconds around the beginning in which a hand reading is the original gravity."""

COLD_YEAST_C = 15.0
"""°C below which the middle of a yeast's range makes it a cold one."""

SAME_RISE_S = 12 * HOUR_S
"""Seconds by which a rise may be found at another time when readings come late."""

MARKING = ("addition", "dry_hop")
"""Kinds of events that restart the windows of the rules."""

STEP_S = 2 * 86_400
"""Seconds of a brew that are looked at in one piece: some 10 ms."""

Device = int | None
"""The id of a device; None stands for readings of an import."""


class Lead(NamedTuple):
    """The device that leads from a time on (Unix seconds)."""

    since: int
    device: Device


class Line:
    """The readings of one device, by time, 24 bytes each."""

    __slots__ = ("at", "celsius", "sg")

    def __init__(self) -> None:
        self.at, self.sg, self.celsius = array("q"), array("d"), array("d")

    def add(self, at: int, sg: float | None, celsius: float | None) -> None:
        """Add a reading that is not older than the last one."""
        self.at.append(at)
        self.sg.append(nan if sg is None else sg)
        self.celsius.append(nan if celsius is None else celsius)

    def samples(self, since: int, before: int | None) -> Iterator[Sample]:
        """Yield the readings from a time on, up to one before another."""
        for at, sg, celsius in zip(self.at, self.sg, self.celsius, strict=True):
            if at >= since and (before is None or at < before):
                yield Sample(at, None if isnan(sg) else sg, None if isnan(celsius) else celsius)


@dataclass(slots=True)
class BrewLines:
    """The readings of a brew by device, and the devices of readings that do not count, too."""

    lines: dict[Device, Line] = field(default_factory=dict)
    devices: set[Device] = field(default_factory=set)

    def add(self, device: Device, at: int, sg: float | None, celsius: float | None) -> None:
        """Add a reading, by time."""
        self.devices.add(device)
        if sg is not None or celsius is not None:
            self.lines.setdefault(device, Line()).add(at, sg, celsius)

    def counts(self) -> dict[Device, dict[int, int]]:
        """Return the number of gravities by device and hour (Unix time // 3600).

        Without any gravity in the brew it is that of temperatures.
        """
        found: dict[Device, dict[int, int]] = {}
        has_gravity = any(not isnan(sg) for line in self.lines.values() for sg in line.sg)
        for device, line in self.lines.items():
            hours: defaultdict[int, int] = defaultdict(int)
            for at, sg in zip(line.at, line.sg, strict=True):
                if not has_gravity or not isnan(sg):
                    hours[at // HOUR_S] += 1
            if hours:
                found[device] = dict(hours)
        return found


def leads(counts: Mapping[Device, Mapping[int, int]], left: Mapping[Device, int]) -> list[Lead]:
    """Return the devices that led, one after the other; `left` are times at which devices left the brew.

    Each hour is looked at when it is over, so that a restart finds the same ones: the device with most
    readings in 24 hours leads; the present one stays until another has a quarter more. One that has left
    leads no longer.
    """
    if not counts:
        return []
    hours = sorted({hour for each in counts.values() for hour in each})
    looks = hours[:1]
    for before, hour in pairwise(hours):
        # In a longer gap nothing changes any more once all windows are empty.
        looks += range(before, min(before + LEADING_H, hour))
    found: list[Lead] = []
    for hour in looks if len(counts) > 1 else looks[:1]:
        sums = {
            device: sum(each.get(hour - back, 0) for back in range(LEADING_H))
            for device, each in counts.items()
            if device not in left or hour <= left[device] // HOUR_S
        }
        best = max(sums, key=lambda device: sums[device], default=None)
        if best not in sums:
            continue
        now = found[-1].device if found else best
        if not found:
            found.append(Lead(0, best))
        elif sums[best] > MORE * sums.get(now, 0):
            last = max((each for each in counts[now] if each <= hour), default=hour)
            found.append(Lead((last + 1) * HOUR_S, best))
    return found


@dataclass(frozen=True, slots=True)
class Background:
    """What is known of a brew beside its readings."""

    session: BrewSession
    events: Sequence[BrewEvent]
    expected: Expected

    def knows_rise(self, since: int) -> bool:
        """Return whether the brewer said what a rise of gravity was."""
        rises = [int(event.facts[RISE]) for event in self.events if RISE in event.facts]
        return any(abs(rise - since) <= SAME_RISE_S for rise in rises)

    def left(self) -> dict[Device, int]:
        """Return when devices left the brew that did not come back."""
        found: dict[Device, int] = {}
        for event in sorted(self.events, key=lambda event: (event.at, event.id)):
            if event.kind == "device_out":
                found[event.facts.get("device_id")] = event.at
            elif event.kind == "device_in":
                found.pop(event.facts.get("device_id"), None)
        return found

    def facts(self, first_at: int | None) -> Facts:
        """Return the facts of the brew, whose first reading is of that time."""
        events = sorted(self.events, key=lambda event: (event.at, event.id))
        pitched = [event.at for event in events if event.kind == PITCHED]
        by_hand = [event for event in events if event.kind == HAND_READING and event.sg is not None]
        begin = pitched[0] if pitched else first_at
        if begin is None and by_hand:
            begin = by_hand[0].at
        measured = None
        if begin is not None:
            around = range(begin - HAND_BEFORE_S, begin + HAND_AFTER_S + 1)
            measured = next((event.sg for event in by_hand if event.at in around), None)
        low, high = self.expected.yeast_low_c, self.expected.yeast_high_c
        range_c = [value for value in (low, high) if value is not None]
        return Facts(
            og_by_hand=self.session.og_by_hand,
            og_measured=measured,
            recipe_og=self.expected.og,
            recipe_fg=self.expected.fg,
            pitched_at=begin,
            cold_yeast=bool(range_c) and sum(range_c) / len(range_c) < COLD_YEAST_C,
            marks=tuple(sorted([*pitched[1:], *(event.at for event in events if event.kind in MARKING)])),
            sugar_sg=sum(float(event.facts.get(SUGAR, 0.0)) for event in events),
        )


class Stopped(StoreUnavailable):
    """The gateway stops, and nobody waits for the figures any more."""


class BrewSeries:
    """A brew with the progress of the device that leads."""

    def __init__(self, background: Background, lines: BrewLines) -> None:
        """Choose the leading device and put its readings in."""
        self.background = background
        self.devices = frozenset(lines.devices)
        self.leads = leads(lines.counts(), background.left())
        chosen = background.session.lead_device
        if chosen in lines.lines and chosen is not None:
            begin = lines.lines[chosen].at[0]
            self.leads = [lead for lead in self.leads if lead.since < begin and lead.device != chosen]
            self.leads.append(Lead(begin if self.leads else 0, chosen))
        self.first_at = lines.lines[self.leads[0].device].at[0] if self.leads else None
        facts = background.facts(self.first_at)
        self.progress = Progress(replace(facts, swaps=tuple(lead.since for lead in self.leads[1:])))
        self._looked_at = self.first_at
        self.last_at = max((line.at[-1] for line in lines.lines.values()), default=None)
        for place, lead in enumerate(self.leads, 1):
            before = self.leads[place].since if place < len(self.leads) else None
            self.progress.put(lines.lines[lead.device].samples(lead.since, before))

    @property
    def lead(self) -> Device:
        """Return the device that leads now."""
        return self.leads[-1].device if self.leads else None

    def put(self, samples: Iterable[tuple[Device, Sample]]) -> bool:
        """Add new readings; return False if the brew must be read again.

        Another device may lead now, or the brew began earlier.
        """
        mine = []
        for device, sample in samples:
            if device not in self.devices or self.first_at is None or sample.at < self.first_at:
                return False
            if len(self.devices) > 1 and sample.at // HOUR_S != (self.last_at or 0) // HOUR_S:
                return False
            if sample.sg is not None or sample.temp_c is not None:
                self.last_at = max(self.last_at or 0, sample.at)
                if device == self.lead:
                    mine.append(sample)
        self.progress.put(mine)
        return True

    def insight(self, now: int, is_over: Callable[[], bool] = lambda: False) -> Insight:
        """Return the figures at a time. A rise that the brewer has explained is none any more.

        Weeks that nobody has looked at take 100 ms and more; `Stopped` as soon as `is_over` says so.
        """
        for at in range(now if self._looked_at is None else self._looked_at, now, STEP_S):
            if is_over():
                raise Stopped("the gateway stops")
            self.progress.insight(at)
        self._looked_at = now
        made = self.progress.insight(now)
        if made.rise is not None and self.background.knows_rise(made.rise.since):
            made = replace(made, rise=None)
        return made
