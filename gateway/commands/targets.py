"""Commands on targets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from gateway.commands.base import Arguments, Command, Progress
from gateway.commands.sessions import session_of
from gateway.domain.target import Delivery, Target
from gateway.errors import ConfigError, InvalidInput
from gateway.forward.client import open_session
from gateway.forward.import_target import ImportTarget
from gateway.forward.probe import ProbeFinding, brew_sessions, probe, reached
from gateway.services.build import Services
from gateway.services.targets import checked, key_of
from gateway.services.unforwarded import devices_to_nowhere, which

NOT_SHOWN = {"target", "oldest_at", "edited_since"}
"""Members of a `Delivery` that are shown once for all brew sessions of a target."""


async def _list(services: Services, _: Arguments, __: Progress) -> list[dict[str, Any]]:
    """Every target with its state in words, and counts of readings in all and by brew session."""
    deliveries = await services.store.deliveries.counts()
    return [
        _shown(services, target, [d for d in deliveries if d.target == target.name])
        for target in await services.store.targets.all()
    ]


async def _forgotten(services: Services, _: Arguments, __: Progress) -> list[str]:
    """Devices whose readings go to no target, in sentences."""
    found = await devices_to_nowhere(services.store, await services.store.targets.all())
    return [f"{one.text[0].upper()}{one.text[1:]}; {one.remedy}." for one in found]


def _shown(services: Services, target: Target, deliveries: list[Delivery]) -> dict[str, Any]:
    state = services.targets.state_of(target)
    counted = ("pending", "forwarded", "refused", "not_forwarded", "edited")
    waiting_since = [d.oldest_at for d in deliveries if d.oldest_at is not None]
    edited_since = [d.edited_since for d in deliveries if d.edited_since is not None]
    return {
        "name": target.name,
        "url": target.url,
        "key_file": target.key_file,
        "per_minute": target.per_minute,
        "paused": target.paused,
        "state": state.words,
        "next_at": state.next_at,
        "oldest_at": min(waiting_since) / 1000 if waiting_since else None,
        "edited_since": min(edited_since, default=None),
        **{name: sum(getattr(d, name) for d in deliveries) for name in counted},
        "sessions": [
            {name: value for name, value in asdict(d).items() if name not in NOT_SHOWN} for d in deliveries
        ],
    }


async def _add(services: Services, arguments: Arguments, _: Progress) -> str:
    """The address as it was taken."""
    return (await services.targets.add(**arguments)).url


async def _remove(services: Services, arguments: Arguments, _: Progress) -> None:
    await services.targets.remove(arguments["name"])


async def _pause(services: Services, arguments: Arguments, _: Progress) -> None:
    await services.targets.pause(arguments["name"])


async def _resume(services: Services, arguments: Arguments, _: Progress) -> None:
    await services.targets.resume(arguments["name"])


async def _map(services: Services, arguments: Arguments, _: Progress) -> list[str]:
    """What was done, in a sentence."""
    session, name = await session_of(services, arguments["session_id"]), arguments["name"]
    await services.targets.map(session, name, arguments["upstream_id"])
    if not arguments["upstream_id"]:
        return [f"Brew session {which(session)} goes to {name} no longer; what is there stays there."]
    number = arguments["upstream_id"]
    return [f"Brew session {which(session)} goes to {name} from now on, where it is number {number}."]


async def _resend(services: Services, arguments: Arguments, _: Progress) -> dict[str, int]:
    """How many readings are looked for, by brew session."""
    session_id = arguments["session_id"]
    if session_id is not None:
        session = await session_of(services, session_id)
        if session.id not in await services.store.targets.sessions(
            await services.targets.named(arguments["name"])
        ):
            raise InvalidInput(
                f"brew session {session_id} is not forwarded there; `targets map` changes that"
            )
    found = await services.targets.resend(arguments["name"], arguments["since"], session_id)
    return {str(session): count for session, count in found.items()}


async def _test(services: Services, arguments: Arguments, _: Progress) -> list[dict[str, Any]]:
    """What was looked at there; nothing is left there."""
    target = await services.targets.named(arguments["name"])
    try:
        key = key_of(target)
    except ConfigError as error:
        return [asdict(ProbeFinding(False, str(error)))]
    sessions = await services.store.targets.sessions(target)
    async with _service(services, target.url, key) as service:
        return [asdict(finding) for finding in await probe(service, target.name, sessions)]


async def _login(services: Services, arguments: Arguments, _: Progress) -> dict[str, str]:
    """Try address and key; where both are right, keep the key and add the target or change it."""
    name, url, key = arguments["name"], arguments["url"], arguments["key"]
    async with _service(services, checked(name, url), key) as service:
        found = await reached(service)
    if not found.ok:
        raise InvalidInput(f"{found.words}; nothing was changed")
    target = await services.targets.login(name, url, key)
    return {"url": target.url, "key_file": target.key_file}


async def _sessions(services: Services, arguments: Arguments, _: Progress) -> list[dict[str, Any]]:
    """The service's brew sessions; of each which ones go there from here, and which one here may be it."""
    target = await services.targets.named(arguments["name"])
    async with _service(services, target.url, key_of(target)) as service:
        rows = await brew_sessions(service)
    here: dict[str, list[int]] = {}
    mapped = await services.store.targets.sessions(target)
    for session_id, upstream_id in sorted(mapped.items()):
        here.setdefault(str(upstream_id), []).append(session_id)
    free = [s for s in await services.store.sessions.all() if s.id not in mapped and not s.is_over]
    by_code = {session.batchcode.casefold(): session.id for session in free if session.batchcode}
    return [
        {**row, "here": here.get(row["number"], []), "like": by_code.get(row["batchcode"].casefold())}
        for row in rows
    ]


@asynccontextmanager
async def _service(services: Services, url: str, key: str) -> AsyncIterator[ImportTarget]:
    async with open_session() as client:
        yield ImportTarget(client, url, key, services.clock)


COMMANDS: dict[str, Command] = {
    "targets.list": _list,
    "targets.forgotten": _forgotten,
    "targets.add": _add,
    "targets.remove": _remove,
    "targets.pause": _pause,
    "targets.resume": _resume,
    "targets.map": _map,
    "targets.resend": _resend,
    "targets.test": _test,
    "targets.login": _login,
    "targets.sessions": _sessions,
}
"""By the names that the command line calls them by."""
