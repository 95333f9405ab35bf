"""The page of one brew: figures, chart, time line, who reports, what was sent on."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aiohttp import web

from gateway.domain.brewsession import BrewSession, SessionEntry
from gateway.domain.device import Device
from gateway.services.alarm_subjects import of_brew
from gateway.services.figures import Figures
from gateway.services.sending import BrewSending
from gateway.services.series import Series, coarser
from gateway.ui import charts
from gateway.ui.alarm_words import SEEN, one, own_alarms
from gateway.ui.brew_words import is_silent, link, name_of, own_brew, shown_figures
from gateway.ui.kept import kept_parts
from gateway.ui.pages import Page, Part, Row, Visit
from gateway.ui.ranges import ALL, RANGES, Range, range_of
from gateway.ui.words import Ago


class Reporter(NamedTuple):
    """A device that reports into the brew, and since when; `silent` is a sentence if it no longer does."""

    name: str
    url: str
    since: str
    silent: str


class Sent(NamedTuple):
    """What a target has of the brew: counts in words, the state and its sign."""

    target: str
    counts: str
    state: str
    sign: str
    newest: Ago | None
    reason: str


CHART_QUERY = ("range", "from", "to", "smooth", "left")
"""Names in the query of a brew's page that are for its chart."""

SWITCHES = ("smooth", "left")
"""Choices of how the chart is drawn, each on or off."""

SIGNS = {
    "well": "good", "sent": "good", "waiting": "good", "partly": "warn", "not_taken": "warn",
    "retries": "warn", "held": "warn", "blocked": "bad", "paused": "quiet", "off": "quiet", "ended": "quiet",
}  # fmt: skip
"""The sign of each kind of a brew's state at a target."""


async def show(visit: Visit) -> Page:
    """Show a brew."""
    entry = await own_brew(visit)
    session, viewer = entry.session, visit.viewer
    shown = await _figures(visit, session)
    number = session.id
    wanted = {name: visit.query[name] for name in CHART_QUERY if name in visit.query}
    values = {
        "id": session.id,
        "phase": session.phase,
        "figures": await visit.include("brew.figures", id=number),
        "chart": await visit.include("brew.chart", wanted, id=number),
        "timeline": await visit.include("brew.timeline", id=number) if visit.has("brew.timeline") else "",
        "sending": await visit.include("brew.sending", id=number) if viewer.is_owner else "",
        "photos": await visit.include("brew.photos", id=number) if visit.has("brew.photos") else "",
        "recipe": link(visit, "recipe", id=session.recipe_id) if session.recipe_id else "",
        "recipe_title": entry.recipe_title,
        "brewed": session.userdate,
        "notes": session.notes or "",
        "ended": "" if session.ended_at is None else visit.words.moment(session.ended_at),
    }
    news = str(visit.words.gravity(shown.gravity.value).number) if shown.gravity else ""
    return Page("brew.html", name_of(entry), values, menu="brews", news=news)


async def _figures(visit: Visit, session: BrewSession) -> Figures:
    return await visit.services.figures.of(session, visit.viewer.zone)


async def _inside(visit: Visit, session: BrewSession) -> list[Device]:
    return [device for device in await visit.store.devices.all() if device.session_id == session.id]


async def figures(visit: Visit) -> Part:
    """Show the figures of a brew, the question whether it is done, and what is missing."""
    entry = await own_brew(visit)
    session, devices = entry.session, await _inside(visit, entry.session)
    found, runs = await _figures(visit, session), session.ended_at is None
    values = {
        "id": session.id,
        "figures": shown_figures(found, session, visit.words, now=visit.now, devices=devices),
        "reporters": await _reporters(visit, session, devices, found),
        "missing": _missing(visit, session, devices, found),
        "put_in": visit.url("brews") if visit.viewer.is_owner and runs and not devices else "",
        "set_og": link(visit, "brew.og", id=session.id),
        "done": link(visit, "brew.done", id=session.id),
        "sugar": link(visit, "brew.sugar", id=session.id),
        "set_limits": await _set_limits(visit, session) if runs and devices else "",
        "alarms": [one(visit, each) for each in of_brew(own_alarms(visit, SEEN), session.id, devices)],
    }
    return Part("parts/figures.html", (f"brew:{session.id}",), values)


