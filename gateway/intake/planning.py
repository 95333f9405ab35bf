"""How the numbers of a device's payloads become readings, found by trying: see `plan`."""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

from gateway.domain import units
from gateway.domain.device import Device, Inferences
from gateway.domain.objectid import new_object_id
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.drivers import decode, wire
from gateway.intake.cuts import HOT, Kind, cuts_of
from gateway.intake.normalise import (
    SCALED_SG_RANGES,
    Gravity,
    Temp,
    extra_of,
    fact_member,
    gravity_of,
    normalise,
    shown_of,
    temp_of,
    time_of,
)

NUMBER = r"-?(?:0|[1-9][0-9]{0,13})(?:\.[0-9]{1,15})?"
"""A number of JSON without an exponent, shorter than `wire.DIGITS_LIMIT`."""

MILLISECONDS = 1000
"""Milliseconds of a second, for clocks that count them."""

LATE_FACT = "device_time"
"""The fact that is there or not by the time of arrival."""

MUCH_LATER_S = 1e6
"""Seconds after which a driver takes any time in a payload for an old one; a plan must hold then, too."""

Values = tuple[str, ...]
"""The texts and the numbers of a payload, in its order."""


class Outcome(NamedTuple):
    """The result of the plain way."""

    report: Report
    reading: Reading
    inferred: Inferences


class Effect(NamedTuple):
    """The effect of the number at a place among the values, its limits, and the name of its fact.

    `tried` is the result with another number, in the payload `variant`.
    """

    place: int
    kind: Kind
    low: float = 0.0
    high: float = 0.0
    fact: str = ""
    variant: Payload | None = None
    tried: Outcome | None = None


class Plan(NamedTuple):
    """How the values of a device's payloads become readings.

    `fixed` are numbers that must stay as they are, `spans` the limits of the others, by their places.
    `gravity`, `temp`, `angle`, `ph` and `clock` are places of numbers, None for a value that does not change.
    `divisor` is the one of the gravity's text, `per_second` the one of the clock's time. `facts` is the
    format of the facts; a number that `keeps` its text stands there as sent. `key` is the one of the report's
    keys under which the device was found, `unknown` are the keys before it. `is_plain` means that the numbers
    follow from the texts alone.
    """

    report: Report
    device: Device
    key: str
    unknown: tuple[str, ...]
    reading: Reading
    fixed: tuple[tuple[int, str], ...]
    spans: tuple[tuple[int, float, float], ...]
    gravity: int | None
    gravity_before: Gravity
    divisor: int
    temp: int | None
    temp_before: Temp
    angle: int | None
    ph: int | None
    clock: int | None
    per_second: int
    facts: str | None
    fact_places: tuple[tuple[int, bool], ...]
    is_plain: bool

    def fits(self, values: Values) -> bool:
        """Return whether the plan holds for these values."""
        for place, text in self.fixed:
            if values[place] != text:
                return False
        for place, low, high in self.spans:  # noqa: SIM110 - a generator would cost as much as the checks
            if not low < float(values[place]) < high:
                return False
        return True

    def reading_of(self, values: Values, received_at: float) -> Reading | None:
        """Make the reading of values that the plan holds for; None if the device's clock is in doubt."""
        before, created_at = self.reading, int(received_at)
        if self.clock is not None:
            self.report.measured_at = float(values[self.clock]) / self.per_second
            created_at, suspect = time_of(self.report, received_at)
            if suspect:
                return None
        gravity, sg = before.gravity, before.sg
        if self.gravity is not None:
            gravity = values[self.gravity]
            value = float(gravity)
            if self.divisor != 1:
                gravity, value = units.scale_text(gravity, self.divisor), value / self.divisor
            if self.gravity_before.sg is not None:
                sg = units.to_sg(value, self.gravity_before.unit or "G")
        temp, celsius = before.temp, before.celsius
        if self.temp is not None:
            temp = values[self.temp]
            if celsius is not None:
                celsius = units.to_celsius(float(temp), before.temp_unit)
        facts, flags = self.facts, before.flags
        if facts is not None:
            facts %= tuple([
                text if "." not in (text := values[place]) or keeps else repr(float(text))
                for place, keeps in self.fact_places
            ])  # fmt: skip
        gravity_unit, shown_gravity, shown_temp = before.gravity_unit, None, None
        if not self.is_plain:
            shown = shown_of(
                self.device,
                self.gravity_before._replace(text=gravity, sg=None if self.gravity_before.sg is None else sg),
                self.temp_before._replace(text=temp),
                self.report.facts.get("angle") if self.angle is None else float(values[self.angle]),
                created_at,
            )
            found = [*self.report.flags, self.gravity_before.flag, self.temp_before.flag, *shown.flags]
            kept = [flag for flag in found if flag]
            flags = json.dumps(kept) if kept else None
            gravity_unit = shown.gravity_unit or "G"
            sg, celsius, shown_gravity, shown_temp = shown.sg, shown.celsius, shown.gravity, shown.temp
        return Reading(
            new_object_id(created_at),
            created_at,
            int(received_at * 1000),
            before.name,
            gravity,
            gravity_unit,
            temp,
            before.temp_unit,
            before.comment,
            before.beer,
            self.report.timepoint or units.serial_day(created_at),
            before.source,
            before.ip,
            sg,
            celsius,
            facts,
            flags,
            before.extra if self.ph is None else extra_of(values[self.ph]),
            shown_gravity,
            shown_temp,
        )


