"""Commands on quarantine."""

from collections import Counter
from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.domain.device import find_device
from gateway.domain.quarantined import Quarantined
from gateway.domain.report import Report
from gateway.errors import DriverError, NotFound
from gateway.intake.replay import REFUSED, Replay, is_of, payload_of
from gateway.services.build import Services
from gateway.store.protocol import Store

PAGE_ITEMS = 100


async def _replay(services: Services, arguments: Arguments, progress: Progress) -> dict[str, Any]:
    """Those with the ids, of the device, or all: how many were understood, and why the others were not."""
    ids, device = sorted(set(arguments["ids"])), arguments["device"]
    found = [await item_of(services.store, item_id) for item_id in ids]
    names = None if device is None else await _names(services.store, device)
    replay = Replay(services.store, services.intake, services.notices)
    total = len(ids) or (await services.store.quarantine.state()).items
    understood = done = place = 0
    reasons: Counter[str] = Counter()
    while page := found if ids else await services.store.quarantine.after(place, PAGE_ITEMS):
        gone: list[int] = []
        for item in page:
            done += 1
            if names is None or is_of(item, _reports(services, item), names):
                reason = await replay.settle(item)
                if reason is None:
                    gone.append(item.id)
                else:
                    reasons[reason] += 1
            progress(done, max(done, total), "payloads looked at")
        await services.store.quarantine.remove(gone)
        understood += len(gone)
        if ids:
            break
        place = page[-1].id
    return {"understood": understood, "left": reasons.total(), "reasons": dict(reasons.most_common())}


async def _names(store: Store, device: str) -> set[str]:
    """What a device is called; the very word where there is none yet, as quarantine's devices mostly are."""
    try:
        found = find_device(await store.devices.all(), device)
    except NotFound:
        return {device}
    others = [word for alias in found.aliases for word in (alias.key, alias.stable_id)]
    return {found.key, found.stable_id, found.name, *others} - {""}


def _reports(services: Services, item: Quarantined) -> list[Report]:
    if item.channel.startswith(REFUSED):
        return []
    try:
        return services.intake.decode(payload_of(item)).reports
    except DriverError:
        return []


async def item_of(store: Store, item_id: int) -> Quarantined:
    """One of them; `NotFound` says where the numbers are shown."""
    item = await store.quarantine.get(item_id)
    if item is None:
        raise NotFound(
            f"nothing in quarantine has the number {item_id}; `quarantine list` shows what is there"
        )
    return item


COMMANDS: dict[str, Command] = {"quarantine.replay": _replay}
"""By the names that the command line calls them by."""
