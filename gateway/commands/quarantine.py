"""Commands on quarantine."""

import json
from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.domain.quarantined import Quarantined
from gateway.errors import NotFound
from gateway.services.parts import Parts

PAGE_ITEMS = 100

REFUSED = "forward "
"""How the channel of a reading begins that an upstream refused; its payload is the reading."""


async def _replay(parts: Parts, arguments: Arguments, progress: Progress) -> dict[str, int]:
    """Those with the ids, of the device, or all: how many were understood, and how many are still not."""
    ids, device = arguments["ids"], arguments["device"]
    found = [await _item(parts, item_id) for item_id in ids]
    total = len(ids) or (await parts.store.quarantine.state()).items
    understood = left = done = 0
    place = 0
    while page := found if ids else await parts.store.quarantine.after(place, PAGE_ITEMS):
        gone = [item.id for item in page if await _taken(parts, item, device)]
        await parts.store.quarantine.remove(gone)
        understood += len(gone)
        left += len(page) - len(gone)
        done += len(page)
        progress(done, total, "payloads looked at")
        if ids:
            break
        place = page[-1].id
    return {"understood": understood, "left": left}


async def _taken(parts: Parts, item: Quarantined, device: str | None) -> bool:
    """Whether it is a reading by now, or in the queue again, and can leave quarantine."""
    if device is not None and not is_of(item, device):
        return False
    if item.channel.startswith(REFUSED):
        return await parts.store.sent.send_one_again(_oid(item))
    return (await parts.intake.take_again(item)).quarantined is None


def is_of(item: Quarantined, device: str) -> bool:
    """Whether the payload says the device's name or id anywhere: nobody understood it, so no field is known."""
    wanted = device.partition(":")[2] if ":" in device else device
    said: list[Any] = [
        item.body.decode("utf-8", "replace"),
        item.query,
        item.label,
        item.channel,
        item.source,
    ]
    return any(wanted in text for text in said)


async def _item(parts: Parts, item_id: int) -> Quarantined:
    item = await parts.store.quarantine.get(item_id)
    if item is None:
        raise NotFound(
            f"nothing in quarantine has the number {item_id}; `quarantine list` shows what is there"
        )
    return item


def _oid(item: Quarantined) -> str:
    try:
        return str(json.loads(item.body)["_id"]["$oid"])
    except (ValueError, KeyError, TypeError):
        return ""


COMMANDS: dict[str, Command] = {"quarantine.replay": _replay}
"""By the names that the command line calls them by."""
