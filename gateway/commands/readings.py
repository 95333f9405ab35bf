"""Commands on readings."""

from gateway.commands.base import Arguments, Command, Progress, as_bytes
from gateway.commands.sessions import session_of
from gateway.services.parts import Parts

NO_ADDRESS = ""
"""A file comes from nowhere: readings without an address stay so."""


async def _import(parts: Parts, arguments: Arguments, _: Progress) -> int:
    session = await session_of(parts, arguments["session_id"])
    body = as_bytes(arguments["body"])
    return await parts.importing.run(session, body, arguments["media"], NO_ADDRESS, arguments["reset"])


COMMANDS: dict[str, Command] = {"readings.import": _import}
"""By the names that the command line calls them by."""
