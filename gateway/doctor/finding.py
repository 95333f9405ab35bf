"""Input and result of a check."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gateway.clock import Clock
from gateway.settings import Settings
from gateway.store.local import database_path, is_locked

Level = Literal["ok", "warning", "problem"]
"""A problem loses readings now or later; a warning may lose some."""


@dataclass(frozen=True, slots=True)
class Broker:
    """Address, user and password for an MQTT broker, and advice on how the password is kept."""

    host: str
    port: int
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: its name, the level, the text and the remedy."""

    check: str
    level: Level
    text: str
    remedy: str = ""

    def as_json(self) -> dict[str, str]:
        """Return the members that `doctor --json` shows."""
        return {"about": self.check, "level": self.level, "text": self.text, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class Context:
    """Settings and helpers that every check gets."""

    settings: Settings
    broker: Broker | None
    clock: Clock
    parts: Callable[[], Awaitable[Mapping[str, str]]]
    """Asks a running gateway for the states of its parts."""
    unread: Callable[[], Awaitable[Mapping[str, Any]]] | None = None
    """Asks a running gateway for MQTT topics that are not read: `messages` by topic, and `others`."""

    quota: Callable[[], Awaitable[int]] | None = None
    """Asks a running gateway for the quota in force, in bytes."""

    shared_ids: Callable[[], Awaitable[Mapping[str, Sequence[str]]]] | None = None
    """Asks a running gateway for MQTT client ids of several devices, with their addresses."""

    @property
    def data_dir(self) -> Path:
        """The data directory, which need not exist."""
        return self.settings.data_dir

    @property
    def database(self) -> Path:
        """The database file, which need not exist."""
        return database_path(self.data_dir)

    def is_open(self) -> bool:
        """Return whether a gateway or a command has the data directory open now; `OSError` if unsure."""
        return is_locked(self.data_dir)


Check = Callable[[Context], Awaitable[Sequence[Finding]]]


def ok(text: str) -> Finding:
    """Make a finding that all is well."""
    return Finding("", "ok", text)


def warning(text: str, remedy: str = "") -> Finding:
    """Make a finding that may lose readings, or make work hard."""
    return Finding("", "warning", text, remedy)


def problem(text: str, remedy: str) -> Finding:
    """Make a finding that loses readings, now or later."""
    return Finding("", "problem", text, remedy)


def mib(size_bytes: int) -> str:
    """Return a size in MiB, for users."""
    return f"{size_bytes / 1024 / 1024:,.1f} MiB"
