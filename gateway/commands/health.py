"""How the gateway that runs is doing."""

from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.services.build import Services


async def _parts(services: Services, _: Arguments, __: Progress) -> dict[str, str]:
    """Every listener, upstream and service, with its state in words."""
    return dict(services.stats.parts)


async def _topics(services: Services, _: Arguments, __: Progress) -> dict[str, Any]:
    """MQTT topics whose messages came to nothing, with their counts, and the count of the others."""
    unread = services.stats.unread
    return {"messages": dict(unread.messages), "others": unread.others}


COMMANDS: dict[str, Command] = {"health.parts": _parts, "health.topics": _topics}
