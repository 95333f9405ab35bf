"""Readings that wait to be forwarded, and those that nobody will ever forward."""

from collections.abc import Sequence

from gateway.services.doctor.database import opened, usable
from gateway.services.doctor.finding import Case, Finding, ok, warning
from gateway.services.doctor.services import services
from gateway.services.nowhere import devices_to_nowhere, forwarded_sessions, readings_to_nowhere


async def waiting(case: Case) -> Sequence[Finding]:
    """How many wait for each service."""
    if not usable(case):
        return []
    configured = {service.url: service.as_target() for service in await services(case)}
    async with opened(case) as store:
        totals = await store.ledger.totals({target.url: target.unnamed for target in configured.values()})
        known = {target.url: target for target in await store.targets.all()}
        targets = list({**known, **configured}.values())
        forgotten = [
            *await devices_to_nowhere(store, targets),
            *await readings_to_nowhere(store, targets),
        ]
        taken = await forwarded_sessions(store, targets)
    found = [
        ok(f"{target.name}: {target.pending:,} of {target.readings:,} readings wait")
        for target in totals.targets
    ]
    if totals.without_target:
        text = f"{totals.without_target:,} readings are in brew sessions of a service that is not configured"
        found.append(warning(text, "name it with --upstream-url or `targets add`; until then they wait"))
    if targets and not taken:
        text = f"no brew session is forwarded to {targets[0].name} ({targets[0].url}) yet"
        remedy = f"`targets sessions {targets[0].name}` shows its brew sessions, `targets map` forwards one"
        found.append(warning(text, remedy))
    found += [warning(one.text, one.remedy) for one in forgotten]
    return found or [ok("nothing is forwarded")]
