"""The query members that the searches for recipes and for brew sessions share."""

from typing import Any, TypedDict

from pydantic import Field

from gateway.http.endpoint import Query
from gateway.http.parameters import Count, Day, Id, Number
from gateway.store.queries import Days, Order

LIMIT = 20
"""Records in one answer without a limit in the query."""


class Filters(TypedDict):
    """The members of `store.queries.Search`."""

    account_id: int
    id: int | None
    group_id: str | None
    author_id: str | None
    folder_id: int | None
    keyword: str
    updated: Days
    created: Days
    order: Order
    limit: int
    offset: int


class SearchQuery(Query):
    """A search for records. A record must match every member that is given."""

    id: Id | None = Field(default=None, description="Only this record.")
    group_id: str | None = Field(default=None, description="Group of the record.")
    brewer_author_id: str | None = Field(default=None, description="Login id of the record's owner.")
    sort: Any = None
    folder_id: Number | None = Field(default=None, description="Folder of such records.")
    keyword: str = Field(default="", description="A part of the texts that are searched.")
    updated_from: Day | None = Field(default=None, description="Changed on this UTC day or later.")
    updated_to: Day | None = Field(default=None, description="Changed on this UTC day or earlier.")
    created_from: Day | None = Field(default=None, description="Made on this UTC day or later.")
    created_to: Day | None = Field(default=None, description="Made on this UTC day or earlier.")
    limit: Count = Field(default=LIMIT, description="Records in the answer; more than allowed is clamped.")
    offset: Count = Field(default=0, description="Records to leave out, from the first.")

    def filters(self, account_id: int, limit_max: int) -> Filters:
        """Return the members as the store takes them, for one account. Clamp a higher limit."""
        return {
            "account_id": account_id,
            "id": self.id,
            "group_id": self.group_id,
            "author_id": self.brewer_author_id,
            "folder_id": self.folder_id,
            "keyword": self.keyword,
            "updated": Days(self.updated_from, self.updated_to),
            "created": Days(self.created_from, self.created_to),
            "order": self.sort,
            "limit": min(self.limit, limit_max),
            "offset": self.offset,
        }
