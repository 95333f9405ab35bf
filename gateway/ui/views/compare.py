"""The comparison of two to six brews by days since their beginnings."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from gateway.domain.brewsession import SessionEntry
from gateway.domain.texts import decimal_digits
from gateway.domain.units import SECONDS_PER_DAY
from gateway.services.figures import Figures
from gateway.ui import charts
from gateway.ui.brew_words import name_of, shown_figures
from gateway.ui.kept import kept_parts
from gateway.ui.pages import Page, Row, Visit

MOST = 6
"""Brews in one comparison at most: more lines cannot be told apart."""

OFFERED = 200
"""Brews that can be added from the list at most, the latest first."""


NAME_CHARACTERS = 20
"""Characters of a brew's name beside its line at most; the table has the whole name."""

DAYS = {"7d": 7, "14d": 14}
"""First days that can be looked at alone, because a long brew makes the others narrow."""


class Compared(NamedTuple):
    """A row of the table: the number of its line, its figures, and the address without it."""

    line: int
    name: str
    url: str
    remove: str
    og: str
    now: str
    abv: str
    attenuation: str
    day: str
    temp: str


async def show(visit: Visit) -> Page:
    """Show brews beside one another."""
    account_id = visit.viewer.account_id
    figures = visit.services.figures
    known = [*await figures.running(account_id), *await figures.finished(account_id)]
    asked = dict.fromkeys(int(text) for text in visit.request.query.getall("id", []) if _is_id(text))
    chosen = [number for number in asked if number in set(known)][:MOST]
    by_attenuation = visit.query.get("what") == "attenuation"
    days = visit.query.get("days", "") if visit.query.get("days") in DAYS else ""
    entries = await visit.store.sessions.entries(chosen)
    found = await figures.of_all([entry.session for entry in entries], visit.viewer.zone)
    others = [number for number in known if number not in chosen][:OFFERED]

    def address(
        ids: Sequence[int], what: str = "attenuation" if by_attenuation else "", first: str = days
    ) -> str:
        parts = [*(f"id={number}" for number in ids)]
        parts += [f"{name}={value}" for name, value in (("what", what), ("days", first)) if value]
        return f"{visit.url('compare')}{'?' if parts else ''}{'&'.join(parts)}"

    def without(session_id: int) -> list[int]:
        return [number for number in chosen if number != session_id]

    values = {
        "ids": chosen,
        "what": "attenuation" if by_attenuation else "",
        "days": days,
        "chart": await _drawn(visit, entries, found, by_attenuation, days) if len(entries) > 1 else None,
        "ranges": [
            (visit.t(f"compare.days.{name or 'all'}"), address(chosen, first=name), name == days)
            for name in (*DAYS, "")
        ],
        "rows": [
            _row(
                visit,
                n,
                entry,
                found[entry.session.id],
                address([i for i in chosen if i != entry.session.id]),
            )
            for n, entry in enumerate(entries, 1)
        ],
        "others": [(each.session.id, name_of(each)) for each in await visit.store.sessions.entries(others)],
        "may_add": len(chosen) < MOST and bool(others),
        "kinds": [
            (visit.t("compare.gravity"), address(chosen, ""), not by_attenuation),
            (visit.t("compare.attenuation"), address(chosen, "attenuation"), by_attenuation),
        ],
    }
    return Page("compare.html", visit.t("compare.title"), values, menu="compare")


def _is_id(text: str) -> bool:
    return decimal_digits(text) and len(text) < 16


def _row(visit: Visit, line: int, entry: SessionEntry, figures: Figures, remove: str) -> Compared:
    shown = shown_figures(figures, entry.session, visit.words, now=visit.now)
    return Compared(
        line=line,
        name=name_of(entry),
        url=visit.url("brew", id=entry.session.id),
        remove=remove,
        og=shown.og or "\u2013",
        now=str(shown.gravity.quantity),
        abv=str(shown.abv),
        attenuation=str(shown.attenuation),
        day=shown.day,
        temp=str(shown.temp.quantity),
    )


def _short(name: str) -> str:
    return name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}\u2026"


async def _drawn(
    visit: Visit,
    entries: Sequence[SessionEntry],
    found: Mapping[int, Figures],
    by_attenuation: bool,
    days: str,
) -> Markup:
    """Return both sizes of the chart, drawn anew only if something has changed."""
    viewer, sessions = visit.viewer, [entry.session for entry in entries]
    tags = await visit.store.figures.tags([session.id for session in sessions])
    units = viewer.gravity_unit, viewer.temp_unit, viewer.language
    shown = tuple(session.id for session in sessions), by_attenuation, days
    key = "compare", shown, units, tuple(tags.values())
    parts = kept_parts(visit.store)
    kept = parts.get(key) if tags else None
    if isinstance(kept, Markup):
        return kept
    drawn = Markup()
    for size in ("small", "large"):
        brews = []
        for session in sessions:
            began_at = found[session.id].began_at
            end = began_at + DAYS[days] * SECONDS_PER_DAY if days and began_at is not None else None
            points = charts.BUCKETS[size]
            series = await visit.services.series.of_session(session, began_at, end, points)
            brews.append((_short(session.batchcode), series, series.start if began_at is None else began_at))
        drawn += charts.compare(brews, visit.words, size=size, attenuation=by_attenuation)
    if tags:
        parts.put(key, drawn, len(drawn))
    return drawn


ROWS = (Row("GET", "/compare", show, "compare", "Two to six brews in one chart"),)
