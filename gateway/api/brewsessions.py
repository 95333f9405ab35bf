"""`/v1/brewsessions`: endpoints 8 to 10, the search for brew sessions, one session, and its logs."""

from typing import Any, Literal

from pydantic import Field, create_model

from gateway.api.last_reading import meter_members
from gateway.api.recipes import EMPTY_RECORD, RecipeRecord, record_of, text_or_none
from gateway.api.searching import LIMIT, SearchQuery
from gateway.domain.brewsession import DETAIL_MEMBERS, BrewSession, SessionEntry
from gateway.domain.statistics import current_stats
from gateway.domain.times import iso, stamp
from gateway.errors import NotFound
from gateway.http.endpoint import AnswerModel, Call, Endpoint, Page, Query, Single
from gateway.http.parameters import Count, SessionOrder
from gateway.http.records import own_session
from gateway.store.protocol import Store
from gateway.store.queries import Order, Search

LIMIT_MAX = 1000
"""The most brew sessions in one answer. A higher limit is clamped, not refused."""

ALWAYS_TEXT: dict[str, str] = {
    "brewstepprofileid": "1",
    "chillmethod": "",
    "totalwater": "0",
    "userunit": "metric",
    "equipment_profile_id": "0",
}
"""Details that the specification has as text, never null, with their text while nobody has set them."""


def _details(*names: str) -> dict[str, Any]:
    """Make fields for details: text, or text or null."""
    return {name: (str if name in ALWAYS_TEXT else str | None, ...) for name in names}


class _Head(AnswerModel):
    id: str
    loginid: str
    recipeid: str
    folder_id: str | None
    brewstepprofileid: str
    phase: str
    userdate: str = Field(json_schema_extra={"format": "date"})
    batchcode: str


_WithDetails = create_model("_WithDetails", __base__=_Head, **_details(*DETAIL_MEMBERS[1:]))


class BrewSessionRecord(_WithDetails):
    """A brew session as lists show it. As in the service, every member is text or null."""

    deleted: Literal["0"]
    created_at: str
    updated_at: str
    session_notes: str | None
    meter_active: str
    meter_color: str | None
    meter_updated: str | None
    folder_name: str | None
    recipe_title: str
    device_reading: str | None = Field(
        description="JSON text: an object with last_reading, itself an object of texts."
    )
    device_updated_at: str | None
    device_active: str | None
    device_id: str | None


class CurrentStats(AnswerModel):
    """Statistics of the readings. Each gravity has the unit of its reading; alcohol is percent by volume."""

    og: float
    og_unit: Literal["G", "P"]
    fg: float
    fg_unit: Literal["G", "P"]
    abv: float
    abv_alt: float
    ph: str
    temp: str
    temp_unit: Literal["C", "F"]
    updated: str


class BrewSessionWithStats(BrewSessionRecord):
    """A brew session with its statistics and its recipe. Without a recipe, the recipe's id is "0"."""

    current_stats: CurrentStats
    recipe: RecipeRecord


class BrewSessions(Page):
    """Brew sessions; `count` is the number of all that match, whatever limit and offset are."""

    brewsessions: list[BrewSessionRecord]


class OneBrewSession(Single):
    """A brew session with its statistics, as the only record of an answer."""

    brewsessions: list[BrewSessionWithStats] = Field(min_length=1, max_length=1)


class BrewSessionsQuery(SearchQuery):
    """A search for brew sessions. A session must match every member that is given."""

    sort: SessionOrder = Field(
        default_factory=Order,
        description="created_at, updated_at or batchcode; then :1 for ascending or :-1 for descending.",
    )
    keyword: str = Field(default="", description="Part of the batch code or the phase.")
    limit: Count = Field(default=LIMIT, description="Sessions in the answer; above 1000 it is 1000.")


async def search_sessions(call: Call[BrewSessionsQuery, None]) -> BrewSessions:
    """Answer endpoint 8: a page of the brew sessions that match."""
    search = Search(**call.query.filters(call.caller.account_id, LIMIT_MAX))
    count, found = await call.store.sessions.search(search)
    return BrewSessions(
        count=str(count), brewsessions=[BrewSessionRecord.model_validate(_members(entry)) for entry in found]
    )


async def one_session(call: Call[Query, None]) -> OneBrewSession:
    """Answer endpoints 9 and 10: one brew session with statistics and recipe."""
    return await shown(call.store, await own_session(call))


async def shown(store: Store, session: BrewSession) -> OneBrewSession:
    """Make the answer about one brew session."""
    entry = await store.sessions.entry(session.id)
    if entry is None:
        raise NotFound  # deleted a moment ago
    stats = current_stats(await store.sessions.milestones(session.id), session)
    recipe = await store.recipes.get(session.recipe_id)
    if recipe is None:
        # A session without its recipe shows the id, and the members that are always text.
        always = dict.fromkeys(("recipetoken", "brewer_author_id", "title", "stylename"), "")
        flags = dict.fromkeys(("public", "deleted", "snapshot", "brew_count"), "0")
        times = dict.fromkeys(("created_at", "updated_at"), "")
        own = {"id": str(session.recipe_id), "brew_sessions": "[]"}
        recipe_record = {**EMPTY_RECORD, **always, **flags, **times, **own}
    else:
        recipe_record = record_of(recipe).model_dump()
    record = BrewSessionWithStats.model_validate(
        {
            **_members(entry),
            "current_stats": {
                **{name: getattr(stats, name) for name in CurrentStats.model_fields},
                "updated": iso(stats.updated),
            },
            "recipe": recipe_record,
        }
    )
    return OneBrewSession(brewsessions=[record])


def _members(entry: SessionEntry) -> dict[str, str | None]:
    session = entry.session
    said = {name: text for name, text in session.details.items() if text is not None}
    return {
        **{name: said.get(name, ALWAYS_TEXT.get(name)) for name in DETAIL_MEMBERS},
        **meter_members(entry),
        "id": str(session.id),
        "loginid": str(session.account_id),
        "recipeid": str(session.recipe_id),
        "folder_id": text_or_none(session.folder_id),
        "phase": session.phase,
        "userdate": session.userdate,
        "batchcode": session.batchcode,
        "deleted": "0",
        "created_at": stamp(session.created_at),
        "updated_at": stamp(session.updated_at),
        "session_notes": session.notes,
        "folder_name": entry.folder_name,
        "recipe_title": entry.recipe_title,
    }


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/brewsessions",
        search_sessions,
        "Search brew sessions",
        BrewSessionsQuery,
        BrewSessions,
    ),
    Endpoint(
        "GET",
        "/v1/brewsessions/{brew_session_id}",
        one_session,
        "One brew session with statistics and recipe",
        Query,
        OneBrewSession,
    ),
    Endpoint(
        "GET",
        "/v1/brewsessions/{brew_session_id}/logs",
        one_session,
        "Logs of a brew session: the same as the session itself",
        Query,
        OneBrewSession,
    ),
)
"""Endpoints 8 to 10 of the specification."""
