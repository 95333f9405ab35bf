"""Commands on accounts."""

from gateway.commands.base import Arguments, Command, Progress
from gateway.services.build import Services


async def _add(services: Services, arguments: Arguments, _: Progress) -> int:
    return (await services.access.add_account(arguments["name"])).id


COMMANDS: dict[str, Command] = {"accounts.add": _add}
