"""Queries to a store: plain values, one per kind of search."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

from gateway.domain.brewsession import BrewSession


@dataclass(frozen=True, slots=True)
class ReadingsQuery:
    """A choice of a brew session's readings: by UTC days, both inclusive, then `skip`, then `limit`.

    `newest_first` turns the order around before `skip` and `limit` count.
    """

    session: BrewSession
    skip: int = 0
    limit: int | None = None
    first_day: date | None = None
    last_day: date | None = None
    newest_first: bool = False


@dataclass(frozen=True, slots=True)
class Days:
    """A span of UTC calendar days, both ends inclusive; None leaves an end open."""

    first: date | None = None
    last: date | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """Sorting by one field; ties go by id in the same direction."""

    field: Literal["created_at", "updated_at", "title", "batchcode"] = "created_at"
    descending: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The common part of a search for recipes and for brew sessions; None filters nothing.

    `author_id` is the owner's account id as text. `keyword` matches in any case; `%` and `_` match only
    themselves.
    """

    account_id: int
    id: int | None = None
    group_id: str | None = None
    author_id: str | None = None
    folder_id: int | None = None
    keyword: str = ""
    updated: Days = Days()
    created: Days = Days()
    order: Order = Order()
    limit: int = 20
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeSearch(Search):
    """A search for recipes. `author` matches in any case; with `snapshots`, list snapshots, too.

    Without `whole`, recipes are returned without ingredients and BeerXML.
    """

    author: str | None = None
    snapshots: bool = False
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesQuery:
    """A span of readings of a brew session, of a device or of both; both ends inclusive (Unix seconds).

    If there are more readings than `points`, they are counted together in about as many buckets.
    """

    start: int
    end: int
    points: int
    session_id: int | None = None
    device_id: int | None = None
