"""Commands on brew sessions, of any account: the command line belongs to whoever owns the data."""

from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.commands.recipes import recipe_of
from gateway.domain.brewsession import BrewSession
from gateway.errors import NotFound
from gateway.services.brewing import SessionChange
from gateway.services.parts import Parts


async def _add(parts: Parts, arguments: Arguments, _: Progress) -> int:
    account_id = await _account_id(parts, arguments.pop("account", None), arguments.get("recipe_id"))
    return (await parts.brewing.add_session(account_id, SessionChange(**arguments))).id


async def _account_id(parts: Parts, name: str | None, recipe_id: int | None) -> int:
    """The named account, else the recipe's, else the owner's."""
    if name is None and recipe_id:
        return (await recipe_of(parts, recipe_id)).account_id
    return await parts.access.account_id(name)


async def _update(parts: Parts, arguments: Arguments, _: Progress) -> None:
    session = await session_of(parts, arguments.pop("session_id"))
    await parts.brewing.update_session(session, SessionChange(**arguments))


async def _delete(parts: Parts, arguments: Arguments, _: Progress) -> dict[str, Any]:
    """Its batch code, and the names of the devices that were in it."""
    session = await session_of(parts, arguments["session_id"])
    devices = [device.name for device in await parts.store.devices.all() if device.session_id == session.id]
    await parts.brewing.delete_session(session)
    return {"batchcode": session.batchcode, "devices": devices}


async def _undelete(parts: Parts, arguments: Arguments, _: Progress) -> dict[str, Any]:
    """Its batch code, and how many readings it has."""
    counts = {found.session.id: found.readings for found in await parts.store.sessions.deleted()}
    session = await parts.brewing.undelete_session(arguments["session_id"])
    return {"batchcode": session.batchcode, "readings": counts.get(session.id, 0)}


async def _purge(parts: Parts, arguments: Arguments, progress: Progress) -> int:
    """How many readings are gone for good."""
    session_id, of = arguments["session_id"], arguments["readings"]
    return await parts.brewing.purge_session(
        session_id, lambda done: progress(done, of, "readings deleted for good")
    )


async def session_of(parts: Parts, session_id: int) -> BrewSession:
    """The brew session with this id, of whatever account."""
    session = await parts.store.sessions.get(session_id)
    if session is None:
        raise no_session(session_id)
    return session


def no_session(session_id: int) -> NotFound:
    """What is said of an id that no brew session has."""
    return NotFound(f"no brew session {session_id}; `sessions list` shows them")


COMMANDS: dict[str, Command] = {
    "sessions.add": _add,
    "sessions.update": _update,
    "sessions.delete": _delete,
    "sessions.undelete": _undelete,
    "sessions.purge": _purge,
}
