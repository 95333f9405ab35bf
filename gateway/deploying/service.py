"""The files of the service, for the machine or for one user.

The unit carries the list of what was written beside it, in a section that systemd skips, as its name begins
with X- (systemd.unit(5)). So `uninstall-service` takes away what `install-service` wrote, and nothing else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

UNIT_NAME = "hydrometer-gateway.service"
COMMAND = "hydrometer-gateway"

OF_THE_PACKAGE = (Path("/usr/lib/systemd/system") / UNIT_NAME, Path("/lib/systemd/system") / UNIT_NAME)
"""The unit of the Debian package."""

HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - names of places, nothing is written
"""Places that a service of the machine cannot see: `ProtectHome=`, `PrivateTmp=`."""

SECTION = "[X-Installed]"
WROTE = "Wrote="


@dataclass(frozen=True, slots=True)
class Places:
    """Where the parts of a service go.

    `commands` is a directory on everybody's, or the user's, PATH. `backups` is None where any directory does.
    """

    unit: Path
    environment: Path
    commands: Path
    data: Path
    backups: Path | None = None


def places_of_machine() -> Places:
    """Return the places of a service of the machine."""
    return Places(
        unit=Path("/etc/systemd/system") / UNIT_NAME,
        environment=Path("/etc/hydrometer-gateway/gateway.env"),
        commands=Path("/usr/local/bin"),
        data=Path("/var/lib/hydrometer-gateway"),
        backups=Path("/var/backups/hydrometer-gateway"),
    )


def places_of_user(config: Path, data: Path, home: Path) -> Places:
    """Return the places of a user's service, in the user's directories for settings, data and programs."""
    return Places(
        unit=config / "systemd" / "user" / UNIT_NAME,
        environment=config / "hydrometer-gateway" / "gateway.env",
        commands=home / ".local" / "bin",
        data=data / "hydrometer-gateway",
    )


def unit_text(program: Path, wrote: Sequence[Path], *, user: bool) -> str:
    """Return the unit that starts this program, with the list of what is written beside it."""
    name = "hydrometer-gateway.user.service" if user else UNIT_NAME
    text = (files(__package__) / name).read_text("utf-8").replace("@PROGRAM@", _quoted(program))
    lines = "".join(f"{WROTE}{path}\n" for path in wrote)
    return f"{text}\n# What `install-service` wrote beside this file.\n{SECTION}\n{lines}"


def written_beside(unit: str) -> list[Path] | None:
    """Return the list that `unit_text` put into a unit; None if another hand wrote the unit."""
    _, section, rest = unit.partition(f"\n{SECTION}\n")
    if not section:
        return None
    return [Path(line.removeprefix(WROTE)) for line in rest.splitlines() if line.startswith(WROTE)]


def environment_text(before: str | None, port: int | None) -> str:
    """Return the file of options with this port: the one `before`, or ours with every line commented."""
    text = (files(__package__) / "gateway.env").read_text("utf-8") if before is None else before
    if port is None:
        return text
    line = f"GATEWAY_PORT={port}"
    changed, count = re.subn(r"(?m)^#?GATEWAY_PORT=.*$", line, text, count=1)
    return changed if count else f"{text.rstrip()}\n{line}\n"


def port_of(environment: str) -> int | None:
    """Return the port that a file of options sets."""
    found = re.findall(r"(?m)^GATEWAY_PORT=\"?([0-9]+)\"?\s*$", environment)
    return int(found[-1]) if found else None


def sets_something(environment: str) -> bool:
    """Return whether a file of options has a line that is no comment."""
    return any(line.strip() and not line.lstrip().startswith(("#", ";")) for line in environment.splitlines())


def hidden(path: Path) -> bool:
    """Return whether a service of the machine cannot see a program at this place."""
    return any(path.is_relative_to(place) for place in HIDDEN)


def _quoted(program: Path) -> str:
    """Write a path as systemd reads it: % and $ have a meaning, and blanks need quotation marks."""
    text = str(program).replace("\\", "\\\\").replace("%", "%%").replace("$", "$$").replace('"', '\\"')
    return f'"{text}"' if re.search(r"[\s\"';]", text) else text
