"""`/manage/brewsessions`: lists of brew sessions, also of deleted ones, and everything about a single one."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field

from gateway.api.brewsessions import CurrentStats
from gateway.domain.brewsession import BrewSession, SessionEntry
from gateway.domain.statistics import current_stats
from gateway.domain.times import iso
from gateway.errors import NotFound
from gateway.http.endpoint import AnswerModel, Call, Endpoint, Query, check_owner
from gateway.http.parameters import Flag
from gateway.http.records import own_session
from gateway.services.brewsessions import ALL_SESSIONS
from gateway.store.protocol import Store
from gateway.store.queries import Order, Search


class BrewSessionRow(AnswerModel):
    """A brew session in a list."""

    id: int
    account_id: int
    batchcode: str
    phase: str
    over: bool = Field(description="The beer is done.")
    userdate: str
    recipe_id: int | None
    recipe_title: str
    folder_id: int | None
    folder_name: str | None
    upstream_id: int | None
    numbers: list[int] = Field(description="The brew session's numbers at the targets that take it.")
    readings: int | None = Field(description="How many readings a deleted one has; else null.")
    created_at: str
    updated_at: str


class BrewSessionRows(AnswerModel):
    """Brew sessions, the oldest first."""

    message: Literal["success"] = "success"
    count: int
    brewsessions: list[BrewSessionRow]


class RowsQuery(Query):
    """Choice of brew sessions."""

    deleted: Flag = Field(default=False, description="Those that `undelete` brings back.")
    everyone: Flag = Field(default=False, description="Of all accounts; for the owner only.")


class RecipeName(AnswerModel):
    """A recipe; `copy_of` is the id of the recipe that was copied when brewing began."""

    id: int
    title: str
    copy_of: int | None


class DeviceInside(AnswerModel):
    """The device that reports into a brew session."""

    id: int
    name: str
    last_reading_at: str | None


class Forwarded(AnswerModel):
    """A target that takes a brew session, and the brew session's number there."""

    target: str
    number: int


class BrewSessionDetails(BrewSessionRow):
    """Everything about a brew session; `current_stats` is null without a reading that has a gravity."""

    account: str
    recipe: RecipeName | None
    device: DeviceInside | None
    forwarded: list[Forwarded]
    upstream: str | None = Field(description="The service that `upstream_id` belongs to.")
    stats: CurrentStats
    has_gravity: bool = Field(description="Whether any reading has a gravity.")
    details: dict[str, str | None]
    notes: str | None
    og: str | None = Field(description="The original gravity that was set by hand.")
    og_unit: Literal["G", "P"] | None
    ended_at: str | None = Field(description="The time at which the brew was marked done.")
    send_notes: bool = Field(description="Notes are sent on.")
    lead_device: int | None = Field(description="The device whose gravity the figures follow, as chosen.")


class BrewSessionShown(AnswerModel):
    """A brew session with everything about it."""

    message: Literal["success"] = "success"
    brewsession: BrewSessionDetails


async def list_sessions(call: Call[RowsQuery, None]) -> BrewSessionRows:
    """List the brew sessions of an account or of all accounts, either the present or the deleted ones."""
    query, store = call.query, call.store
    accounts = {call.caller.account_id}
    if query.everyone:
        check_owner(call.caller)
        accounts = {account.id for account in await store.accounts.all()}
    if query.deleted:
        rows = [
            _row(SessionEntry(found.session, None, "", None), (), found.readings)
            for found in await store.sessions.deleted()
            if found.session.account_id in accounts
        ]
    else:
        numbers = await _numbers(store)
        rows = [
            _row(entry, [number for _, number in numbers.get(entry.session.id, ())])
            for account_id in sorted(accounts)
            for entry in await _entries(store, account_id)
        ]
    return BrewSessionRows(count=len(rows), brewsessions=[BrewSessionRow.model_validate(row) for row in rows])


async def _entries(store: Store, account_id: int) -> list[SessionEntry]:
    search = Search(account_id=account_id, order=Order(descending=False), limit=ALL_SESSIONS)
    return (await store.sessions.search(search))[1]


async def _numbers(store: Store) -> dict[int, list[tuple[str, int]]]:
    """Return, by id of a brew session, the targets that take the session, and its number at each."""
    found: dict[int, list[tuple[str, int]]] = {}
    for target in await store.targets.all():
        for session_id, number in (await store.targets.sessions(target)).items():
            found.setdefault(session_id, []).append((target.name, number))
    return found


async def show_session(call: Call[Query, None]) -> BrewSessionShown:
    """Show everything about a brew session, with the figures that its readings give so far."""
    store, session = call.store, await own_session(call)
    entry = await store.sessions.entry(session.id)
    if entry is None:
        raise NotFound  # deleted a moment ago
    forwarded = (await _numbers(store)).get(session.id, [])
    milestones = await store.sessions.milestones(session.id)
    stats = current_stats(milestones, session)
    members = {
        **_row(entry, [number for _, number in forwarded]),
        "account": next(a.name for a in await store.accounts.all() if a.id == session.account_id),
        "recipe": await _recipe(store, session),
        "device": _device(entry),
        "forwarded": [{"target": name, "number": number} for name, number in forwarded],
        "upstream": session.upstream,
        "stats": {
            **{name: getattr(stats, name) for name in CurrentStats.model_fields},
            "updated": iso(stats.updated),
        },
        "has_gravity": milestones.last_gravity is not None,
        "details": dict(session.details),
        "notes": session.notes,
        "og": session.og,
        "og_unit": session.og_unit,
        "ended_at": None if session.ended_at is None else iso(session.ended_at),
        "send_notes": session.send_notes,
        "lead_device": session.lead_device,
    }
    return BrewSessionShown(brewsession=BrewSessionDetails.model_validate(members))


async def _recipe(store: Store, session: BrewSession) -> dict[str, Any] | None:
    recipe = await store.recipes.get(session.recipe_id) if session.recipe_id else None
    if recipe is None:
        return None
    copy_of = recipe.parent_id if recipe.snapshot else None
    return {"id": recipe.id, "title": recipe.content.title, "copy_of": copy_of}


def _device(entry: SessionEntry) -> dict[str, Any] | None:
    device = entry.device
    if device is None:
        return None
    last = None if device.created_at is None else iso(device.created_at)
    return {"id": device.device_id, "name": device.device_name, "last_reading_at": last}


def _row(entry: SessionEntry, numbers: Iterable[int], readings: int | None = None) -> dict[str, Any]:
    session = entry.session
    return {
        "id": session.id,
        "account_id": session.account_id,
        "batchcode": session.batchcode,
        "phase": session.phase,
        "over": session.is_over,
        "userdate": session.userdate,
        "recipe_id": session.recipe_id or None,
        "recipe_title": entry.recipe_title,
        "folder_id": session.folder_id,
        "folder_name": entry.folder_name,
        "upstream_id": session.upstream_id,
        "numbers": list(numbers),
        "readings": readings,
        "created_at": iso(session.created_at),
        "updated_at": iso(session.updated_at),
    }


ENDPOINTS = (
    Endpoint(
        "GET",
        "/manage/brewsessions",
        list_sessions,
        "Brew sessions, also the deleted ones",
        RowsQuery,
        BrewSessionRows,
        refusals=(403,),
    ),
    Endpoint(
        "GET",
        "/manage/brewsessions/{brew_session_id}",
        show_session,
        "Everything about a brew session",
        Query,
        BrewSessionShown,
    ),
)
"""Brew sessions, to read."""
