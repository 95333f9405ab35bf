"""The rules about the phases of a brew. Pure.

The limits of phases are in `gateway/insight/phase.py`. A phase is entered once it was seen for 3 h, so these
rules hold at once.
"""

from collections.abc import Sequence
from dataclasses import replace

from gateway.domain.alarm import Alarm
from gateway.notify.look import (
    DAY_S,
    HOUR_S,
    NO_GRAVITY,
    Episode,
    Look,
    episodes,
    evidence_of,
    moment,
    of_brew,
    sg_text,
)
from gateway.notify.views import BrewView, Finding

LAG_H, COLD_LAG_H = 72, 96
"""Hours after pitching until which fermentation has begun, with an ale and with a lager yeast."""

SAME_S = 12 * HOUR_S
"""Two events of a rule within so many seconds are the same one: late readings move the hour of a phase."""

NEWS_S = DAY_S
"""Seconds in which the beginning of a fermentation, or of a cold crash, is news; later it is history."""


def _is_told(told: Sequence[Alarm], at: int) -> bool:
    return any(abs(alarm.evidence.get("at", alarm.fired_at or 0) - at) <= SAME_S for alarm in told)


def _history(look: Look, rule: str, past: Sequence[Episode], words: str) -> list[Finding]:
    """Return the episodes that are over and that nobody was told of: they are history."""
    found = []
    for one in past:
        if one.end is not None and not _is_told(look.told, one.start):
            text = f"{look.view.title} {words.format(sg_text(one.sg))}."
            evidence = {"at": one.start, "sg": one.sg} if one.sg else {"at": one.start}
            finding = of_brew(look.view, rule, True, since=one.start, text=text, evidence=evidence)
            found.append(replace(finding, note=True, late_until=one.end))
    return found


def started(look: Look) -> list[Finding]:
    """Tell once that fermentation has begun."""
    view, limit = look.view, "gravity has fallen by 2 points and falls by 2 points a day"
    first = next((one for one in episodes(view.insight.changes) if one.phase == "active"), None)
    if first is None:
        return [of_brew(view, "started", False, limit=limit, why_not="it has not begun")]
    if look.told:
        return [of_brew(view, "started", False, limit=limit, why_not="it was told", told=True)]
    is_late = look.now - first.start > NEWS_S
    finding = of_brew(view, "started", True, since=first.start, limit=limit, note=True)
    return [
        replace(
            finding,
            text=f"{view.title} has been fermenting since {moment(first.start)}.",
            evidence=evidence_of(view, first.start),
            late_until=first.start if is_late else None,
            why_not=f"it began {moment(first.start)}, which is no news" if is_late else "",
        )
    ]


def not_started(look: Look) -> list[Finding]:
    """Return whether fermentation should have begun."""
    view, figures = look.view, look.view.insight
    hours = look.setting.get("hours") or (COLD_LAG_H if view.cold_yeast else LAG_H)
    limit = f"still in the lag {hours:g} h after pitching"
    if figures.phase not in {None, "lag"}:
        ended = f"{view.title} ferments."
        return [of_brew(view, "not_started", False, limit=limit, why_not="it has begun", ended=ended)]
    if figures.day is None or figures.sg is None:
        return [of_brew(view, "not_started", None, limit=limit, why_not=NO_GRAVITY)]
    age_h = figures.day * 24
    is_late = age_h >= hours
    text = (
        f"{view.title} has not begun to ferment {age_h:.0f} h after pitching: gravity is "
        f"{sg_text(figures.sg)}. Look at the yeast and the temperature."
    )
    return [
        of_brew(
            view,
            "not_started",
            is_late,
            since=look.now - int((age_h - hours) * HOUR_S),
            limit=limit,
            text=text,
            why_not="" if is_late else f"only {age_h:.0f} h have passed",
            evidence=evidence_of(view, look.now, hours=round(age_h)),
        )
    ]


def stuck(look: Look) -> list[Finding]:
    """Return whether a beer stands still before its end, and when it did earlier."""
    view, figures = look.view, look.view.insight
    limit = "gravity falls less than 1.2 points in 36 h, and the beer is not done"
    all_of_them = episodes(figures.changes)
    found = _history(look, "stuck", [one for one in all_of_them if one.phase == "stuck"], "was stuck at {}")
    last = all_of_them[-1] if all_of_them else None
    if figures.sg is None:
        return [*found, of_brew(view, "stuck", None, limit=limit, why_not=NO_GRAVITY)]
    if last is None or last.phase != "stuck":
        ended = f"{view.title} ferments again: {sg_text(figures.sg)}."
        return [*found, of_brew(view, "stuck", False, limit=limit, why_not="it is not stuck", ended=ended)]
    fell = figures.fell_36h
    words = "" if fell is None else f" It fell by {max(fell, 0.0) * 1000:.1f} points in 36 h."
    share = "" if figures.attenuation is None else f", {figures.attenuation:.0f} % attenuated"
    text = f"{view.title} is stuck at {sg_text(figures.sg)}{share}, since {moment(last.start)}.{words}"
    evidence = evidence_of(view, last.start)
    stuck = of_brew(view, "stuck", True, since=last.start, limit=limit, text=text, evidence=evidence)
    return [*found, stuck]


