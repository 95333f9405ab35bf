"""The payloads of hydrometers in the sample brewery: the bytes of their firmware, for a point of a curve."""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gateway.domain import units
from gateway.domain.payload import Payload
from gateway.samples.curves import INTERVAL_S, CurvePoint
from gateway.samples.sessions import HydrometerKind

UPRIGHT_DEG, UPRIGHT_SG, FLATTER_DEG = 25.0, 0.990, 140.0
"""Tilt of a spindle that stands upright, its gravity, and degrees per root of the gravity above that."""

SENSOR_STEP_C = 0.0625
"""Resolution of the spindles' DS18B20."""

FULL_V, DRAIN_V_PER_DAY = 4.12, 0.006

HOURS_PER_DAY = 24

USUAL_POINTS = 40
"""Attenuation of a usual beer in points of SG."""

ISPINDEL = (
    '{{"name":"{name}","ID":{number},"token":"","angle":{angle:.5f},"temperature":{celsius:.4f},'
    '"temp_units":"C","battery":{volt:.6f},"gravity":{plato:.5f},"interval":{interval},"RSSI":{rssi}}}'
)
GRAVITYMON = (
    '{{"name":"{name}","ID":"{number:06x}","token":"","interval":{interval},"temperature":{celsius:.1f},'
    '"temp_units":"C","gravity":{sg:.4f},"velocity":{velocity:.2f},"angle":{angle:.3f},"battery":{volt:.2f},'
    '"RSSI":{rssi},"corr-gravity":{sg:.4f},"gravity-unit":"G","run-time":{awake:.1f}}}'
)
TILT = "Timepoint={timepoint}&Temp={fahrenheit:.1f}&SG={sg:.3f}&Beer={beer}&Color={name}:{mac}&Comment="

FORMATS: Mapping[str, str] = {"ispindel": ISPINDEL, "gravitymon": GRAVITYMON, "tilt": TILT}

IDENTITIES: Mapping[str, Callable[[int], str]] = {
    "ispindel": str,
    "gravitymon": lambda number: f"{number:06x}",
    "tilt": lambda number: mac_address(number),
}
"""The stable id of a device by its number, as its reports have it."""

FIRST_NUMBER = 9_000_000
"""The chip ids of sample devices are this number and an account's id, each with more above it: no real chip
has such an id."""


def mac_address(number: int) -> str:
    """Make a locally administered address.

    No Tilt has such an address, so a real Tilt of this colour stays another device.
    """
    return "02:" + ":".join(f"{number:010x}"[place : place + 2] for place in range(0, 10, 2))


@dataclass(frozen=True, slots=True)
class Hydrometer:
    """A made-up hydrometer of an account."""

    kind: HydrometerKind
    account_id: int

    @property
    def number(self) -> int:
        """Return the chip id."""
        return FIRST_NUMBER + self.account_id

    @property
    def key(self) -> str:
        """Return the device's key in the gateway."""
        return f"{self.kind.family}:{IDENTITIES[self.kind.family](self.number)}"

    def payload(self, point: CurvePoint, pitched_at: int, beer: str, dice: random.Random) -> Payload:
        """Make the report of a point, received when the point was measured."""
        at = pitched_at + point.seconds
        body = FORMATS[self.kind.family].format(
            name=self.kind.name,
            number=self.number,
            mac=mac_address(self.number),
            beer=beer,
            timepoint=units.serial_day(at),
            interval=INTERVAL_S,
            **_values(point, dice),
        )
        family = self.kind.family
        return Payload(body.encode(), at, f"http /ingest/{family}", driver=family, source=self.kind.address)


def _values(point: CurvePoint, dice: random.Random) -> dict[str, float]:
    """Return the sensors' values, in every unit that a format needs."""
    celsius = round((point.celsius + dice.gauss(0, SENSOR_STEP_C / 2)) / SENSOR_STEP_C) * SENSOR_STEP_C
    return {
        "sg": point.sg,
        "plato": units.sg_to_plato(point.sg),
        "celsius": celsius,
        "fahrenheit": round(units.celsius_to_fahrenheit(celsius)),
        "angle": UPRIGHT_DEG + FLATTER_DEG * math.sqrt(max(point.sg - UPRIGHT_SG, 0.0)),
        "velocity": -point.activity * HOURS_PER_DAY * USUAL_POINTS,
        "volt": FULL_V - DRAIN_V_PER_DAY * point.seconds / units.SECONDS_PER_DAY + dice.gauss(0, 0.004),
        "rssi": round(dice.gauss(-67, 2.5)),
        "awake": dice.uniform(3.2, 6.4),
    }