async def _set_limits(visit: Visit, session: BrewSession) -> str:
    """Return the page that sets limits of temperature, if nobody has named any, nor has the recipe."""
    from gateway.notify.gather import RecipeFacts  # here, because a page that nobody asks for costs nothing

    setting = visit.services.alarms.setting_of("temperature", brew=session.id)
    if not visit.viewer.may_change or setting is None or setting.keys() & {"lo", "hi"}:
        return ""
    recipe = await visit.store.recipes.get(session.recipe_id) if session.recipe_id else None
    known = RecipeFacts(recipe).lo is not None
    return "" if known else visit.url("alarms.rule", {"for": f"brew:{session.id}"}, rule="temperature")


def _missing(visit: Visit, session: BrewSession, devices: Sequence[Device], found: Figures) -> str:
    """Return what is missing for a gravity, empty if nothing is."""
    if found.gravity is not None:
        return ""
    names = ", ".join(device.title for device in devices)
    if found.last_at is not None:
        return visit.t("brew.missing.gravity")
    if devices:
        return visit.t("brew.missing.silent", devices=names)
    return visit.t("brew.missing.ended" if session.ended_at is not None else "brew.missing.device")


async def _reporters(
    visit: Visit, session: BrewSession, devices: Sequence[Device], found: Figures
) -> list[Reporter]:
    if not devices:
        return []
    since: dict[int, int] = {}
    for event in await visit.services.timeline.events(session):
        if event.kind == "device_in" and isinstance(number := event.facts.get("device_id"), int):
            since.setdefault(number, event.at)
    words, made = visit.words, []
    for device in devices:
        last, silent = found.gravity, ""
        if last is not None and last.device_id == device.id and is_silent(device, last.at, visit.now):
            silent = visit.t("brew.silent", device=device.title, span=words.span(visit.now - last.at))
        at = since.get(device.id)
        made.append(
            Reporter(
                name=device.title,
                url=link(visit, "device", id=device.id) if visit.viewer.is_owner else "",
                since="" if at is None else words.t("brew.since", when=words.moment(at)),
                silent=silent,
            )
        )
    return made


async def chart(visit: Visit) -> Part:
    """Show the chart of a brew over a range of time."""
    entry = await own_brew(visit)
    session, words = entry.session, visit.words
    found = await _figures(visit, session)
    last_at = await _last_at(visit, session, found)
    chosen = range_of(visit.query, visit.viewer.zone, last_at)
    options = charts.Options(median="smooth" in visit.query, left_out="left" in visit.query)
    drawn, left_out = None, 0
    if last_at is not None:
        drawn, left_out = await _drawn(visit, entry, found, chosen, options, last_at)
    begin, end = chosen.typed(visit.viewer.zone)
    on = {name: "1" for name in SWITCHES if name in visit.query}

    def address(query: Mapping[str, str]) -> str:
        return visit.url("brew", query, id=session.id)

    def switched(name: str) -> str:
        others = {other: "1" for other in on if other != name}
        return address({**chosen.query, **others, **({} if name in on else {name: "1"})})

    values = {
        "id": session.id,
        "chart": drawn,
        "ranges": [
            (words.t(f"brew.range.{name}"), address({"range": name, **on}), name == chosen.name)
            for name in (*RANGES, ALL)
        ],
        "begin": begin,
        "end": end,
        "series": visit.url("brew.series", chosen.query, id=session.id),
        "leave_out": _leave_out(visit, found),
        "empty": drawn is not None and not drawn.rows,
        "everything": address({}),
        "switches": [
            (words.t(f"brew.{name}.{'off' if name in on else 'on'}", n=left_out), switched(name))
            for name in SWITCHES
            if name != "left" or left_out
        ],
    }
    return Part("parts/chart.html", (f"brew:{session.id}",), values)


def _leave_out(visit: Visit, found: Figures) -> str:
    """Return the address of the form that leaves readings of the brew's device out, if there is one."""
    device_id = None if found.gravity is None else found.gravity.device_id
    allowed = visit.viewer.may_change and visit.viewer.is_owner
    return visit.url("device.exclude", id=device_id) if allowed and device_id is not None else ""


async def _last_at(visit: Visit, session: BrewSession, found: Figures) -> int | None:
    """Return the time of the last reading, or of a later event or alarm; None without any reading."""
    if found.last_at is None:
        return None
    events = await visit.services.timeline.events(session)
    alarms = await visit.services.series.alarms_of(session)
    return max([found.last_at, *(event.at for event in events[:1]), *(mark.at for mark in alarms[-1:])])


