"""How the numbers of a device's payloads become readings, found by trying: see `plan`."""

import json
import math
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from enum import Enum
from typing import NamedTuple

from gateway.domain import units
from gateway.domain.device import Device, Inferences
from gateway.domain.objectid import new_object_id
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.domain.report import Report
from gateway.drivers import blynk, brewpiless, decode, fill, pressuremon, thingspeak, tilt_tools, tilts, wire
from gateway.intake import normalise as normalising
from gateway.intake.normalise import (
    Gravity,
    Temp,
    fact_member,
    gravity_of,
    normalise,
    shown_of,
    temp_of,
)

NUMBER = r"-?(?:0|[1-9][0-9]{0,13})(?:\.[0-9]{1,15})?"
"""A number of JSON without an exponent, shorter than `wire.DIGITS_LIMIT`."""

MUCH_LATER_S = 1e6
"""Seconds after which a driver takes any time in a payload for an old one; a plan must hold then, too."""

Values = tuple[str, ...]
"""The texts and the numbers of a payload, in its order."""


def _in_both_units(*celsius: float) -> Iterator[float]:
    for figure in celsius:
        yield from (figure, units.celsius_to_fahrenheit(figure))


def _around(*figures: float) -> Iterator[float]:
    """Yield the limits of sentinels, which firmware and changes of unit round."""
    for figure in figures:
        yield from (figure - units.SENTINEL_TOLERANCE, figure + units.SENTINEL_TOLERANCE)


HOT = units.fahrenheit_to_celsius(tilts.HIGH_RESOLUTION_FAHRENHEIT)
"""The figure of a temperature, in any unit, from which on a payload has no plan.

From there on the gravity may be a Tilt Pro's, times 10. Below, no limit of a gravity depends on temperatures.
"""

GRAVITY_CUTS = sorted({
    -math.inf, 0.0, math.inf,
    *(limit for low, high, _ in normalising.SCALED_SG_RANGES for limit in (low, high)),
    *(limit for limits in normalising.BELIEVED.values() for limit in limits),
    *normalising.PLATO_RANGE, *normalising.PERHAPS_SG, *units.TYPICAL_SG,
    tilt_tools.PYTILT_SG_FROM, blynk.LEAST_GRAVITY, blynk.MOST_GRAVITY,
    brewpiless.NO_GRAVITY_SG - 5e-5, brewpiless.NO_GRAVITY_SG + 5e-5, brewpiless.NO_GRAVITY_PLATO,
})  # fmt: skip
"""Figures of a gravity at which a driver or `normalise` decides otherwise."""

SENSOR_CUTS = {
    0.0, HOT, *_in_both_units(wire.NO_SENSOR_BELOW_CELSIUS),
    *_in_both_units(*_around(units.POWER_ON_C)),
    *_around(*(figure for figures in normalising.SENTINELS.values() for figure in figures)),
}  # fmt: skip
"""Figures of any temperature that are those of a broken sensor."""

TEMP_CUTS = sorted(cut for cut in {
    -math.inf, *SENSOR_CUTS,
    *normalising.KELVIN_RANGE, normalising.FAHRENHEIT_FROM, normalising.CELSIUS_BELOW,
    normalising.SENDS_FAHRENHEIT_CELSIUS_BELOW, *_in_both_units(*normalising.BELIEVED_CELSIUS),
    tilt_tools.CELSIUS_BELOW,
} if cut <= HOT)  # fmt: skip
"""Figures of the beer's temperature at which a driver or `normalise` decides otherwise."""

FACT_CUTS = {
    "angle": (*brewpiless.TILT_SG, blynk.MOST_ANGLE_DEGREE),
    "battery": (fill.BATTERY_VOLT_LIMIT, *thingspeak.CELL_VOLT),
    "battery_percent": (fill.BATTERY_VOLT_LIMIT, *thingspeak.CELL_VOLT),
    "rssi": thingspeak.SIGNAL_DBM,
}
"""Figures of further numbers, beside 0, at which a driver decides otherwise."""

