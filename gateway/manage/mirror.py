"""`POST /manage/mirror`: copy another Brewing Data Service into an account; for the owner only."""

from pydantic import Field

from gateway.config import base_url, is_key
from gateway.domain.target import MIRROR_RATE, MIRROR_RATE_MAX, MIRROR_RATE_MIN
from gateway.errors import InvalidInput, NameTaken
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Query
from gateway.http.parameters import Words

URL_CHARACTERS, KEY_CHARACTERS = 2000, 10_000


class MirrorOrder(Body):
    """The service to copy, and the key that reads it."""

    url: Words = Field(max_length=URL_CHARACTERS, description="The address of the service, without `/v1`.")
    key: Words = Field(max_length=KEY_CHARACTERS, description="An API key of that service.")
    photos: bool = Field(default=False, description="Copy photos, too; that asks for every recipe.")
    rate: float = Field(
        default=MIRROR_RATE, ge=MIRROR_RATE_MIN, le=MIRROR_RATE_MAX, description="Requests a second."
    )


class CopiedRecords(AnswerModel):
    """Counts of records of one kind; `kept` ones were changed or deleted here after the change there."""

    copied: int
    updated: int
    unchanged: int
    kept: int
    failed: int


class Mirrored(Done):
    """Counts of the records by kind, and lines about the run; `unreported` counts the lines left out."""

    counts: dict[str, CopiedRecords]
    requests: int
    reports: list[str]
    unreported: int


async def copy_service(call: Call[Query, MirrorOrder]) -> Mirrored:
    """Copy new and changed records of the service into the caller's account; keep the records here."""
    # Here, because the mirror costs memory that a gateway pays only once it copies a service.
    from gateway.mirror.client import MirrorStopped
    from gateway.mirror.copying import mirror, under_way
    from gateway.mirror.run import MirrorSource

    order, services = call.body, call.services
    if not is_key(order.key):
        raise InvalidInput("an API key is one line of letters, digits and signs")
    try:
        url = base_url(order.url)
    except ValueError as error:
        raise InvalidInput(f"url {error}") from error
    if under_way(services.store).locked():
        raise NameTaken("the gateway is copying a service right now; /manage/status shows how far it is")
    source = MirrorSource(url, order.key, order.photos, order.rate)
    try:
        tally = await mirror(services, source, call.caller.account_id, call.progress)
    except MirrorStopped as error:  # the trouble is there and not here, so it is no 500
        raise InvalidInput(str(error)) from error
    return Mirrored.model_validate({**tally.as_json(), "message": "success"})


ENDPOINTS = (
    Endpoint(
        "POST",
        "/manage/mirror",
        copy_service,
        "Copy another Brewing Data Service",
        Query,
        Mirrored,
        body=MirrorOrder,
        refusals=(409,),
        long=True,
        owner_only=True,
    ),
)
"""The mirror."""
