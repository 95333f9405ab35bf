"""A brew session: one batch of beer being fermented."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.domain.units import to_sg

DEFAULT_PHASE = "Primary Fermentation"
"""The phase of a new brew session."""

PHASE_AFTER_FERMENTING = "Conditioning"
"""The phase of a beer that is done fermenting, if nobody names another one."""

PHASES = (
    DEFAULT_PHASE,
    "Secondary Fermentation",
    "Cold Crash",
    PHASE_AFTER_FERMENTING,
    "Ready to Drink",
    "All Gone",
)
"""Phases that the page offers, in the order of a beer's life; any other words are taken, too."""

NOT_YET_S = 2 * 86_400
"""Seconds in which nobody is asked again whether a brew is done, after the answer that it is not."""

WATER_MEMBERS = tuple(
    f"{group}_{name}"
    for group, names in {
        "source": ("ca", "mg", "so4", "na", "cl", "hco3"),
        "target": ("ca", "mg", "so4", "na", "cl", "hco3"),
        "addition": ("caco3", "nahco3", "caso4", "cacl2", "mgso4", "nacl", "mgcl2", "caoh2", "naoh"),
    }.items()
    for name in names
)
"""Mineral levels of the source water and of the target water, and the salts that were added."""

DETAIL_MEMBERS = (
    "brewstepprofileid",
    "chillmethod",
    "mash_water_unit",
    "totalwater",
    "starting_mash_thickness",
    "userunit",
    "equipment_profile_id",
    "waterprofile_volume",
    "waterprofile_dilution",
    "waterprofile_selected",
    "waterprofilesource_selected",
    *WATER_MEMBERS,
)
"""Members of a brew session that the gateway keeps and shows, and never uses."""

DEVICE_MEMBERS = (
    "meter_active",
    "meter_color",
    "meter_updated",
    "device_reading",
    "device_updated_at",
    "device_active",
    "device_id",
)
"""Members about the session's device. A mirrored session keeps them as its service gave them."""


PHASES_AFTER = frozenset({"ready to drink", "all gone", "completed"})
"""Phases, in lower case, of a beer that is done. A session in such a phase needs no forwarding."""


@dataclass(frozen=True, slots=True)
class BrewSession:
    """A brew session: one batch of beer. Times are Unix seconds.

    `upstream_id` is the session's number at the target, None while the session is not forwarded. `upstream`
    is the base URL of the service that the number belongs to, None for the service of `--upstream-url`.
    `recipe_id` is 0 while the session has no recipe. `userdate` is the brewing day, YYYY-MM-DD. `details` are
    texts by name, of `DETAIL_MEMBERS` and, in a mirrored session, of `DEVICE_MEMBERS`. `og` is the original
    gravity as typed by hand, in `og_unit` ("G" or "P"); both are None if nobody typed one. `ended_at` is the
    time at which the brew was marked done, `not_yet_at` the time of the last answer that it is not done yet.
    With `send_notes`, notes are sent on as readings, too. `lead_device` is the device whose gravity the
    figures follow, None if the gateway chooses.
    """

    id: int
    account_id: int
    batchcode: str
    phase: str
    recipe_id: int
    upstream_id: int | None
    created_at: int
    updated_at: int
    upstream: str | None = None
    folder_id: int | None = None
    group_id: str | None = None
    userdate: str = ""
    notes: str | None = None
    og: str | None = None
    og_unit: str | None = None
    ended_at: int | None = None
    not_yet_at: int | None = None
    send_notes: bool = False
    lead_device: int | None = None
    details: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def og_by_hand(self) -> float | None:
        """Return the original gravity that was set by hand as specific gravity, None if none was set."""
        return None if self.og is None else to_sg(float(self.og), self.og_unit or "G")

    def may_be_asked(self, now: float) -> bool:
        """Return whether the brewer may be asked if the brew is done; `now` is Unix seconds."""
        return self.ended_at is None and (self.not_yet_at is None or now - self.not_yet_at >= NOT_YET_S)

    @property
    def is_over(self) -> bool:
        """Return whether the phase says that the beer is done."""
        return self.phase.strip().casefold() in PHASES_AFTER


@dataclass(frozen=True, slots=True)
class DeletedSession:
    """A brew session that was deleted and can be brought back; `readings` is their number in the session."""

    session: BrewSession
    readings: int


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """The device in a session, and the device's last reading there, if any; `created_at` in Unix seconds."""

    device_id: int
    device_name: str
    name: str | None = None
    gravity: str = ""
    gravity_unit: str = "G"
    temp: str = ""
    temp_unit: str = "F"
    interval: str = ""
    beer: str = ""
    comment: str = ""
    created_at: int | None = None


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """A session with the names that lists show beside it; `device` is None while the session has none."""

    session: BrewSession
    folder_name: str | None
    recipe_title: str
    device: DeviceReading | None


@dataclass(frozen=True, slots=True)
class Measured:
    """A reading for the statistics: texts and units as sent, the time in Unix seconds."""

    gravity: str
    gravity_unit: str
    sg: float | None
    temp: str
    temp_unit: str
    ph: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Milestones:
    """The readings that a session's statistics are made of; each is None if there is none."""

    first_gravity: Measured | None
    last_gravity: Measured | None
    last_temp: Measured | None
    last_ph: Measured | None
