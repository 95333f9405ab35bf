"""What a check is told and what it says."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from gateway.clock import Clock
from gateway.config import Settings
from gateway.store.local import database_path, is_locked

Level = Literal["ok", "warning", "problem"]
"""A problem loses readings, or will; a warning may."""


@dataclass(frozen=True, slots=True)
class Broker:
    """Where an MQTT broker is, and as whom."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """What is so, what it means, and what to do about it; `about` is the check's name."""

    about: str
    level: Level
    text: str
    remedy: str = ""

    def of(self, about: str) -> "Finding":
        """The same, of that check."""
        return replace(self, about=about)


@dataclass(frozen=True, slots=True)
class Context:
    """What is looked at."""

    settings: Settings
    broker: Broker | None
    clock: Clock
    parts: Callable[[], Awaitable[Mapping[str, str]]]
    """Asks the gateway that runs for the states of its parts."""
    unread: Callable[[], Awaitable[Mapping[str, Any]]] | None = None
    """Asks it for MQTT topics whose messages came to nothing: `messages` by topic, and `others`."""

    @property
    def data_dir(self) -> Path:
        """The data directory, which need not be there."""
        return self.settings.data_dir

    @property
    def database(self) -> Path:
        """The database file, which need not be there."""
        return database_path(self.data_dir)

    def is_open(self) -> bool:
        """Whether a gateway, or a command, has the data directory open right now; `OSError` if unsure."""
        return is_locked(self.data_dir)


Check = Callable[[Context], Awaitable[Sequence[Finding]]]


def ok(text: str) -> Finding:
    """As it should be."""
    return Finding("", "ok", text)


def warning(text: str, remedy: str = "") -> Finding:
    """May lose something, or make something hard."""
    return Finding("", "warning", text, remedy)


def problem(text: str, remedy: str) -> Finding:
    """Loses readings, or will."""
    return Finding("", "problem", text, remedy)


def mib(size_bytes: int) -> str:
    """A size for people."""
    return f"{size_bytes / 1024 / 1024:,.1f} MiB"
