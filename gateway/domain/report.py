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

_MAC = re.compile(r"[0-9A-Fa-f]{2}(?:[:-]?[0-9A-Fa-f]{2}){5}")


@dataclass(slots=True)
class Report:
    """One measurement as the device put it; `decode` fills in the `family`, the driver's name.

    `stable_id` is what stays when the user renames the device. `gravity` and `temp` are numeric text as on
    the wire (decimal point), or None where the device had no value; their units are None where neither the
    wire nor the format says, and the `..._reason`s tell who says it, `battery_reason` where a battery is
    percent by its size. A unit is `..._by_format` where only the format means it: who forwards a reading in
    the format of another family may mean another unit, so the size of the value goes first.

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
        """The identity in one text: `ispindel:5312877`; of a MAC the digits alone, as programs differ."""
        stable_id = self.stable_id
        if len(stable_id) in MAC_CHARACTERS and _MAC.fullmatch(stable_id):
            stable_id = stable_id.replace(":", "").replace("-", "").lower()
        return f"{self.family}:{stable_id}"
