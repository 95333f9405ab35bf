"""`/manage/audit`: who changed what, and when; for the owner's account only."""

from dataclasses import asdict

from pydantic import Field

from gateway.domain.times import iso
from gateway.http.endpoint import AnswerModel, Call, Endpoint, Page, Query
from gateway.http.parameters import Count, Moment, Name

LAST = 1_000
"""Rows of an answer if the request does not say how many."""


class AuditRecord(AnswerModel):
    """A row of the audit log."""

    at: str
    actor: str = Field(
        description="`key:phone`, `cli:uid 1000`, `page:phone`, `system`; `stranger` of a wrong key."
    )
    source: str = Field(description="The address of the actor, empty without one.")
    verb: str
    object: str = Field(description="Kind and id, such as `device:3`.")
    detail: str
    times: int = Field(description="Events that share the row: wrong keys have one a source and hour.")


class Audit(Page):
    """Rows of the audit log, in the order in which they were written."""

    audit: list[AuditRecord]


class AuditQuery(Query):
    """Choice of rows."""

    since: Moment | None = Field(default=None, description="ISO 8601, UTC where no zone is given.")
    object: Name | None = Field(default=None, description="`device:3`, or a kind of objects: `device`.")
    last: Count = Field(default=LAST, description="How many, counted from the newest.")


async def list_audit(call: Call[AuditQuery, None]) -> Audit:
    """List the newest rows of the audit log."""
    query = call.query
    since = 0 if query.since is None else int(query.since)
    rows = await call.store.audit.page(since=since, about=query.object or "", limit=query.last)
    records = [AuditRecord.model_validate({**asdict(row), "at": iso(row.at)}) for row in rows]
    return Audit(count=str(len(records)), audit=records)


ENDPOINTS = (
    Endpoint("GET", "/manage/audit", list_audit, "The audit log", AuditQuery, Audit, owner_only=True),
)
"""The audit log."""
