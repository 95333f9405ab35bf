"""What a driver understood, still in the device's own words and units."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

GravityUnit = Literal["G", "P"]
"""G is specific gravity, P degrees Plato; the specification's letters."""

TempUnit = Literal["C", "F"]


@dataclass(slots=True)
class Report:
    """One measurement as the device put it.

    `gravity` and `temp` are numeric text as on the wire (decimal point), or None where the device had no
    value; `gravity_unit` is None where the wire does not say. `stable_id` is what stays when the user
    renames the device. `facts` are further numbers by their canonical name (`battery` volt,
    `battery_percent`, `rssi` dBm, `angle` degree, `velocity` points a day, `pressure`, ...).
    `reply` are members that this firmware wants to see in the answer. `device_time` is the device's own
    clock as ISO text without zone.
    """

    family: str
    stable_id: str
    name: str = ""
    gravity: str | None = None
    gravity_unit: GravityUnit | None = None
    temp: str | None = None
    temp_unit: TempUnit = "C"
    interval_s: int | None = None
    beer: str | None = None
    comment: str | None = None
    token: str | None = None
    timepoint: str | None = None
    device_time: str | None = None
    facts: dict[str, float | str | None] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    reply: Mapping[str, str] | None = None

    @property
    def device_key(self) -> str:
        """The identity in one text: `ispindel:5312877`."""
        return f"{self.family}:{self.stable_id}"