NO_PLAIN_FACTS = frozenset({"device_time", "ph"})
"""Facts that stand elsewhere in the reading, too, or depend on the time of arrival."""

TEXT_FACT_CUTS = sorted({
    -math.inf, math.inf, *SENSOR_CUTS,
    *(sign * (1 - pressuremon.NOT_FITTED_TOLERANCE) for sign in pressuremon.NOT_FITTED),
    *(sign / (1 - pressuremon.NOT_FITTED_TOLERANCE) for sign in pressuremon.NOT_FITTED),
})  # fmt: skip
"""Figures of a further number whose text is kept, such as a pressure or a second temperature."""


ALL_CUTS = sorted(
    {*GRAVITY_CUTS, *TEMP_CUTS, *TEXT_FACT_CUTS, *(cut for cuts in FACT_CUTS.values() for cut in cuts)}
)


class Kind(Enum):
    """The effect of a number."""

    FIXED = "it must stay as it is"
    IDENTITY = "it is part of an identity"
    UNREAD = "none"
    GRAVITY = "the text of the gravity"
    TEMP = "the text of the temperature"
    FACT = "a number among the facts"
    TEXT_FACT = "a number among the facts that keeps its text"


def _cuts_of(kind: Kind, fact: str) -> Sequence[float]:
    match kind:
        case Kind.GRAVITY:
            return GRAVITY_CUTS
        case Kind.TEMP:
            return TEMP_CUTS
        case Kind.TEXT_FACT:
            return TEXT_FACT_CUTS
        case Kind.FACT:
            return sorted({-math.inf, 0.0, *FACT_CUTS.get(fact, ()), math.inf})
        case Kind.UNREAD:
            return ALL_CUTS
    return ()


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
    `gravity`, `temp` and `angle` are places of numbers, None for a value that does not change. `divisor` is
    the one of the gravity's text. `facts` is the format of the facts; a number that `keeps` its text stands
    there as sent. `key` is the one of the report's keys under which the device was found, `unknown` are the
    keys before it. `is_plain` means that the numbers follow from the texts alone.
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

    def reading_of(self, values: Values, received_at: float) -> Reading:
        """Make the reading of values that the plan holds for."""
        before, created_at = self.reading, int(received_at)
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
            before.extra,
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
    if before is None or before.report.measured_at is not None or float(before.report.temp or 0) >= HOT:
        return []
    effects = [_effect(payload, match, place, device, before) for place in numbers]
    if identities := [effect.place for effect in effects if effect.kind is Kind.IDENTITY]:
        return identities
    values = match.groups()
    by_kind = {effect.kind: effect.place for effect in effects}
    by_fact = {effect.fact: effect for effect in effects if effect.fact}
    gravity, temp = gravity_of(before.report, device), temp_of(before.report, device)
    divisors = [
        divisor
        for _, _, divisor in normalising.SCALED_SG_RANGES
        if before.report.gravity and gravity.text == units.scale_text(before.report.gravity, divisor)
    ]
    members = []
    for name, value in before.report.facts.items():
        effect = by_fact.get(name)
        if effect is None:
            members.append(fact_member(name, value).replace("%", "%%"))
        else:
            members.append(fact_member(name, "%s") if effect.kind is Kind.TEXT_FACT else f'"{name}":%s')
    angle = by_fact.get("angle")
    plan = Plan(
        report=report,
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
        angle=None if angle is None else angle.place,
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
        cuts = _cuts_of(kind, fact)
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
    if changed == {"facts"} and [*one.facts] == [*other.facts]:
        [name, *more] = [name for name in one.facts if one.facts[name] != other.facts[name]]
        if not more and name not in NO_PLAIN_FACTS:
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
        if not plan.fits(values) or plan.reading_of(values, each.received_at)[1:] != outcome.reading[1:]:
            return False
    return True
