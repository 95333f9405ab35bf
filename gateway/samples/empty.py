"""The check that an account is still empty."""

import json
from contextlib import aclosing

from gateway.errors import InvalidInput
from gateway.services.build import Services
from gateway.store.queries import RecipeSearch, Search


async def check_empty(services: Services, account_id: int) -> None:
    """Refuse an account with records of its own: made-up data must not mix with real data."""
    recipes, _ = await services.store.recipes.search(
        RecipeSearch(account_id=account_id, snapshots=True, limit=0)
    )
    sessions, _ = await services.store.sessions.search(Search(account_id=account_id, limit=0))
    folders = await services.store.folders.all(account_id)
    counts = {"recipes": recipes, "brew sessions": sessions, "folders": len(folders)}
    found = [what for what, count in counts.items() if count]
    if not found and await _has_readings(services, account_id):
        found = ["readings"]
    if found:
        raise InvalidInput(
            f"the account has {', '.join(found)} already; sample data want an empty gateway: "
            "name a new directory with --data-dir, or an empty account with --account"
        )


async def _has_readings(services: Services, account_id: int) -> bool:
    """Also those in no brew session, which are the owner's, and those in a deleted one."""
    everything = await services.store.readings.count()
    if not everything:
        return False
    lines = services.store.readings.json_lines(last=everything, device_id=None, session_id=None)
    async with aclosing(lines):
        async for line in lines:
            if json.loads(line)["login_id"] == account_id:
                return True
    return False
