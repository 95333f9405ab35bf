"""`/manage/inbox`: devices whose readings wait for the owner's word; for the owner only."""

from typing import Any

from pydantic import BaseModel, Field

from gateway.domain.inbox import REFUSED_S, RefusedName, WaitingName, find_entries
from gateway.domain.times import iso
from gateway.errors import NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Query
from gateway.http.parameters import RecordNumber, Text

MS = 1000

NUMBERS_MAX = 200
"""Entries that one request may name: the inbox has no more."""


class WaitingDevice(AnswerModel):
    """A device whose readings wait, from one source and for one reason.

    `accepted` means that they are about to be stored.
    """

    number: int
    key: str
    device_id: str
    name: str
    family: str
    source: str
    reason: str
    readings: int
    bytes: int
    first_at: str
    last_at: str
    accepted: bool


class RefusedDevice(AnswerModel):
    """A device whose readings are not kept until a time; `source` is empty where every source is meant."""

    number: int
    key: str
    name: str
    source: str
    reason: str
    until: str


class InboxUse(AnswerModel):
    """Contents and limits of the inbox; beyond them a reading is answered 503."""

    names: int
    readings: int
    bytes: int
    names_max: int
    bytes_max: int


class InboxContents(AnswerModel):
    """Devices whose readings wait, the one that waits longest first, and refused devices."""

    count: int
    asks: bool = Field(description="Whether readings of unknown devices wait: --new-devices ask.")
    waiting: list[WaitingDevice]
    refused: list[RefusedDevice]
    state: InboxUse


class InboxQuery(Query):
    """Choice of devices."""

    find: Text | None = Field(
        default=None,
        description="Only the device with this key, id, name or number; 404 for none, 409 for several.",
    )


class InboxChoice(Body):
    """Entries of the inbox, by their numbers; all of one device."""

    numbers: list[RecordNumber] = Field(min_length=1, max_length=NUMBERS_MAX)


class AcceptedReadings(Done):
    """Counts: `stored` readings; the rest were duplicates. `left` payloads stay, by reason in `reasons`."""

    key: str
    stored: int
    left: int
    reasons: dict[str, int]


class RefusedReadings(Done):
    """The number of readings that are gone."""

    readings: int


async def list_inbox(call: Call[InboxQuery, None]) -> InboxContents:
    """List the devices whose readings wait, and the refused ones."""
    inbox, now = call.store.inbox, call.services.clock.now()
    waiting = await inbox.names()
    refused = [name for name in await inbox.refused() if now - name.refused_at < REFUSED_S]
    if (wanted := call.query.find) is not None:
        try:
            waiting = find_entries(waiting, wanted)
            refused = [name for name in refused if name.device_key == waiting[0].device_key]
        except NotFound:
            waiting, refused = [], find_entries(refused, wanted)
    state = await inbox.state()
    return InboxContents(
        count=len(waiting),
        asks=call.services.intake.inbox.asks,
        waiting=[_waiting(name) for name in waiting],
        refused=[_refused(name) for name in refused],
        state=InboxUse(
            names=state.names,
            readings=state.readings,
            bytes=state.size,
            names_max=state.names_max,
            bytes_max=state.size_max,
        ),
    )


async def accept(call: Call[Query, InboxChoice]) -> AcceptedReadings:
    """Make readings of what waits, in order of arrival; later readings of the device no longer wait."""
    done = await call.services.acceptance.accept(call.body.numbers, call.progress)
    return AcceptedReadings(key=done.device_key, stored=done.stored, left=done.left, reasons=done.reasons)


async def refuse(call: Call[Query, InboxChoice]) -> RefusedReadings:
    """Remove what waits, and remember the device as refused for 30 days."""
    return RefusedReadings(readings=await call.services.intake.inbox.refuse(call.body.numbers))


async def allow(call: Call[Query, None]) -> Done:
    """Take a refusal back: the device's next reading is treated like that of any other device."""
    if not await call.services.intake.inbox.allow(call.path_id("refused_id")):
        raise NotFound
    return Done()


def _waiting(name: WaitingName) -> WaitingDevice:
    return WaitingDevice(
        number=name.id,
        key=name.device_key,
        device_id=name.stable_id,
        name=name.name,
        family=name.family,
        source=name.source,
        reason=name.reason.value,
        readings=name.readings,
        bytes=name.size,
        first_at=iso(name.first_at // MS),
        last_at=iso(name.last_at // MS),
        accepted=name.accepted,
    )


def _refused(name: RefusedName) -> RefusedDevice:
    return RefusedDevice(
        number=name.id,
        key=name.device_key,
        name=name.name,
        source=name.source,
        reason=name.reason.value,
        until=iso(name.refused_at + REFUSED_S),
    )


def _row(
    method: str, path: str, handler: Any, summary: str, answer: type[BaseModel], **more: Any
) -> Endpoint[Any, Any]:
    query = more.pop("query", Query)
    return Endpoint(method, f"/manage/inbox{path}", handler, summary, query, answer, owner_only=True, **more)


ENDPOINTS = (
    _row("GET", "", list_inbox, "Inbox", InboxContents, query=InboxQuery, refusals=(404, 409)),
    _row(
        "POST",
        "/accept",
        accept,
        "Accept a device whose readings wait",
        AcceptedReadings,
        body=InboxChoice,
        refusals=(404,),
        long=True,
    ),
    _row(
        "POST",
        "/refuse",
        refuse,
        "Refuse a device whose readings wait",
        RefusedReadings,
        body=InboxChoice,
        refusals=(404,),
    ),
    _row("DELETE", "/refused/{refused_id}", allow, "Take a refusal back", Done),
)
"""The inbox."""
