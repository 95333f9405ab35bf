"""Commands on targets."""

from dataclasses import asdict
from typing import Any

import aiohttp

from gateway.commands.base import Arguments, Command, Progress
from gateway.commands.sessions import session_of
from gateway.domain.target import Delivery, Target
from gateway.errors import ConfigError, InvalidInput
from gateway.forward.import_target import ImportTarget
from gateway.forward.probe import Finding, probe
from gateway.services.parts import Parts
from gateway.services.targets import key_of

NOT_SHOWN = {"target", "oldest_at", "edited_since"}
"""Members of a `Delivery` that are shown once for all brew sessions of a target."""


async def _list(parts: Parts, _: Arguments, __: Progress) -> list[dict[str, Any]]:
    """Every target with its state in words, and counts of readings in all and by brew session."""
    deliveries = await parts.store.deliveries.counts()
    return [
        _shown(parts, target, [d for d in deliveries if d.target == target.name])
        for target in await parts.store.targets.all()
    ]


def _shown(parts: Parts, target: Target, deliveries: list[Delivery]) -> dict[str, Any]:
    state = parts.targets.state_of(target)
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


async def _add(parts: Parts, arguments: Arguments, _: Progress) -> None:
    await parts.targets.add(**arguments)


async def _remove(parts: Parts, arguments: Arguments, _: Progress) -> None:
    await parts.targets.remove(arguments["name"])


async def _pause(parts: Parts, arguments: Arguments, _: Progress) -> None:
    await parts.targets.pause(arguments["name"])


async def _resume(parts: Parts, arguments: Arguments, _: Progress) -> None:
    await parts.targets.resume(arguments["name"])


async def _map(parts: Parts, arguments: Arguments, _: Progress) -> None:
    session = await session_of(parts, arguments["session_id"])
    await parts.targets.map(session, arguments["name"], arguments["upstream_id"])


async def _resend(parts: Parts, arguments: Arguments, _: Progress) -> dict[str, int]:
    """How many readings are looked for, by brew session."""
    session_id = arguments["session_id"]
    if session_id is not None:
        session = await session_of(parts, session_id)
        if session.id not in await parts.store.targets.sessions(await parts.targets.named(arguments["name"])):
            raise InvalidInput(
                f"brew session {session_id} is not forwarded there; `targets map` changes that"
            )
    found = await parts.targets.resend(arguments["name"], arguments["since"], session_id)
    return {str(session): count for session, count in found.items()}


async def _test(parts: Parts, arguments: Arguments, _: Progress) -> list[dict[str, Any]]:
    """What was looked at there; nothing is left there."""
    target = await parts.targets.named(arguments["name"])
    try:
        key = key_of(target)
    except ConfigError as error:
        return [asdict(Finding(False, str(error)))]
    sessions = await parts.store.targets.sessions(target)
    async with aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()) as client:
        service = ImportTarget(client, target.url, key, parts.clock)
        return [asdict(finding) for finding in await probe(service, sessions)]


COMMANDS: dict[str, Command] = {
    "targets.list": _list,
    "targets.add": _add,
    "targets.remove": _remove,
    "targets.pause": _pause,
    "targets.resume": _resume,
    "targets.map": _map,
    "targets.resend": _resend,
    "targets.test": _test,
}
"""By the names that the command line calls them by."""
