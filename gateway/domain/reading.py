"""The fermentation reading: the specification's members as text, with numbers beside them."""

from typing import NamedTuple

SPEC_MEMBERS = (
    "_id",
    "login_id",
    "api_key",
    "brewevent_id",
    "recipe_id",
    "ip",
    "name",
    "gravity",
    "gravity_unit",
    "temp",
    "temp_unit",
    "comment",
    "beer",
    "interval",
    "created_at",
    "source",
)
"""The 16 members of a fermentation reading, in the specification's order."""

EXTRA_MEMBERS = (
    "ph",
    "battery",
    "RSSI",
    "angle",
    "ambient",
    "bpm",
    "psi",
    "heat_state",
    "temp_target",
    "gravity_target",
    "og",
    "hysteresis",
    "device_source",
    "report_source",
)
"""Further members that an import may bring. The API gives them back on the readings that had them."""


class Reading(NamedTuple):
    """A fermentation reading, ready to be stored.

    `gravity` and `temp` keep the text that was sent ("" for none). `sg` and `celsius` are the same
    measurement as numbers, for queries and statistics. `created_at` is Unix seconds, `received_at` Unix
    milliseconds. `facts` and `extra` are JSON objects as text, or None. For a calibrated device the API gives
    `shown_gravity` and `shown_temp` instead, and the numbers follow them.
    """

    oid: str
    created_at: int
    received_at: int
    name: str
    gravity: str
    gravity_unit: str
    temp: str
    temp_unit: str
    comment: str
    beer: str
    interval: str
    source: str
    ip: str
    sg: float | None
    celsius: float | None
    facts: str | None = None
    flags: str | None = None
    extra: str | None = None
    shown_gravity: str | None = None
    shown_temp: str | None = None