def done(look: Look) -> list[Finding]:
    """Return whether a beer stands still at its end. It asks; no rule ends a brew."""
    view, figures = look.view, look.view.insight
    limit = "gravity falls less than 1.0 points in 48 h, and it is as low as it may be"
    notes = [alarm for alarm in look.told if "crashed_at_sg" in alarm.evidence]
    own = look._replace(told=[alarm for alarm in look.told if alarm not in notes])
    all_of_them = episodes(figures.changes)
    ends = [one for one in all_of_them if one.phase == "finished"]
    found = [*_history(own, "done", ends, "stood still at {}"), *_crash_note(look._replace(told=notes))]
    last = all_of_them[-1] if all_of_them else None
    if figures.sg is None:
        return [*found, of_brew(view, "done", None, limit=limit, why_not=NO_GRAVITY)]
    if last is None or last.phase != "finished":
        ended = f"{view.title} ferments again: {sg_text(figures.sg)}."
        return [*found, of_brew(view, "done", False, limit=limit, why_not="it is not done", ended=ended)]
    if not view.asks:
        why_not = "you said that it is not done yet"
        return [*found, of_brew(view, "done", False, limit=limit, why_not=why_not, ended=f"{why_not}.")]
    text, evidence = _done_text(view, last), evidence_of(view, last.start)
    return [*found, of_brew(view, "done", True, since=last.start, limit=limit, text=text, evidence=evidence)]


def _done_text(view: BrewView, last: Episode) -> str:
    figures, sg = view.insight, sg_text(view.insight.sg)
    if figures.ended_high:
        recipe = "" if view.recipe_fg is None else f", the recipe says {sg_text(view.recipe_fg)}"
        text = f"{view.title} ended high: {sg}{recipe}. It stands still since {moment(last.start)}."
    else:
        share = "" if figures.attenuation is None else f", {figures.attenuation:.0f} % attenuated"
        text = f"{view.title} stands still at {sg}{share}. Is it done?"
    if figures.cold_since is not None:
        text += f" It is cold since {moment(figures.cold_since)}: cold stops yeast."
    return text


def _crash_note(look: Look) -> list[Finding]:
    """Say once that a cold crash began before the beer was done."""
    view, figures = look.view, look.view.insight
    if figures.crashed_at_sg is None or figures.cold_since is None or look.told:
        return []
    sg, since = sg_text(figures.crashed_at_sg), figures.cold_since
    text = (
        f"{view.title} crashed at {sg}, not yet done. Cold stops yeast, "
        "and lets a spindle read 1 to 3 points too high."
    )
    evidence = {"at": since, "crashed_at_sg": round(figures.crashed_at_sg, 5)}
    note = of_brew(view, "done", True, since=since, limit="cold before it is done", text=text)
    late_until = since if look.now - since > NEWS_S else None
    return [replace(note, note=True, evidence=evidence, late_until=late_until)]


def resumed(look: Look) -> list[Finding]:
    """Return whether a beer falls again after it stood still."""
    view, figures, limit = look.view, look.view.insight, "gravity falls 2 points below where it was done"
    all_of_them = episodes(figures.changes)
    places = [place for place, one in enumerate(all_of_them) if one.resumed]
    if not places:
        return [of_brew(view, "resumed", False, limit=limit, why_not="it has not fallen again")]
    last = all_of_them[places[-1]]
    over = next((one.start for one in all_of_them[places[-1] :] if one.phase == "finished"), None)
    past = [all_of_them[place] for place in places[:-1]]
    if over is not None:
        past.append(last._replace(end=over))
    found = _history(look, "resumed", past, "fermented again, from {} on")
    if over is not None:
        ended = f"{view.title} stands still again."
        why_not = f"it stands still again since {moment(over)}"
        return [*found, of_brew(view, "resumed", False, limit=limit, why_not=why_not, ended=ended)]
    before = sg_text(all_of_them[places[-1] - 1].sg)
    finding = of_brew(
        view,
        "resumed",
        True,
        since=last.start,
        limit=limit,
        text=f"{view.title} ferments again: it stood still at {before}, now it is at {sg_text(figures.sg)}.",
        evidence=evidence_of(view, last.start),
        told=_is_told(look.told, last.start),
    )
    return [*found, replace(finding, why_not="it was told") if finding.told else finding]
