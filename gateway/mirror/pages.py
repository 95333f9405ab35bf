"""Walking a list page by page; what one page cannot give is looked for in smaller ones."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.texts import decimal_digits
from gateway.formats.readings.rows import NumberLiteral
from gateway.mirror.client import NotThere, RemoteService, TooMuch

RECORDS = 1_000_000
"""Records of one list at most: a service that ignores the offset would give them for ever."""

SHRINK = 10
"""A page that cannot be read is tried again at this fraction of its size."""

LOST_IN_A_ROW = 3
"""Single records that cannot be read one after the other; then it is not the records."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list: path, member that holds it, records in a page, what skipping is called, where to begin."""

    path: str
    member: str
    size: int
    query: Mapping[str, str] = field(default_factory=dict)
    skipping: str = "offset"
    begin: int = 0


@dataclass(frozen=True, slots=True)
class RemotePage:
    """Some records as they came, the place of the first, how many there are in all where that is said."""

    records: list[Any]
    place: int
    total: int | None


async def pages(
    service: RemoteService, listing: Listing, lost: Callable[[str], None]
) -> AsyncIterator[RemotePage]:
    """All pages; `lost` hears of each record that no request of any size could get."""
    place, size = listing.begin, listing.size
    previous: list[Any] | None = None
    passed: list[str] = []
    while place < listing.begin + RECORDS:
        try:
            page = await _page(service, listing, place, size)
        except NotThere:
            if place > listing.begin:
                return  # "no records found" behind the last one
            raise
        except TooMuch as error:
            if size > 1:
                size = max(1, size // SHRINK)
                continue
            passed.append(f"no. {place + 1} of the list: {error}")
            if len(passed) == LOST_IN_A_ROW:
                raise
            place += 1
            continue
        for line in passed:
            lost(line)
        if page.records == previous:
            return  # it does not skip: these were here before
        passed, previous = [], page.records
        place += len(page.records)
        yield page
        if _is_last(service, listing, page, size):
            return
        size = min(listing.size, size * SHRINK)


async def first_page(service: RemoteService, listing: Listing) -> RemotePage:
    """The beginning of a list; `Unreadable` where it cannot be had."""
    return await _page(service, listing, 0, listing.size)


async def _page(service: RemoteService, listing: Listing, place: int, size: int) -> RemotePage:
    query = {**listing.query, "limit": str(size), listing.skipping: str(place)}
    document = await service.json(listing.path, query)
    records = document.get(listing.member)
    if not isinstance(records, list):
        raise TooMuch(f"an answer without {listing.member}")
    return RemotePage(records, place, _number(document.get("count")))


def _is_last(service: RemoteService, listing: Listing, page: RemotePage, size: int) -> bool:
    length = len(page.records)
    if not length or length > size:
        return True
    if page.total is not None:
        return page.place + length >= page.total
    return service.is_last(listing.member, length, size)


def _number(value: object) -> int | None:
    """`count` is text, or with some services a number."""
    text = str(value).strip() if isinstance(value, str | NumberLiteral) else ""
    return int(text) if decimal_digits(text) else None
