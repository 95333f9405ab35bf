"""`/manage/quarantine`: payloads that nobody understood, or that an upstream refused; for the owner only."""

from typing import Any

from aiohttp import hdrs, web
from pydantic import Field, model_validator

from gateway.domain.quarantined import Quarantined
from gateway.domain.times import iso
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Media, Page, Query, Single
from gateway.http.parameters import Count, RecordNumber, Words
from gateway.services.quarantine import kind_of

BYTES = "application/octet-stream"

START_BYTES = 48
"""Bytes of a payload that the list shows."""

LAST = 50
NUMBERS_MAX = 10_000
"""Payloads that one request may name: quarantine holds no more."""

MS = 1000


class QuarantinedPayload(AnswerModel):
    """A payload in quarantine. `bytes` is its size, `begins` its first bytes as text.

    `kind` is one word for the kind of reason.
    `driver` is the family that the address named, `hint` the family that the address usually means.
    """

    number: int
    received_at: str
    channel: str
    source: str
    reason: str
    kind: str
    bytes: int
    driver: str | None
    hint: str | None
    label: str
    query: str
    begins: str


class QuarantineUse(AnswerModel):
    """Contents and limits of quarantine; `pushed_out` counts payloads that gave way to newer ones."""

    items: int
    bytes: int
    pushed_out: int
    items_max: int
    bytes_max: int


class Quarantine(Page):
    """The newest payloads, the newest last; `count` is the number of all payloads."""

    items: list[QuarantinedPayload]
    state: QuarantineUse


class PayloadToday(QuarantinedPayload):
    """A payload; `today` says in words how a replay would end now.

    `body_bytes` is 0 if the payload has a query only.
    """

    body_bytes: int
    today: str


class OneQuarantined(Single):
    """A single payload in quarantine."""

    items: list[PayloadToday] = Field(min_length=1, max_length=1)


class QuarantineQuery(Query):
    """Choice of payloads."""

    last: Count = Field(default=LAST, description="How many, counted from the newest.")


class ReplayChoice(Body):
    """Payloads to try again: the ones with these numbers, the ones of a device, or all."""

    numbers: list[RecordNumber] | None = Field(default=None, max_length=NUMBERS_MAX)
    device: Words | None = Field(
        default=None, description="Only payloads that say this id, device id, name or key anywhere."
    )

    @model_validator(mode="after")
    def _one_choice(self) -> "ReplayChoice":
        if self.numbers and self.device is not None:
            raise ValueError("either numbers or device, not both")
        return self


class Replayed(Done):
    """Counts of payloads: `understood` ones left quarantine, `left` ones stay, by reason in `reasons`."""

    understood: int
    left: int
    reasons: dict[str, int]


async def list_quarantine(call: Call[QuarantineQuery, None]) -> Quarantine:
    """List the newest payloads in quarantine."""
    quarantine = call.services.quarantine
    items = await quarantine.newest(call.query.last)
    state = await quarantine.state()
    return Quarantine(
        count=str(state.items),
        items=[QuarantinedPayload.model_validate(_members(call, item)) for item in items],
        state=QuarantineUse(
            items=state.items,
            bytes=state.size,
            pushed_out=state.pushed_out,
            items_max=state.items_max,
            bytes_max=state.size_max,
        ),
    )


async def one_quarantined(call: Call[Query, None]) -> OneQuarantined:
    """Show a payload, and how a replay would end now."""
    quarantine = call.services.quarantine
    item = await quarantine.find(call.path_id("number"))
    members = {**_members(call, item), "body_bytes": len(item.body), "today": quarantine.today(item)}
    return OneQuarantined(items=[PayloadToday.model_validate(members)])


async def raw_payload(call: Call[Query, None]) -> web.Response:
    """Send the bytes of a payload as they arrived."""
    item = await call.services.quarantine.find(call.path_id("number"))
    headers = {
        "X-Content-Type-Options": "nosniff",
        # Anybody may have sent these bytes: a browser must not show them as a page of this origin.
        hdrs.CONTENT_DISPOSITION: f'attachment; filename="quarantine-{item.id}"',
    }
    return web.Response(body=call.services.quarantine.content(item), content_type=BYTES, headers=headers)


async def replay(call: Call[Query, ReplayChoice]) -> Replayed:
    """Try payloads in quarantine again. An understood one becomes readings; every other one stays."""
    done = await call.services.quarantine.replay(
        call.progress, numbers=call.body.numbers or (), device=call.body.device
    )
    return Replayed(understood=done.understood, left=done.left, reasons=done.reasons)


def _members(call: Call[Any, Any], item: Quarantined) -> dict[str, object]:
    raw = call.services.quarantine.content(item)
    return {
        "number": item.id,
        "received_at": iso(item.received_at // MS),
        "channel": item.channel,
        "source": item.source,
        "reason": item.reason,
        "kind": kind_of(item),
        "bytes": len(raw),
        "driver": item.driver,
        "hint": item.hint,
        "label": item.label,
        "query": item.query,
        "begins": raw[:START_BYTES].decode("utf-8", "backslashreplace"),
    }


PATH = "/manage/quarantine"
ONE = f"{PATH}/{{number:[0-9]+}}"

ENDPOINTS = (
    Endpoint("GET", PATH, list_quarantine, "Quarantine", QuarantineQuery, Quarantine, owner_only=True),
    Endpoint(
        "POST",
        f"{PATH}/replay",
        replay,
        "Try again what is in quarantine",
        Query,
        Replayed,
        body=ReplayChoice,
        refusals=(404,),
        long=True,
        owner_only=True,
    ),
    Endpoint(
        "GET",
        ONE,
        one_quarantined,
        "A payload in quarantine, and what is understood of it today",
        Query,
        OneQuarantined,
        owner_only=True,
    ),
    Endpoint(
        "GET",
        f"{ONE}/raw",
        raw_payload,
        "The bytes of a payload in quarantine",
        Query,
        Media((BYTES,)),
        owner_only=True,
    ),
)
"""Quarantine."""
