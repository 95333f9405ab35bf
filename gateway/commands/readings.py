"""Commands on readings."""

from gateway.commands.base import Arguments, Command, Progress, as_bytes
from gateway.commands.sessions import session_of
from gateway.services.build import Services

NO_ADDRESS = ""
"""A file comes from nowhere: readings without an address stay so."""


async def _import(services: Services, arguments: Arguments, _: Progress) -> int:
    session = await session_of(services, arguments["session_id"])
    body = as_bytes(arguments["body"])
    reset, later = arguments["reset"], arguments.get("later", [])
    return await services.importing.run(session, body, arguments["media"], NO_ADDRESS, reset, later)


async def _take_back(services: Services, arguments: Arguments, _: Progress) -> int:
    """How many readings are given out again as they were before they were edited."""
    session = await session_of(services, arguments["session_id"])
    return await services.importing.take_back(session, arguments["ids"])


COMMANDS: dict[str, Command] = {"readings.import": _import, "readings.take-back": _take_back}
"""By the names that the command line calls them by."""
