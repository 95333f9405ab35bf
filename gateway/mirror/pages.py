"""Read a list page by page; ask in smaller pages for records that a page cannot give."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.texts import decimal_digits
from gateway.formats.readings.rows import NumberLiteral
from gateway.mirror.client import NotThere, RemoteService, TooMuch

RECORDS = 1_000_000
"""Records of one list at most: a service that ignores the offset would give records for ever."""

SHRINK = 10
"""A page that cannot be read is tried again at this fraction of its size."""

LOST_IN_A_ROW = 3
"""Unreadable single records in a row, after which the list counts as unreadable."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list: path, member that holds it, records in a page, name of the offset, first place to read."""

    path: str
    member: str
    size: int
    query: Mapping[str, str] = field(default_factory=dict)
    offset_name: str = "offset"
    begin: int = 0


@dataclass(frozen=True, slots=True)
class RemotePage:
    """Records as received, the place of the first, and the number of all if the service gives that number."""

    records: list[Any]
    place: int
    total: int | None


async def read_pages(
    service: RemoteService, listing: Listing, on_lost: Callable[[str], None]
) -> AsyncIterator[RemotePage]:
    """Yield all pages. `on_lost` is called for each record that no request of any size could get."""
    place, size = listing.begin, listing.size
    previous: list[Any] | None = None
    skipped: list[str] = []
    while place < listing.begin + RECORDS:
        try:
            page = await _page(service, listing, place, size)
        except NotThere:
            if place > listing.begin:
                return  # "no records found": it stands behind the last one
            raise
        except TooMuch as error:
            if size > 1:
                size = max(1, size // SHRINK)
                continue
            skipped.append(f"no. {place + 1} of the list: {error}")
            if len(skipped) == LOST_IN_A_ROW:
                raise
            place += 1
            continue
        for line in skipped:
            on_lost(line)
        if page.records == previous:
            return  # it does not skip: these were here before
        skipped, previous = [], page.records
        place += len(page.records)
        yield page
        length = len(page.records)
        if not length or length > size:  # the end, or a service that ignores the limit
            return
        if service.is_last(listing.member, length, size) if page.total is None else place >= page.total:
            return
        size = min(listing.size, size * SHRINK)


async def read_first_page(service: RemoteService, listing: Listing) -> RemotePage:
    """Return the beginning of a list; `RemoteUnreadable` if it cannot be read."""
    return await _page(service, listing, 0, listing.size)


async def _page(service: RemoteService, listing: Listing, place: int, size: int) -> RemotePage:
    query = {**listing.query, "limit": str(size), listing.offset_name: str(place)}
    document = await service.json(listing.path, query)
    records = document.get(listing.member)
    if not isinstance(records, list):
        raise TooMuch(f"an answer without {listing.member}")
    # `count` is text, with some services a number.
    count = document.get("count")
    text = str(count).strip() if isinstance(count, str | NumberLiteral) else ""
    return RemotePage(records, place, int(text) if decimal_digits(text) else None)
