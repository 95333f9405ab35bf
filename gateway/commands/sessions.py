"""Commands on brew sessions, of any account: the command line belongs to whoever owns the data."""

from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.commands.recipes import recipe_of
from gateway.domain.brewsession import BrewSession
from gateway.domain.target import Target
from gateway.errors import InvalidInput, NotFound
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Parts
from gateway.services.nowhere import called, session_to_nowhere, twin_warning, which


async def _add(parts: Parts, arguments: Arguments, _: Progress) -> dict[str, Any]:
    """The new session's id, and what the user should know about it, in sentences."""
    account_id = await _account_id(parts, arguments.pop("account", None), arguments.get("recipe_id"))
    added = await parts.brewing.add_session(account_id, SessionChange(**arguments))
    return {"id": added.id, "said": [*await _twins(parts, added), *await _nowhere(parts, added)]}


async def _twins(parts: Parts, session: BrewSession) -> list[str]:
    warning = twin_warning(session, await parts.brewing.twins(session))
    return [] if warning is None else [f"Warning: {warning}."]


async def _account_id(parts: Parts, name: str | None, recipe_id: int | None) -> int:
    """The named account, else the recipe's, else the owner's."""
    if name is None and recipe_id:
        return (await recipe_of(parts, recipe_id)).account_id
    return await parts.access.account_id(name)


async def _update(parts: Parts, arguments: Arguments, _: Progress) -> list[str]:
    """What the user should know about it, in sentences."""
    session = await session_of(parts, arguments.pop("session_id"))
    changed = await parts.brewing.update_session(session, SessionChange(**arguments))
    said = [] if changed.batchcode == session.batchcode else await _twins(parts, changed)
    return said if not arguments["upstream_id"] else [*said, *await _nowhere(parts, changed)]


async def _next(parts: Parts, arguments: Arguments, _: Progress) -> dict[str, Any]:
    """The new session's id, and what was done, in sentences."""
    old = await session_of(parts, arguments.pop("session_id"))
    phase, number = arguments.pop("phase"), arguments.pop("upstream_id")
    target = await _target_of(parts, old) if number else None
    said_of_it = SessionChange(**arguments, upstream_id=None if target else number)
    done = await parts.brewing.next_session(old, phase, said_of_it)
    if target is not None:
        await parts.targets.map(done.session, target.name, number)
    devices = await parts.store.devices.all()
    names = [called(device, devices) for device in done.devices]
    reports = "No device reported into it, so none reports into the new one; `devices assign` changes that."
    if names:
        report = "reports" if len(names) == 1 else "report"
        reports = f"{', '.join(names)} {report} into brew session {which(done.session)} from now on."
    said = [f"Brew session {which(old)} is in the phase {phase} now; its readings stay there.", reports]
    said += [*await _twins(parts, done.session), *await _nowhere(parts, done.session)]
    return {"id": done.session.id, "said": said}


async def _target_of(parts: Parts, session: BrewSession) -> Target | None:
    """Where a brew session is forwarded to; `InvalidInput` where that is not one place."""
    targets = await parts.store.targets.all()
    takers = [target for target in targets if session.id in await parts.store.targets.sessions(target)]
    if len(takers) > 1:
        names = ", ".join(target.name for target in takers)
        raise InvalidInput(
            f"brew session {which(session)} goes to several targets ({names}): leave out --upstream-id, "
            "and say the numbers of the new one by `targets map`"
        )
    return takers[0] if takers else None


async def _nowhere(parts: Parts, session: BrewSession) -> list[str]:
    found = await session_to_nowhere(parts.store, session)
    return [] if found is None else [f"So far {found.text}; {found.remedy}."]


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


def no_session(session_id: int | str) -> NotFound:
    """What is said of an id that no brew session has."""
    return NotFound(f"no brew session {session_id}; `sessions list` shows them")


COMMANDS: dict[str, Command] = {
    "sessions.add": _add,
    "sessions.update": _update,
    "sessions.next": _next,
    "sessions.delete": _delete,
    "sessions.undelete": _undelete,
    "sessions.purge": _purge,
}
