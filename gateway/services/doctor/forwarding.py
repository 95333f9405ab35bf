"""Readings that wait to be forwarded, and those that nobody will ever forward."""

from collections.abc import Sequence

from gateway.services.doctor.database import opened, usable
from gateway.services.doctor.finding import Case, Finding, ok, warning
from gateway.services.doctor.services import services


async def waiting(case: Case) -> Sequence[Finding]:
    """How many wait for each service."""
    if not usable(case):
        return []
    targets = {service.url: service.unnamed for service in await services(case)}
    async with opened(case) as store:
        totals = await store.ledger.totals(targets)
    found = [
        ok(f"{target.name}: {target.pending:,} of {target.readings:,} readings wait")
        for target in totals.targets
    ]
    if totals.without_target:
        text = f"{totals.without_target:,} readings are in brew sessions of a service that is not configured"
        found.append(warning(text, "name it with --upstream-url or `targets add`; until then they wait"))
    return found or [ok("nothing is forwarded")]
