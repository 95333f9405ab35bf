"""Commands on brew sessions, of any account: the command line belongs to whoever owns the data."""

from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.commands.recipes import recipe_of
from gateway.domain.brewsession import BrewSession
from gateway.domain.target import Target
from gateway.errors import InvalidInput, NotFound
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services
from gateway.services.unforwarded import called, session_to_nowhere, twin_warning, which


async def _add(services: Services, arguments: Arguments, _: Progress) -> dict[str, Any]:
    """The new session's id, and what the user should know about it, in sentences."""
    account_id = await _account_id(services, arguments.pop("account", None), arguments.get("recipe_id"))
    added = await services.brewsessions.add_session(account_id, SessionChange(**arguments))
    return {"id": added.id, "said": [*await _twins(services, added), *await _nowhere(services, added)]}


async def _twins(services: Services, session: BrewSession) -> list[str]:
    warning = twin_warning(session, await services.brewsessions.twins(session))
    return [] if warning is None else [f"Warning: {warning}."]


async def _account_id(services: Services, name: str | None, recipe_id: int | None) -> int:
    """The named account, else the recipe's, else the owner's."""
    if name is None and recipe_id:
        return (await recipe_of(services, recipe_id)).account_id
    return await services.access.account_id(name)


async def _update(services: Services, arguments: Arguments, _: Progress) -> list[str]:
    """What the user should know about it, in sentences."""
    session = await session_of(services, arguments.pop("session_id"))
    changed = await services.brewsessions.update_session(session, SessionChange(**arguments))
    said = [] if changed.batchcode == session.batchcode else await _twins(services, changed)
    return said if not arguments["upstream_id"] else [*said, *await _nowhere(services, changed)]


async def _next(services: Services, arguments: Arguments, _: Progress) -> dict[str, Any]:
    """The new session's id, and what was done, in sentences."""
    old = await session_of(services, arguments.pop("session_id"))
    phase, number = arguments.pop("phase"), arguments.pop("upstream_id")
    target = await _target_of(services, old) if number else None
    said_of_it = SessionChange(**arguments, upstream_id=None if target else number)
    done = await services.brewsessions.next_session(old, phase, said_of_it)
    if target is not None:
        await services.targets.map(done.session, target.name, number)
    devices = await services.store.devices.all()
    names = [called(device, devices) for device in done.devices]
    reports = "No device reported into it, so none reports into the new one; `devices assign` changes that."
    if names:
        report = "reports" if len(names) == 1 else "report"
        reports = f"{', '.join(names)} {report} into brew session {which(done.session)} from now on."
    said = [f"Brew session {which(old)} is in the phase {phase} now; its readings stay there.", reports]
    said += [*await _twins(services, done.session), *await _nowhere(services, done.session)]
    return {"id": done.session.id, "said": said}


async def _target_of(services: Services, session: BrewSession) -> Target | None:
    """Where a brew session is forwarded to; `InvalidInput` where that is not one place."""
    targets = await services.store.targets.all()
    takers = [target for target in targets if session.id in await services.store.targets.sessions(target)]
    if len(takers) > 1:
        names = ", ".join(target.name for target in takers)
        raise InvalidInput(
            f"brew session {which(session)} goes to several targets ({names}): leave out --upstream-id, "
            "and say the numbers of the new one by `targets map`"
        )
    return takers[0] if takers else None


async def _nowhere(services: Services, session: BrewSession) -> list[str]:
    found = await session_to_nowhere(services.store, session)
    return [] if found is None else [f"So far {found.text}; {found.remedy}."]


async def _delete(services: Services, arguments: Arguments, _: Progress) -> dict[str, Any]:
    """Its batch code, and the names of the devices that were in it."""
    session = await session_of(services, arguments["session_id"])
    devices = [
        device.name for device in await services.store.devices.all() if device.session_id == session.id
    ]
    await services.brewsessions.delete_session(session)
    return {"batchcode": session.batchcode, "devices": devices}


async def _undelete(services: Services, arguments: Arguments, _: Progress) -> dict[str, Any]:
    """Its batch code, and how many readings it has."""
    counts = {found.session.id: found.readings for found in await services.store.sessions.deleted()}
    session = await services.brewsessions.undelete_session(arguments["session_id"])
    return {"batchcode": session.batchcode, "readings": counts.get(session.id, 0)}


async def _purge(services: Services, arguments: Arguments, progress: Progress) -> int:
    """How many readings are gone for good."""
    session_id, of = arguments["session_id"], arguments["readings"]
    return await services.brewsessions.purge_session(
        session_id, lambda done: progress(done, of, "readings deleted for good")
    )


async def session_of(services: Services, session_id: int) -> BrewSession:
    """The brew session with this id, of whatever account."""
    session = await services.store.sessions.get(session_id)
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
