"""A brew session in readable lines, as `sessions show` prints them."""

from gateway.cli.output import local_time
from gateway.cli.recipe_view import one_line
from gateway.commands.sessions import no_session
from gateway.domain.brewsession import DETAIL_MEMBERS, BrewSession, DeviceReading, SessionEntry
from gateway.domain.recipe import Recipe
from gateway.domain.statistics import FermentationStats, current_stats
from gateway.store.protocol import Store

GRAVITY_UNITS = {"G": "SG", "P": "°P"}

GRAVITY_DECIMALS = 4
"""Some devices send a dozen."""

LABEL_GAP = 2
"""Blanks between a name and its text."""


async def session_lines(store: Store, session_id: int) -> list[str]:
    """Everything about a brew session, a line each; what nobody said is left out."""
    entry = await store.sessions.entry(session_id)
    if entry is None:
        raise no_session(session_id)
    members = {name: text for name, text in (await _members(store, entry)).items() if text}
    width = max(map(len, members)) + LABEL_GAP
    return [f"{name:{width}}{text}" for name, text in members.items()] + _notes(entry.session)


async def _members(store: Store, entry: SessionEntry) -> dict[str, str]:
    session = entry.session
    names = {account.id: account.name for account in await store.accounts.all()}
    recipe = await store.recipes.get(session.recipe_id) if session.recipe_id else None
    return {
        "id": str(session.id),
        "batch code": one_line(session.batchcode),
        "phase": one_line(session.phase),
        "brewed": session.userdate,
        "recipe": _recipe(recipe),
        "folder": one_line(entry.folder_name),
        "account": one_line(names.get(session.account_id)),
        "device": _device(entry.device),
        "forwarded to": await _forwarded(store, session),
        "created": local_time(session.created_at),
        "changed": local_time(session.updated_at),
        **await _figures(store, session),
        **{name: one_line(session.details.get(name)) for name in DETAIL_MEMBERS},
    }


def _recipe(recipe: Recipe | None) -> str:
    if recipe is None:
        return ""
    original = f", a copy of {recipe.parent_id}" if recipe.snapshot and recipe.parent_id else ""
    return f"{one_line(recipe.content.title)} (id {recipe.id}{original})"


def _device(device: DeviceReading | None) -> str:
    if device is None:
        return ""
    last = "no reading yet" if device.created_at is None else f"last reading {local_time(device.created_at)}"
    return f"{one_line(device.device_name)} (id {device.device_id}, {last})"


async def _forwarded(store: Store, session: BrewSession) -> str:
    """Its number at each target; that of a service which is not configured now where there is no other."""
    taken = [(target, await store.targets.sessions(target)) for target in await store.targets.all()]
    found = [f"session {its[session.id]} of {target.name}" for target, its in taken if session.id in its]
    if not found and session.upstream_id is not None:
        found = [f"session {session.upstream_id} of {one_line(session.upstream) or 'the upstream'}"]
    return ", ".join(found)


async def _figures(store: Store, session: BrewSession) -> dict[str, str]:
    """What the readings say so far; nothing while there is none with a gravity."""
    milestones = await store.sessions.milestones(session.id)
    stats = current_stats(milestones, session.created_at)
    warmth = {
        "temperature": f"{stats.temp} °{stats.temp_unit}" if stats.temp else "",
        "pH": stats.ph,
    }
    if milestones.last_gravity is None:
        return {"gravity": "no reading yet", **warmth}
    return {**_gravities(stats), **warmth, "as of": local_time(stats.updated)}


def _gravities(stats: FermentationStats) -> dict[str, str]:
    return {
        "original gravity": f"{round(stats.og, GRAVITY_DECIMALS)} {GRAVITY_UNITS[stats.og_unit]}",
        "latest gravity": f"{round(stats.fg, GRAVITY_DECIMALS)} {GRAVITY_UNITS[stats.fg_unit]}",
        "alcohol": f"{stats.abv:.2f} %, by the alternate formula {stats.abv_alt:.2f} %",
    }


def _notes(session: BrewSession) -> list[str]:
    """The notes below, each of their lines indented."""
    lines = [one_line(line) for line in (session.notes or "").splitlines()]
    return ["notes", *(f"  {line}".rstrip() for line in lines)] if any(lines) else []
