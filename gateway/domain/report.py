"""What a driver understood, still in the device's own words and units."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

GravityUnit = Literal["G", "P"]
"""G is specific gravity, P degrees Plato; the specification's letters."""

TempUnit = Literal["C", "F"]

MAC_CHARACTERS = (12, 17)
"""Without and with something between each two digits."""

MAC_FAMILY = "mac"
"""What the key of a device begins with that is known by its MAC, whoever tells it."""

TILT_COLORS = frozenset({"red", "green", "black", "purple", "orange", "blue", "yellow", "pink"})

_MAC = re.compile(r"[0-9A-Fa-f]{2}(?:[:-]?[0-9A-Fa-f]{2}){5}")


def mac_digits(text: str) -> str:
    """The digits of a MAC in lower case, as programs differ in how they write it; empty for another text."""
    if len(text) not in MAC_CHARACTERS or not _MAC.fullmatch(text):
        return ""
    return text.replace(":", "").replace("-", "").lower()


def folded(key: str) -> str:
    """A device's key with the colour of a Tilt in lower case: some programs say RED, some Red."""
    family, _, stable_id = key.partition(":")
    color = stable_id.lower()
    return f"{family}:{color}" if color in TILT_COLORS else key


@dataclass(slots=True)
class Report:
    """One measurement as the device put it; `decode` fills in the `family`, the driver's name.

    `stable_id` is what stays when the user renames the device. Where earlier versions knew it by another id,
    that is the `former_id` if it is the device's alone, and the `shared_id` if others may have it, too, as
    the address they all come from. `known_as` is the key of the device that it is, once somebody has looked.

    `gravity` and `temp` are numeric text as on the wire (decimal point), or None where the device had no
    value; their units are None where neither the wire nor the format says, and the `..._reason`s tell who
    says it, `battery_reason` where a battery is percent by its size. A unit is `..._by_format` where only the
    format means it: who forwards a reading in the format of another family may mean another unit, so the
    size of the value goes first.

    `facts` are further values by their canonical name (`battery` volt, `battery_percent`, `rssi` dBm, `angle`
    degree, `velocity` points a day, `pressure`, ...). `reply` are members that this firmware wants to see in
    the answer.

    `measured_at` is the device's own clock in Unix seconds, where that is unambiguous; `device_time` the
    same as ISO text without a zone, where it is local time, and `age_s` how much older this reading is than
    the newest one in the same delivery. `raw` is the part of a delivery that this one was made of, written as
    a delivery of its own; None where it is the only one, or they are not told apart.
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
        """The identity in one text: `ispindel:5312877`, `mac:aabbccddeeff`."""
        return self.known_as or self._keys()[-1]

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that it may be known by: those of earlier versions first, its own last."""
        former = (f"{self.family}:{self.former_id}",) if self.former_id else ()
        return (*former, *self._keys())

    @property
    def shared_key(self) -> str:
        """The key of the device that earlier versions put it into, perhaps with others; empty for none."""
        return f"{self.family}:{self.shared_id}" if self.shared_id else ""

    def _keys(self) -> tuple[str, ...]:
        if digits := mac_digits(self.stable_id):
            return f"{self.family}:{digits}", f"{MAC_FAMILY}:{digits}"
        return (f"{self.family}:{self.stable_id}",)