def only_report(payload: Payload) -> Report | None:
    """Return the report of a payload with nothing else in it, None for any other payload."""
    try:
        decoded = decode(payload)
    except Exception:  # no driver's, or our mistake: the long way tells which, and keeps it
        return None
    return decoded.reports[0] if len(decoded.reports) == 1 and decoded.trouble is None else None


def make_plan(
    payload: Payload, match: re.Match[str], numbers: Sequence[int], report: Report, device: Device
) -> Plan | list[int]:
    """Make the plan of a device from a payload: of the texts in `match`, some are `numbers`.

    Return the places of numbers that are part of an identity instead, if there are any; empty if no plan
    holds. `key` and `unknown` are left to the caller.
    """
    before = _outcome(payload, device)
    if before is None or float(before.report.temp or 0) >= HOT:
        return []
    effects = [_effect(payload, match, place, device, before) for place in numbers]
    if identities := [effect.place for effect in effects if effect.kind is Kind.IDENTITY]:
        return identities
    values, measured_at = match.groups(), before.report.measured_at
    by_kind = {effect.kind: effect.place for effect in effects}
    by_fact = {effect.fact: effect for effect in effects if effect.fact}
    clock = by_kind.get(Kind.CLOCK)
    if clock is None and measured_at is not None:
        return []
    gravity, temp = gravity_of(before.report, device), temp_of(before.report, device)
    divisors = [
        divisor
        for _, _, divisor in SCALED_SG_RANGES
        if before.report.gravity and gravity.text == units.scale_text(before.report.gravity, divisor)
    ]
    members = []
    for name, value in before.report.facts.items():
        effect = by_fact.get(name)
        if effect is None:
            members.append(fact_member(name, value).replace("%", "%%"))
        else:
            members.append(fact_member(name, "%s") if effect.kind is Kind.TEXT_FACT else f'"{name}":%s')
    plan = Plan(
        # Not the payload's own report, because a report with a clock changes with each payload.
        report=replace(before.report, known_as=report.known_as),
        device=device,
        key="",
        unknown=(),
        reading=before.reading,
        fixed=tuple((e.place, values[e.place]) for e in effects if e.kind is Kind.FIXED),
        spans=tuple((e.place, e.low, e.high) for e in effects if e.kind is not Kind.FIXED),
        gravity=by_kind.get(Kind.GRAVITY),
        gravity_before=gravity,
        divisor=divisors[0] if divisors else 1,
        temp=by_kind.get(Kind.TEMP),
        temp_before=temp,
        angle=by_fact["angle"].place if "angle" in by_fact else None,
        ph=by_fact["ph"].place if "ph" in by_fact else None,
        clock=clock,
        per_second=1 if clock is None or float(values[clock]) == measured_at else MILLISECONDS,
        facts=f"{{{','.join(members)}}}" if members else None,
        fact_places=tuple(
            (by_fact[name].place, by_fact[name].kind is Kind.TEXT_FACT)
            for name in before.report.facts
            if name in by_fact
        ),
        is_plain=device.settings.calibration.is_identity and not device.settings.excluded,
    )
    return plan if _holds(plan, payload, match, before, effects, device) else []


