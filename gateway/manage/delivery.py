"""`/manage/brewsessions/:id/delivery`: the delivery of a brew session's readings to the targets."""

from typing import Literal

from pydantic import Field

from gateway.api.fermentation import ObjectId
from gateway.domain.target import ReadingDelivery
from gateway.domain.times import stamp
from gateway.http.endpoint import AnswerModel, Call, Endpoint, Query
from gateway.http.parameters import Count
from gateway.http.records import own_session

State = Literal["pending", "forwarded", "refused", "superseded", "not forwarded", "edited here, not there"]

READINGS, READINGS_MAX = 100, 10_000
"""Readings in one answer, by default and at most; a higher limit counts as the maximum."""


class TargetDelivery(AnswerModel):
    """Counts of a brew session's readings at a target.

    `upstream_id` is the session's number there, null if the session is no longer forwarded there. `edited`
    counts readings that were edited here and are at the target as they were before, `superseded` those that a
    target of the latest reading passed over.
    """

    target: str
    upstream_id: int | None
    pending: int
    forwarded: int
    refused: int
    superseded: int
    not_forwarded: int
    edited: int


class SessionDelivery(AnswerModel):
    """Counts of a brew session's readings at every target that takes it now, or took it before."""

    message: Literal["success"] = "success"
    targets: list[TargetDelivery]


class OneDelivery(AnswerModel):
    """A reading and its state by target; `reasons` explains a refusal, or an edit that is only here."""

    id: ObjectId = Field(alias="_id")
    created_at: str
    delivery: dict[str, State]
    reasons: dict[str, str]


class ReadingDeliveries(AnswerModel):
    """Readings with their states, oldest first."""

    message: Literal["success"] = "success"
    readings: list[OneDelivery]


class DeliveriesQuery(Query):
    """Choice of readings; filter, then skip, then limit."""

    state: State | None = Field(default=None, description="Only those that are so at some target.")
    skip: Count = Field(default=0, description="Readings to leave out, from the oldest.")
    limit: Count = Field(
        default=READINGS, description=f"Readings in the answer; above {READINGS_MAX} it is {READINGS_MAX}."
    )


async def session_delivery(call: Call[Query, None]) -> SessionDelivery:
    """Count the readings of a brew session by target and state."""
    session = await own_session(call)
    found = await call.store.deliveries.counts(session.id)
    return SessionDelivery(targets=[TargetDelivery.model_validate(d, from_attributes=True) for d in found])


async def reading_deliveries(call: Call[DeliveriesQuery, None]) -> ReadingDeliveries:
    """List readings of a brew session with their state at each target."""
    session, wanted = await own_session(call), call.query
    found = await call.store.deliveries.of_readings(
        session.id, state=wanted.state, limit=min(wanted.limit, READINGS_MAX), skip=wanted.skip
    )
    return ReadingDeliveries(readings=[_shown(reading) for reading in found])


def _shown(reading: ReadingDelivery) -> OneDelivery:
    return OneDelivery.model_validate(
        {
            "_id": {"$oid": reading.oid},
            "created_at": stamp(reading.created_at),
            "delivery": reading.states,
            "reasons": reading.reasons,
        }
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/manage/brewsessions/{brew_session_id}/delivery",
        session_delivery,
        "What became of a brew session's readings at the services that they are forwarded to",
        Query,
        SessionDelivery,
    ),
    Endpoint(
        "GET",
        "/manage/brewsessions/{brew_session_id}/delivery/readings",
        reading_deliveries,
        "The same of single readings",
        DeliveriesQuery,
        ReadingDeliveries,
    ),
)
"""Delivery."""
