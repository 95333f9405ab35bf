"""Checks of services that are forwarded to or mirrored: address and key. They store nothing there."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.config import others_can_read, read_key
from gateway.doctor.database import opened, usable
from gateway.doctor.finding import Context, Finding, ok, problem, warning
from gateway.domain.target import MIRROR, SERVICE, UPSTREAM, Target
from gateway.domain.texts import shown_url
from gateway.errors import REMEDIES, ConfigError, in_words
from gateway.forward.answers import FAILURES
from gateway.forward.client import ServiceClient, open_session
from gateway.network import sends_key_in_the_clear
from gateway.services.unforwarded import devices_to_nowhere, forwarded_sessions, readings_to_nowhere


@dataclass(frozen=True, slots=True)
class ConfiguredService:
    """A service by name and base URL. With `unnamed`, it gets brew sessions that name no service."""

    name: str
    url: str
    key_file: Path | None
    unnamed: bool = False

    def as_target(self) -> Target:
        """Return the service as a target."""
        return Target(self.name, self.url, str(self.key_file or ""), unnamed=self.unnamed)

    def key(self) -> str:
        """Read the key; `ConfigError` names the fault of the file."""
        if self.key_file is None:
            raise ConfigError(
                f"{self.name}: --{self.name}-key-file is missing, a file that holds only the API key"
            )
        return read_key(self.key_file, f"key file of {self.name}")


async def services(context: Context) -> list[ConfiguredService]:
    """Return all services that are configured, without targets that the user paused."""
    settings = context.settings
    found: list[ConfiguredService] = []
    if settings.upstream_url:
        url = settings.upstream_url.rstrip("/")
        found.append(ConfiguredService(UPSTREAM, url, settings.upstream_key_file, unnamed=True))
    if settings.mirror_from and (not settings.mirrors_upstream or settings.mirror_key_file):
        found.append(ConfiguredService(MIRROR, settings.mirror_from.rstrip("/"), settings.mirror_key_file))
    if usable(context):
        async with opened(context) as store:
            targets = await store.targets.all()
        urls = {service.url for service in found}
        found += [
            ConfiguredService(target.name, target.url, Path(target.key_file), target.unnamed)
            for target in targets
            if target.kind == SERVICE and target.url not in urls and not target.paused
        ]
    return found


def shown_target(url: str) -> str:
    """Return a target's URL, or `kind:name`, as people may see it."""
    return shown_url(url) if "://" in url else url


ANSWER_S = 15.0
"""Seconds for one request, from resolving the host name to the end of the answer."""

ANSWER_BYTES = 1024 * 1024
"""Bytes of an answer that are read at most."""

PROBE = "/v1/brewsessions"
"""Endpoint 8 of the specification: a list, which needs the key and changes nothing."""

ANSWERS: dict[int, tuple[str, str]] = {
    401: ("does not know the key", "make a new key there and write it into the key file"),
    403: ("refuses this key", "give the key the right to read and to import there"),
    404: ("has no such API", "the URL is https://host, without /v1"),
}
"""Meaning and remedy of a status."""


async def reached(context: Context) -> Sequence[Finding]:
    """Check each configured service."""
    configured = await services(context)
    if not configured:
        return [ok("none is configured: readings stay here")]
    found: list[Finding] = []
    for service in configured:
        try:
            key = service.key()
        except ConfigError:
            continue  # a wrong key file has a finding of its own
        found.append(await _answer(service.url, key))
        if sends_key_in_the_clear(service.url):
            text = f"{shown_url(service.url)}: anyone on the way can read the key"
            found.append(warning(text, "use https://"))
    return found


async def _answer(url: str, key: str) -> Finding:
    base = shown_url(url)
    try:
        async with open_session() as session:
            client = ServiceClient(session, url, key, deadline_s=ANSWER_S)
            answer = await client.request(PROBE, ANSWER_BYTES, {"limit": "1"})
    except FAILURES as error:
        reason = in_words(error)
        remedy = f"readings wait until it can be; {REMEDIES.get(reason, 'check the network and the URL')}"
        return warning(f"{base} cannot be reached: {reason}", remedy)
    status = answer.status
    if 200 <= status < 300:
        return ok(f"{base} answers and knows the key")
    if 300 <= status < 400:
        return problem(f"{base}: {client.reason(answer)}", "name the address that it redirects to instead")
    if status in ANSWERS:
        reason, remedy = ANSWERS[status]
        return problem(f"{base} {reason} (HTTP {status})", remedy)
    return warning(f"{base} answers with {client.reason(answer)}", "readings wait; try again later")


async def key_files(context: Context) -> Sequence[Finding]:
    """Check each key file that the gateway reads."""
    found = [await asyncio.to_thread(_key_file, service) for service in await services(context)]
    return found or [ok("none is configured")]


def _key_file(service: ConfiguredService) -> Finding:
    try:
        service.key()
    except ConfigError as error:
        return problem(str(error), "write the API key, and nothing else, into the file")
    path = service.key_file
    if path is not None and others_can_read(path):
        return warning(f"other users can read {path}", f"chmod 600 {path}")
    return ok(f"{path} is its owner's alone")


async def waiting(context: Context) -> Sequence[Finding]:
    """Count the readings that wait for each service."""
    if not usable(context):
        return []
    configured = {service.url: service.as_target() for service in await services(context)}
    async with opened(context) as store:
        totals = await store.totals.totals({target.url: target.unnamed for target in configured.values()})
        added = {target.url: target for target in await store.targets.all() if target.kind == SERVICE}
        targets = list({**added, **configured}.values())
        forgotten = [
            *await devices_to_nowhere(store, targets),
            *await readings_to_nowhere(store, targets),
        ]
        taken = await forwarded_sessions(store, targets)
    found = [
        ok(f"{shown_target(target.name)}: {target.pending:,} of {target.readings:,} readings wait")
        for target in totals.targets
    ]
    if totals.without_target:
        text = f"{totals.without_target:,} readings are in brew sessions of a service that is not configured"
        found.append(warning(text, "name it with --upstream-url or `targets add`; they wait until then"))
    if targets and not taken:
        text = f"no brew session is forwarded to {targets[0].name} ({shown_url(targets[0].url)}) yet"
        remedy = f"`targets sessions {targets[0].name}` shows its brew sessions, `targets map` forwards one"
        found.append(warning(text, remedy))
    found += [warning(item.text, item.remedy) for item in forgotten]
    return found or [ok("nothing is forwarded")]
