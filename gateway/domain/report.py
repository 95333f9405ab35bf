"""A driver's result: one measurement, still in the device's own words and units."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

GravityUnit = Literal["G", "P"]
"""G is specific gravity, P degrees Plato; the specification's letters."""

TempUnit = Literal["C", "F"]

MAC_CHARACTERS = (12, 17)
"""Lengths of a MAC, without and with a character between each two digits."""

MAC_FAMILY = "mac"
"""The first part of a device's key if the device is identified by its MAC, whatever program reports it."""

TILT_COLORS = frozenset({"red", "green", "black", "purple", "orange", "blue", "yellow", "pink"})

_MAC = re.compile(r"[0-9A-Fa-f]{2}(?:[:-]?[0-9A-Fa-f]{2}){5}")


def mac_digits(text: str) -> str:
    """Return the digits of a MAC in lower case, as programs write a MAC differently; "" for another text."""
    if len(text) not in MAC_CHARACTERS or not _MAC.fullmatch(text):
        return ""
    return text.replace(":", "").replace("-", "").lower()


def folded(key: str) -> str:
    """Return a device's key with a Tilt's colour in lower case: some programs write RED, some Red."""
    family, _, stable_id = key.partition(":")
    color = stable_id.lower()
    return f"{family}:{color}" if color in TILT_COLORS else key


@dataclass(slots=True)
class Report:
    """A measurement as the device sent it; `decode` fills in the `family`, the driver's name.

    `stable_id` stays when the user renames the device. If earlier versions used another id, it is the
    `former_id` if it is the device's alone, and the `shared_id` if other devices may have it too, such as
    their common address. `known_as` is the key of the stored device, once the device was looked up.

    `gravity` and `temp` are numeric text as on the wire (decimal point), None if the device had no value.
    Their units are None if neither the wire nor the format names the unit. A `..._reason` is the source of a
    unit; `battery_reason` is set if a battery is taken for percent by its size. A unit is
    `..._by_format` if only the format implies it: a program that forwards a reading in another family's
    format may mean another unit, and so the size of the value decides first.

    `facts` are further values by their canonical name (`battery` volt, `battery_percent`, `rssi` dBm, `angle`
    degree, `velocity` points a day, `pressure`, ...). `reply` are members that this firmware needs in the
    answer.

    `measured_at` is the device's own clock in Unix seconds, if that is unambiguous. `device_time` is the
    device's local time as ISO text without a zone. `age_s` is the reading's age against the newest reading of
    the same delivery. `raw` is the report's part of the delivery, written as a delivery of its own; None if
    it is the only part, or if the parts cannot be told apart.
    """

    stable_id: str
    name: str = ""
    family: str = ""
    former_id: str = ""
    shared_id: str = ""
    known_as: str = ""
    gravity: str | None = None
    gravity_unit: GravityUnit | None = None
    gravity_unit_reason: str = ""
    gravity_unit_by_format: bool = False
    temp: str | None = None
    temp_unit: TempUnit | None = None
    temp_unit_reason: str = ""
    temp_unit_by_format: bool = False
    battery_reason: str = ""
    interval_s: int | None = None
    beer: str | None = None
    comment: str | None = None
    token: str | None = None
    timepoint: str | None = None
    measured_at: float | None = None
    device_time: str | None = None
    age_s: float = 0.0
    facts: dict[str, float | str | None] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    reply: Mapping[str, Any] | None = None
    raw: bytes | None = field(default=None, repr=False)

    @property
    def device_key(self) -> str:
        """Return the identity in one text: `ispindel:5312877`, `mac:aabbccddeeff`."""
        return self.known_as or self._keys()[-1]

    @property
    def keys(self) -> tuple[str, ...]:
        """Return every key that the device may be stored under, its own last."""
        former = (f"{self.family}:{self.former_id}",) if self.former_id else ()
        return (*former, *self._keys())

    @property
    def shared_key(self) -> str:
        """Return the key that earlier versions used, perhaps for several devices; "" for none."""
        return f"{self.family}:{self.shared_id}" if self.shared_id else ""

    def _keys(self) -> tuple[str, ...]:
        if digits := mac_digits(self.stable_id):
            return f"{self.family}:{digits}", f"{MAC_FAMILY}:{digits}"
        return (f"{self.family}:{self.stable_id}",)
