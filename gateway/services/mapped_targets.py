"""Targets of other kinds than a Brewing Data Service: add them, and say what goes there."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gateway.clock import Clock
from gateway.domain.target import (
    KEYED_ADDRESS_KINDS,
    PER_MINUTE,
    SECRET_ADDRESS_KINDS,
    SERVICE,
    Route,
    Target,
)
from gateway.domain.texts import shown_secret, shown_url
from gateway.errors import ConfigError, InvalidInput, NameTaken, NotFound
from gateway.events import StoredNotices
from gateway.forward.kinds import Policy
from gateway.forward.kinds.table import key_of, mapped
from gateway.services.key_files import keep_key, key_file, url_name
from gateway.services.targets import TargetService, check_key, check_name, check_rate
from gateway.store.protocol import Store


@dataclass(frozen=True, slots=True)
class NewMapped:
    """A new target of another kind than a Brewing Data Service.

    Its address is `url`, which is kept in a file if it is private, or stands in `url_file`. Its key, if it
    has one, is `key`, or stands in `key_file`. `options` are the settings of its kind.
    """

    name: str
    kind: str
    url: str = ""
    url_file: str = ""
    private_url: bool = False
    key: str = ""
    key_file: str = ""
    per_minute: int = PER_MINUTE
    options: Mapping[str, Any] = field(default_factory=dict)


class MappedTargets:
    """A service for targets that get what is mapped to them: devices, brews, or all."""

    def __init__(
        self, store: Store, directory: Path, notices: StoredNotices, clock: Clock, targets: TargetService
    ) -> None:
        self._store = store
        self._directory = directory
        self._notices = notices
        self._clock = clock
        self._targets = targets

    async def add(self, new: NewMapped) -> Target:
        """Add a target of another kind than a Brewing Data Service; `InvalidInput` names what is wrong.

        Nothing goes there before `add_route`.
        """
        check_rate(new.per_minute)
        check_name(new.name)
        if new.key:
            check_key(new.key)
        if new.kind in SECRET_ADDRESS_KINDS and new.url:
            new = replace(new, private_url=True)
        if any(target.name == new.name for target in await self._store.targets.all()):
            raise NameTaken(f"there is a target {new.name} already; `targets list` shows them")
        kept = {new.name: new.key} if new.key else {}
        if new.private_url:
            kept[url_name(new.name)] = new.url
        try:
            for name, text in kept.items():
                await asyncio.to_thread(keep_key, self._directory, name, text)
            target = await asyncio.to_thread(self._made, new)
            await self._store.targets.add(target)
        except BaseException:
            for name in kept:
                await asyncio.to_thread(key_file(self._directory, name).unlink, missing_ok=True)
            raise
        self._notices.publish("sending")
        await self._targets.changed.notify()
        return target

    def _made(self, new: NewMapped) -> Target:
        """Return the target; `InvalidInput` if it cannot be sent to. Its key and its address are in files."""
        options = dict(new.options)
        if new.private_url or new.url_file:
            options["url_file"] = new.url_file or str(key_file(self._directory, url_name(new.name)))
        elif new.url:
            options["url"] = new.url
        file = str(key_file(self._directory, new.name)) if new.key else new.key_file
        target = Target(new.name, f"{new.kind}:{new.name}", file, new.per_minute, kind=new.kind)
        try:
            kind = mapped(replace(target, settings=_json(options)), self._clock, self._targets.around)
            address = kind.address()
            if file:
                key_of(target)
        except ConfigError as error:
            raise InvalidInput(str(error)) from error
        private = "url_file" in options or new.kind in KEYED_ADDRESS_KINDS
        options["shown"] = shown_secret(address) if private else shown_url(address)
        if kind.policy is Policy.LATEST:
            options["latest"] = True
        return replace(target, settings=_json(options))

    async def routes(self, target: Target) -> list[Route]:
        """Return what goes to a target that is no Brewing Data Service."""
        return await self._store.routes.of(target.url)

    async def add_route(self, name: str, route: Route, since: int | None) -> None:
        """Let readings go there from now on, with `since` (Unix seconds) earlier ones, too.

        `InvalidInput` for earlier ones to a target that shows the latest only.
        """
        url = await (self._mapped(name) if since is None else self._with_history(name))
        await self._store.routes.add(url, route, since)
        self._notices.notify("sending")

    async def remove_route(self, name: str, route: Route) -> None:
        """Let them go there no longer; `NotFound` if they did not. What is there stays there."""
        if not await self._store.routes.remove(await self._mapped(name), route):
            raise NotFound(f"that does not go to {name}; `targets list` shows what does")
        self._notices.notify("sending")

    async def _mapped(self, name: str) -> str:
        target = await self._targets.named(name)
        if target.kind == SERVICE:
            raise InvalidInput(
                f"{name} takes brew sessions by their number there: `targets map {name} SESSION NUMBER`"
            )
        return target.url

    async def _with_history(self, name: str) -> str:
        url = await self._mapped(name)
        if (await self._targets.named(name)).latest:
            raise InvalidInput(f"{name} shows the latest reading of each device only, and none of the past")
        return url

    async def resend(self, name: str, since: int, device_id: int | None) -> dict[int, int]:
        """Send again what a target of another kind got since `since` (Unix seconds), as it is here now.

        Return the number of readings by device, 0 for readings of none; `InvalidInput` for a target that
        shows the latest only.
        """
        found = await self._store.routes.send_again(await self._with_history(name), since, lane=device_id)
        self._notices.notify("sending")
        return found


def _json(options: Mapping[str, Any]) -> str:
    return json.dumps(options, ensure_ascii=False, sort_keys=True)
