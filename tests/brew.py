"""Brew sessions for tests."""

from gateway.domain.brewsession import BrewSession


def brew(
    *,
    account_id: int = 1,
    batchcode: str = "HP001",
    phase: str = "",
    upstream_id: int | None = None,
    now: int = 0,
) -> BrewSession:
    """A session as the store takes it: without an id."""
    return BrewSession(0, account_id, batchcode, phase, 0, upstream_id, now, now)
