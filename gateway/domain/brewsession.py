"""A brew session: one batch of beer being fermented."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrewSession:
    """One batch. `upstream_id` is its number at the target, None while it is not forwarded.

    `recipe_id` is 0 while the session has no recipe. Times are Unix seconds.
    """

    id: int
    account_id: int
    batchcode: str
    phase: str
    recipe_id: int
    upstream_id: int | None
    created_at: int
    updated_at: int
