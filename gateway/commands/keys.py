"""Commands on API keys."""

from gateway.commands.base import Arguments, Command, Progress
from gateway.domain.key import ALL_SCOPES
from gateway.services.build import Services


async def _add(services: Services, arguments: Arguments, _: Progress) -> str:
    scopes = frozenset(arguments["scopes"] or ALL_SCOPES)
    return await services.access.add(arguments["name"], scopes, arguments.get("account"))


async def _revoke(services: Services, arguments: Arguments, _: Progress) -> None:
    await services.access.revoke(arguments["name"], arguments.get("account"))


COMMANDS: dict[str, Command] = {"keys.add": _add, "keys.revoke": _revoke}
