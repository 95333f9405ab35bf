"""The check that an account is still empty."""

from contextlib import aclosing

from gateway.errors import NameTaken
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
    if not found:
        # Also readings in no brew session, because they are the owner's, and readings in a deleted session.
        lines = services.store.readings.json_lines(
            last=1, device_id=None, session_id=None, account_id=account_id
        )
        async with aclosing(lines):
            if await anext(lines, None) is not None:
                found = ["readings"]
    if found:
        raise NameTaken(
            f"the account has {', '.join(found)} already; sample data want an empty gateway: "
            "name a new directory with --data-dir, or an empty account with --account"
        )
