"""How the gateway that runs is doing."""

from gateway.commands.base import Arguments, Command, Progress
from gateway.services.parts import Parts


async def _parts(parts: Parts, _: Arguments, __: Progress) -> dict[str, str]:
    """Every listener, upstream and service, with its state in words."""
    return dict(parts.stats.parts)


COMMANDS: dict[str, Command] = {"health.parts": _parts}
