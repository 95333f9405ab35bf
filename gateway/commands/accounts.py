"""Commands on accounts."""

from gateway.commands.base import Arguments, Command, Progress
from gateway.services.build import Parts


async def _add(parts: Parts, arguments: Arguments, _: Progress) -> int:
    return (await parts.access.add_account(arguments["name"])).id


COMMANDS: dict[str, Command] = {"accounts.add": _add}
