"""The viewer of a page: rights, language, units, time zone."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.domain.account import OWNER_ID
from gateway.services.logins import Login
from gateway.ui.words import LANGUAGES, Words

LOCALTIME = "/etc/localtime"

SCHEMES = ("system", "light", "dark")


@dataclass(frozen=True, slots=True)
class Viewer:
    """A viewer. `login` is None for a neighbour who may look without one, and on public pages."""

    language: str
    gravity_unit: str
    temp_unit: str
    zone: tzinfo
    scheme: str
    account_id: int = OWNER_ID
    key_name: str = ""
    may_look: bool = False
    may_change: bool = False
    login: Login | None = None

    @property
    def is_owner(self) -> bool:
        """Return whether the viewer belongs to the owner's account."""
        return self.account_id == OWNER_ID

    def words(self, now: float) -> Words:
        """Return the viewer's words at that time (Unix seconds)."""
        return Words(self.language, self.gravity_unit, self.temp_unit, self.zone, now)


def viewer_of(login: Login | None, accepted: str, *, may_look: bool = False) -> Viewer:
    """Return the viewer of a request by its login and its Accept-Language header.

    Without a choice, en-US has SG and °F, de and cs have °P and °C, all others SG and °C.
    """
    chosen: Mapping[str, str] = {} if login is None else login.preferences
    tags = [item.partition(";")[0].strip().lower() for item in accepted.split(",")]
    first = next((tag for tag in tags if tag), "en")
    language = chosen.get("language", "")
    if language not in LANGUAGES:
        language = next((tag[:2] for tag in tags if tag[:2] in LANGUAGES), "en")
    plato = first[:2] in {"de", "cs"}
    rights = login.key if login is not None else None
    return Viewer(
        language=language,
        gravity_unit=_one_of(chosen.get("gravity_unit"), ("P" if plato else "SG", "SG", "P")),
        temp_unit=_one_of(chosen.get("temp_unit"), ("F" if first == "en-us" else "C", "F", "C")),
        zone=zone_named(chosen.get("zone", "")) or machine_zone(),
        scheme=_one_of(chosen.get("scheme"), SCHEMES),
        account_id=rights.account_id if rights else OWNER_ID,
        key_name=rights.name if rights else "",
        may_look=rights.allows("read") if rights else may_look,
        may_change=rights is not None and rights.allows("admin"),
        login=login,
    )


def _one_of(chosen: str | None, allowed: tuple[str, ...]) -> str:
    """Return the choice if it is allowed, else the first."""
    return chosen if chosen in allowed else allowed[0]


def zone_named(name: str) -> tzinfo | None:
    """Return the time zone of that name; None if there is none."""
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@cache
def machine_zone() -> tzinfo:
    """Return the machine's time zone, UTC if it cannot be found."""
    named = zone_named(os.environ.get("TZ", "").lstrip(":"))
    if named is not None:
        return named
    target = os.path.realpath(LOCALTIME)
    return zone_named(target.partition("zoneinfo/")[2]) or UTC
