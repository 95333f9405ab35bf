"""A brew session in readable lines, as `sessions show` prints it."""

from datetime import datetime
from typing import Any

from gateway.cli.output import local_time, unix
from gateway.cli.recipe_view import one_line
from gateway.domain.brewsession import DETAIL_MEMBERS
from gateway.domain.times import part_of_day

GRAVITY_UNITS = {"G": "SG", "P": "°P"}

GRAVITY_DECIMALS = 4
"""Decimals of a gravity that are shown: some devices send a dozen."""

PHASE_WORDS = {
    "lag": "getting started",
    "active": "fermenting",
    "slowing": "slowing down",
    "finished": "fermented out",
    "stuck": "stuck",
    "cold_crash": "cold crash",
}

LABEL_GAP = 2
"""Blanks between the longest name and its text."""


def session_lines(session: dict[str, Any], insight: dict[str, Any]) -> list[str]:
    """Describe a brew session, a member in each line; leave out empty members."""
    members = {name: text for name, text in (_members(session) | _fermentation(insight)).items() if text}
    width = max(map(len, members)) + LABEL_GAP
    return [f"{name:{width}}{text}" for name, text in members.items()] + _notes(session["notes"])


def _members(session: dict[str, Any]) -> dict[str, str]:
    return {
        "id": str(session["id"]),
        "batch code": one_line(session["batchcode"]),
        "phase": one_line(session["phase"]),
        "brewed": session["userdate"],
        "recipe": _recipe(session["recipe"]),
        "folder": one_line(session["folder_name"]),
        "account": one_line(session["account"]),
        "device": _device(session["device"]),
        "forwarded to": _forwarded(session),
        "created": local_time(unix(session["created_at"])),
        "changed": local_time(unix(session["updated_at"])),
        "done": local_time(None if session["ended_at"] is None else unix(session["ended_at"])),
        **_figures(session["stats"], session["has_gravity"]),
        **{name: one_line(session["details"].get(name)) for name in DETAIL_MEMBERS},
    }


def _fermentation(insight: dict[str, Any]) -> dict[str, str]:
    """Return what the fermentation does: of a gravity that is smoothed, beside the latest one above."""
    sg, rate, finish = insight["sg"], insight["rate"], insight["finish"]
    phase = "" if insight["phase"] is None else PHASE_WORDS[insight["phase"]]
    if phase:
        phase = f"{phase} since {local_time(unix(insight['phase_since']))}"
    ends = ""
    if finish is not None:
        ends = (
            f"between {_about(finish['early'])} and {_about(finish['late'])}, at about {finish['fg']:.3f} SG"
        )
    elif insight["phase"] in {"active", "slowing"}:
        ends = f"not yet known: {insight['unknown_text']}"
    return {
        "fermentation": phase,
        "smoothed gravity": "" if sg is None else f"{round(sg, GRAVITY_DECIMALS)} SG",
        "change": "" if rate is None else f"{rate:+.4f} SG a day",
        "ends": ends,
    }


def _about(time: str) -> str:
    """Return a day and a part of it: a forecast is never exact to the minute."""
    day, part = part_of_day(datetime.fromisoformat(time).astimezone())
    return f"{day:%a %d %b} {part}"


def _recipe(recipe: dict[str, Any] | None) -> str:
    if recipe is None:
        return ""
    original = f", a copy of {recipe['copy_of']}" if recipe["copy_of"] else ""
    return f"{one_line(recipe['title'])} (id {recipe['id']}{original})"


def _device(device: dict[str, Any] | None) -> str:
    if device is None:
        return ""
    at = device["last_reading_at"]
    last = "no reading yet" if at is None else f"last reading {local_time(unix(at))}"
    return f"{one_line(device['name'])} (id {device['id']}, {last})"


def _forwarded(session: dict[str, Any]) -> str:
    """Return the session's number at each target; if it has none, at a service that is not configured now."""
    found = [f"session {one['number']} of {one['target']}" for one in session["forwarded"]]
    if not found and session["upstream_id"] is not None:
        found = [f"session {session['upstream_id']} of {one_line(session['upstream']) or 'the upstream'}"]
    return ", ".join(found)


def _figures(stats: dict[str, Any], has_gravity: bool) -> dict[str, str]:
    """Return the figures that the readings give so far; without a gravity only temperature and pH."""
    warmth = {
        "temperature": f"{stats['temp']} °{stats['temp_unit']}" if stats["temp"] else "",
        "pH": stats["ph"],
    }
    if not has_gravity:
        return {"gravity": "no reading yet", **warmth}
    return {
        "original gravity": _gravity(stats, "og"),
        "latest gravity": _gravity(stats, "fg"),
        "alcohol": f"{stats['abv']:.2f} %, by the alternate formula {stats['abv_alt']:.2f} %",
        **warmth,
        "as of": local_time(unix(stats["updated"])),
    }


def _gravity(stats: dict[str, Any], name: str) -> str:
    return f"{round(stats[name], GRAVITY_DECIMALS)} {GRAVITY_UNITS[stats[f'{name}_unit']]}"


def _notes(notes: str | None) -> list[str]:
    """Return a heading and the notes' lines, indented; nothing if the notes are blank."""
    lines = [one_line(line) for line in (notes or "").splitlines()]
    return ["notes", *(f"  {line}".rstrip() for line in lines)] if any(lines) else []
