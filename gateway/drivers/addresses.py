"""Addresses of devices, and their meaning: the driver that they usually mean, a name, a key.

A pattern is a path or a topic. Its levels may be `{label}`, `{key}` or `{token}`, which are captured under
these names, `+`, any level, or at the end `#`, any number of levels. Other words in braces are part of the
name: `{job}` and `{label}` give `ispindel/000`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gateway.drivers.base import Driver

Captured = dict[str, str]


class Address(NamedTuple):
    """The meaning of an address: the driver that it usually means, the device's name, a key."""

    driver: Driver
    label: str = ""
    token: str = ""


def captured(pattern: str, text: str) -> Captured | None:
    """Return the levels that stand for braces; None if the text does not fit the pattern."""
    wanted, levels = pattern.split("/"), text.split("/")
    if wanted[-1] == "#":
        wanted.pop()
        if len(levels) < len(wanted):
            return None
    elif len(wanted) != len(levels):
        return None
    found: Captured = {}
    for want, level in zip(wanted, levels, strict=False):
        if want.startswith("{"):
            found[want[1:-1]] = level
        elif want not in {"+", level}:
            return None
    return found


def label_of(found: Mapping[str, str]) -> str:
    """Return the device's name: every captured level but the key, in their order, with slashes between."""
    return "/".join(level for word, level in found.items() if word not in {"key", "token"})


def of_path(drivers: tuple[Driver, ...], path: str) -> Address | None:
    """Return the meaning of a path of firmware or of other servers. Ignore a slash at the end."""
    for driver in drivers:
        for pattern in driver.paths:
            found = captured(pattern, path.rstrip("/"))
            if found is not None:
                return Address(driver, label_of(found), found.get("token", ""))
    return None


def as_filter(pattern: str) -> str:
    """Return the MQTT topic filter of a pattern, with `+` for the braces."""
    return "/".join("+" if level.startswith("{") else level for level in pattern.split("/"))


def covers(wide: str, narrow: str) -> bool:
    """Return whether every topic that fits the filter `narrow` fits `wide`, too (MQTT 3.1.1 section 4.7)."""
    wanted, levels = wide.split("/"), narrow.split("/")
    if wanted[0] in {"+", "#"} and levels[0].startswith("$"):
        return False
    for place, want in enumerate(wanted):
        if want == "#":
            return True
        if place >= len(levels) or levels[place] == "#" or want not in {"+", levels[place]}:
            return False
    return len(wanted) == len(levels)