async def _drawn(
    visit: Visit,
    entry: SessionEntry,
    found: Figures,
    chosen: Range,
    options: charts.Options,
    last_at: int,
) -> tuple[charts.Drawn, int]:
    """Return the chart and the number of its readings left out, drawn anew only if something has changed."""
    session, words, viewer = entry.session, visit.words, visit.viewer
    version = await visit.store.readings.version(session)
    year = words.local(visit.now).year
    units = viewer.gravity_unit, viewer.temp_unit, viewer.language, str(viewer.zone), year
    alarms = tuple(mark.event_id for mark in await visit.services.series.alarms_of(session))
    key = "chart", session.id, chosen, last_at, options, units, version, alarms
    parts = kept_parts(visit.store)
    kept: tuple[charts.Drawn, int] | None = parts.get(key) if version is not None else None
    if kept is not None:
        return kept
    points = charts.BUCKETS["large"]
    large = await _series(visit, session, chosen, last_at, points, left_out=options.left_out)
    small = coarser(large, charts.BUCKETS["small"])
    # In a thread, because a reading of a device must not wait until a chart is drawn.
    made = await asyncio.to_thread(
        charts.drawn, small, large, found, words, name=session.batchcode, options=options
    )
    left_out = sum(sum(line.left_out) for line in large.lines)
    if version is not None:
        texts = (text for row in made.rows for text in (row.time, row.gravity, row.temp, row.events))
        parts.put(key, (made, left_out), len(made.small) + len(made.large) + sum(map(len, texts)))
    return made, left_out


async def _series(
    visit: Visit, session: BrewSession, chosen: Range, last_at: int, points: int, *, left_out: bool = False
) -> Series:
    end = last_at if chosen.end is None else chosen.end
    service = visit.services.series
    return await service.of_session(session, chosen.start, end, points, with_left_out=left_out)


async def series(visit: Visit) -> web.StreamResponse:
    """Answer the values under the crosshair of the chart as JSON."""
    entry = await own_brew(visit)
    found = await _figures(visit, entry.session)
    last_at = await _last_at(visit, entry.session, found)
    columns: dict[str, list[object]] = {"t": [], "text": [], "local": [], "n": []}
    if last_at is not None:
        chosen = range_of(visit.query, visit.viewer.zone, last_at)
        made = await _series(visit, entry.session, chosen, last_at, charts.BUCKETS["large"])
        columns = charts.crosshair(made, visit.words)
    answer = web.json_response(columns)
    answer.enable_compression()
    return answer


async def sending(visit: Visit) -> Part:
    """Show what of a brew was sent on to each target."""
    entry = await own_brew(visit)
    found = await visit.services.sending.sending_of(entry.session)
    targets = bool(found) or bool(await visit.store.targets.all())
    values = {
        "targets": [_sent(visit, each) for each in found],
        "nowhere": targets and not found and entry.session.ended_at is None,
        "nothing": not targets,
        "more": visit.url("sending") if visit.has("sending") and visit.viewer.may_change else "",
    }
    return Part("parts/brew_sending.html", (f"brew:{entry.session.id}", "sending"), values)


def _sent(visit: Visit, each: BrewSending) -> Sent:
    words = visit.words
    total = each.sent + each.waiting + each.refused
    counts = words.t("brew.sent", sent=words.count(each.sent), of=words.count(total))
    if each.refused:
        counts = f"{counts}, {words.t('sending.count.refused', n=each.refused)}"
    newest = None if each.last_at is None else words.ago(each.last_at)
    state = "idle" if each.state == "sent" and not each.sent else each.state
    sign = "quiet" if state == "idle" else SIGNS[each.state]
    return Sent(each.target, counts, words.t(f"sending.brew.{state}"), sign, newest, each.reason)


ROWS = (
    Row("GET", "/brews/{id}", show, "brew", "One brew"),
    Row("GET", "/brews/{id}/figures", figures, "brew.figures", "The figures of a brew"),
    Row("GET", "/brews/{id}/chart", chart, "brew.chart", "The chart of a brew"),
    Row("GET", "/brews/{id}/series", series, "brew.series", "The values under the crosshair"),
    Row("GET", "/brews/{id}/sending", sending, "brew.sending", "What of a brew was sent on"),
)
