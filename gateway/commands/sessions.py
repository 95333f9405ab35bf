"""Commands on brew sessions, of any account: the command line belongs to whoever owns the data."""

from gateway.commands.base import Arguments, Command, Progress
from gateway.domain.brewsession import BrewSession
from gateway.errors import NotFound
from gateway.services.brewing import SessionChange
from gateway.services.parts import Parts


async def _add(parts: Parts, arguments: Arguments, _: Progress) -> int:
    account_id = await parts.access.account_id(arguments.pop("account", None))
    return (await parts.brewing.add_session(account_id, SessionChange(**arguments))).id


async def _update(parts: Parts, arguments: Arguments, _: Progress) -> None:
    session = await session_of(parts, arguments.pop("session_id"))
    await parts.brewing.update_session(session, SessionChange(**arguments))


async def _delete(parts: Parts, arguments: Arguments, _: Progress) -> None:
    await parts.brewing.delete_session(await session_of(parts, arguments["session_id"]))


async def session_of(parts: Parts, session_id: int) -> BrewSession:
    """The brew session with this id, of whatever account."""
    session = await parts.store.sessions.get(session_id)
    if session is None:
        raise NotFound(f"no brew session {session_id}; `sessions list` shows them")
    return session


COMMANDS: dict[str, Command] = {
    "sessions.add": _add,
    "sessions.update": _update,
    "sessions.delete": _delete,
}
