"""`POST /manage/sample-data`: fill an empty account with a made-up brewery; for the owner only."""

from pydantic import Field

from gateway.http.endpoint import Body, Call, Done, Endpoint, Query

SEED_MAX = 999_999


class SampleOrder(Body):
    """Options of the made-up brewery."""

    seed: int = Field(
        default=1, ge=0, le=SEED_MAX, description="Another seed, another noise in the readings."
    )
    photos: bool = Field(default=True, description="Drawing them takes a small computer a minute.")


class Filled(Done):
    """Counts of the records that were made.

    `running` is the id of a brew session with a hydrometer in it, `recipe` the id of that
    session's recipe.
    """

    recipes: int
    brewsessions: int
    readings: int
    photos: int
    running: int
    recipe: int


async def fill_account(call: Call[Query, SampleOrder]) -> Filled:
    """Fill the caller's account with a made-up brewery. An account with records of its own is refused."""
    from gateway.samples.brewery import fill  # here, because hardly any gateway ever needs it

    order, account_id = call.body, call.caller.account_id
    made = await fill(call.services, account_id, call.progress, seed=order.seed, photos=order.photos)
    return Filled(
        recipes=made.recipes,
        brewsessions=made.sessions,
        readings=made.readings,
        photos=made.photos,
        running=made.running,
        recipe=made.recipe,
    )


ENDPOINTS = (
    Endpoint(
        "POST",
        "/manage/sample-data",
        fill_account,
        "Fill an empty account with a made-up brewery",
        Query,
        Filled,
        body=SampleOrder,
        refusals=(409,),
        long=True,
        owner_only=True,
    ),
)
"""Sample data."""
