"""What a fermentation does, in the viewer's words: phase, end, and what the brewer is asked."""

from typing import NamedTuple

from gateway.domain import times
from gateway.domain.brewsession import BrewSession
from gateway.services.figures import Figures
from gateway.ui.words import Quantity, Words

KINDS = {
    "lag": "quiet", "active": "good", "slowing": "good", "finished": "good", "stuck": "warn",
    "cold_crash": "quiet",
}  # fmt: skip
"""The sign of each phase."""

NAMED_DAYS = 6
"""Days ahead that are named by the day of the week."""

RISE_ASKED_S = 7 * 86_400
"""Seconds for which it is asked what made gravity rise."""

STILL_COMING = ("active", "slowing")
"""Phases in which it is told that the end is not yet known."""


class Fermentation(NamedTuple):
    """A fermentation in words, each empty if there is nothing to say. `smoothed` explains the figures.

    `phase` has its sign in `kind`. `ends` says when, or why that is not known; `short` only when. `hints` are
    sentences, `rise` asks about sugar.
    """

    phase: str
    kind: str
    ends: str
    short: str
    hints: tuple[str, ...]
    rise: str
    smoothed: str


def fermentation_of(figures: Figures, session: BrewSession, words: Words, now: float) -> Fermentation:
    """Return the fermentation of a brew in words."""
    insight, t = figures.insight, words.t
    phase, hints, rise, smoothed = insight.phase, [], "", ""
    if session.ended_at is not None:
        phase = None  # nobody asks any more what a beer does that is done
    ends = short = ""
    if phase in STILL_COMING:
        if insight.finish is not None:
            ends = short = until(insight.finish.early, insight.finish.late, words, now)
        elif insight.unknown is not None:
            ends = t("ferment.unknown", reason=t(f"ferment.unknown.{insight.unknown}"))
    gravity = words.gravity(insight.sg)
    if phase == "stuck" and figures.still_since is not None and insight.sg is not None:
        span = words.span((now - figures.still_since) // 3600 * 3600)
        hints.append(t("ferment.stuck", gravity=str(gravity), span=span))
    if phase == "finished" and insight.ended_high:
        final = "" if figures.final is None else str(words.gravity(figures.final))
        hints.append(t("ferment.high.recipe", final=final) if final else t("ferment.high"))
    if phase is not None and insight.cold_since is not None:
        key = "ferment.cold" if insight.crashed_at_sg is None else "ferment.cold.early"
        at = str(words.gravity(insight.crashed_at_sg))
        hints.append(t(key, when=words.moment(insight.cold_since), gravity=at))
    if phase is not None and insight.rise is not None and now - insight.rise.since <= RISE_ASKED_S:
        height = Quantity(words.rate(insight.rise.sg).number, gravity.unit)
        rise = t("ferment.rise", rise=str(height), when=words.moment(insight.rise.since))
    if insight.sg is not None and figures.gravity is not None:
        smoothed = t("ferment.smoothed", gravity=str(gravity))
    word = "" if phase is None else t(f"ferment.phase.{phase}")
    return Fermentation(word, KINDS.get(phase or "", ""), ends, short, tuple(hints), rise, smoothed)


def until(early: int, late: int, words: Words, now: float) -> str:
    """Return a span in the future in words, never to the minute."""
    begin, end = part_of_day(early, words, now), part_of_day(late, words, now)
    if early <= now:
        return words.t("ferment.ends.by", late=end)
    if begin == end:
        return words.t("ferment.ends.at", when=end)
    return words.t("ferment.ends.between", early=begin, late=end)


def part_of_day(at: float, words: Words, now: float) -> str:
    """Return a time as a day of the week and a part of it, or as a date if it is far away."""
    if at - now > NAMED_DAYS * 86_400:
        return words.day(at)
    day, part = times.part_of_day(words.local(at))
    return words.t(f"date.part.{part}", day=words.weekday(day.weekday()))
