"""The services that a gateway talks to: those of the options, and those that `targets` has added."""

from dataclasses import dataclass
from pathlib import Path

from gateway.config import read_key
from gateway.domain.target import MIRROR, UPSTREAM, Target
from gateway.errors import ConfigError
from gateway.services.doctor.database import opened, usable
from gateway.services.doctor.finding import Case


@dataclass(frozen=True, slots=True)
class Service:
    """One of them by name and base URL; brew sessions that name no service are its own if `unnamed`."""

    name: str
    url: str
    key_file: Path | None
    unnamed: bool = False

    def as_target(self) -> Target:
        """The same as what readings are forwarded to."""
        return Target(self.name, self.url, str(self.key_file or ""), unnamed=self.unnamed)

    def key(self) -> str:
        """Its key; `ConfigError` says what is wrong with the file."""
        if self.key_file is None:
            raise ConfigError(
                f"{self.name}: --{self.name}-key-file is missing, a file that holds only the API key"
            )
        return read_key(self.key_file, f"key file of {self.name}")


async def services(case: Case) -> list[Service]:
    """All of them but those that the user has paused."""
    settings = case.settings
    found: list[Service] = []
    if settings.upstream_url:
        url = settings.upstream_url.rstrip("/")
        found.append(Service(UPSTREAM, url, settings.upstream_key_file, unnamed=True))
    if settings.mirror_from and (not settings.mirrors_upstream or settings.mirror_key_file):
        found.append(Service(MIRROR, settings.mirror_from.rstrip("/"), settings.mirror_key_file))
    if usable(case):
        async with opened(case) as store:
            targets = await store.targets.all()
        known = {service.url for service in found}
        found += [
            Service(target.name, target.url, Path(target.key_file), target.unnamed)
            for target in targets
            if target.url not in known and not target.paused
        ]
    return found