def _outcome(payload: Payload, device: Device) -> Outcome | None:
    # A new payload, because the fields that were read are remembered on it.
    report = only_report(replace(payload, fields=None))
    return None if report is None else Outcome(report, *normalise(report, device, payload))


def _effect(payload: Payload, match: re.Match[str], place: int, device: Device, before: Outcome) -> Effect:
    """Find the effect of the number at a place: try one that differs in its last digit."""
    number = match[place + 1]
    for digit in _neighbours(number[-1]):
        other = number[:-1] + digit
        start, end = match.span(place + 1)
        variant = replace(payload, body=f"{match.string[:start]}{other}{match.string[end:]}".encode())
        tried = _outcome(variant, device)
        kind, fact = _kind_of(before, tried, number, other)
        if kind is Kind.IDENTITY:
            return Effect(place, kind)
        cuts = cuts_of(kind, fact)
        above = bisect_left(cuts, float(number))
        if above < len(cuts) and cuts[above - 1] < float(other) < cuts[above] != float(number):
            return Effect(place, kind, cuts[above - 1], cuts[above], fact, variant, tried)
    return Effect(place, Kind.FIXED)


def _neighbours(digit: str) -> Iterator[str]:
    if digit != "9":
        yield str(int(digit) + 1)
    if digit != "0":
        yield str(int(digit) - 1)


def _kind_of(before: Outcome, tried: Outcome | None, was: str, now: str) -> tuple[Kind, str]:
    """Return the effect of a number that `was` and is another one `now`, and the name of a fact."""
    if tried is None:
        return Kind.FIXED, ""
    one, other = before.report, tried.report
    if (one.keys, one.shared_key) != (other.keys, other.shared_key):
        return Kind.IDENTITY, ""
    changed = {
        member.name for member in fields(Report) if getattr(one, member.name) != getattr(other, member.name)
    }
    if not changed:
        return Kind.UNREAD, ""
    if changed == {"gravity"} and (one.gravity, other.gravity) == (was, now):
        return Kind.GRAVITY, ""
    if changed == {"temp"} and (one.temp, other.temp) == (was, now):
        return Kind.TEMP, ""
    if changed == {"measured_at"}:
        times = one.measured_at, other.measured_at
        in_seconds = float(was), float(now)
        if times in (in_seconds, tuple(time / MILLISECONDS for time in in_seconds)):
            return Kind.CLOCK, ""
    if changed == {"facts"} and [*one.facts] == [*other.facts]:
        [name, *more] = [name for name in one.facts if one.facts[name] != other.facts[name]]
        if not more and name != LATE_FACT:
            pair = one.facts[name], other.facts[name]
            if pair == (was, now):
                return Kind.TEXT_FACT, name
            # As texts, because 5.0 equals 5.
            if repr(pair) == repr((wire.number({name: was}, name), wire.number({name: now}, name))):
                return Kind.FACT, name
    return Kind.FIXED, ""


def _holds(
    plan: Plan,
    payload: Payload,
    match: re.Match[str],
    before: Outcome,
    effects: Sequence[Effect],
    device: Device,
) -> bool:
    """Return whether the plan gives the plain way's readings: now, of the variants, and much later."""
    late = replace(payload, received_at=payload.received_at + MUCH_LATER_S)
    cases = [(payload, before), (late, _outcome(late, device))]
    cases += [(effect.variant, effect.tried) for effect in effects if effect.variant is not None]
    for each, outcome in cases:
        found = re.fullmatch(match.re, each.body.decode())
        if outcome is None or found is None or outcome.inferred != before.inferred:
            return False
        values = found.groups()
        made = plan.reading_of(values, each.received_at) if plan.fits(values) else None
        if made is None or made[1:] != outcome.reading[1:]:
            return False
    return True
