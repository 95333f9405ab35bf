"""Commands on devices."""

from gateway.commands.base import Arguments, Command, Progress
from gateway.services.parts import Parts


async def _assign(parts: Parts, arguments: Arguments, _: Progress) -> int:
    return await parts.brewing.assign(**arguments)


async def _release(parts: Parts, arguments: Arguments, _: Progress) -> None:
    await parts.brewing.release(**arguments)


COMMANDS: dict[str, Command] = {"devices.assign": _assign, "devices.release": _release}
