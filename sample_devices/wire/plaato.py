"""Plaato Airlock: the vendor cloud's web hook.

Sources: its receivers JohNan/pyplaato and JohNan/home-assistant-plaato (devices.md 9): device_name,
device_id (number), temp_unit with a degree sign, volume_unit, bpm, temp, sg, og, abv, co2_volume,
batch_volume, bubbles (counter).
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.answers import any_2xx
from sample_devices.wire.bodies import compact_json
from sample_devices.wire.clients import plain_post, target
from sample_devices.wire.esp import chip_id
from sample_devices.wire.identity import named
from sample_devices.wire.report import Address, HttpReport, Place, Said

DEFAULT_PATH = "/api/webhook/plaato"
ORIGINAL_SG = 1.07
ABV_PER_SG = 131.25  # percent; the usual short formula
LITRES = 20
CO2_LITRES_PER_SG = 9000.0  # our own, as are the bubbles: only their shape matters
BUBBLES_PER_LITRE = 150
BPM_PER_POINT = 2.5  # bubbles a minute for each gravity point a day


def bubbles_per_minute(point: Point) -> float:
    """Give bubbles a minute with one decimal, in step with the fall of gravity."""
    return round(max(-point.velocity_points_per_day, 0.0) * BPM_PER_POINT, 1)


@dataclass(frozen=True, slots=True)
class Plaato:
    """A Plaato Airlock behind its vendor's cloud."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name, device_id = named(self.place, "Airlock "), chip_id(self.place)
        gravity, temp = round(point.gravity_sg, 3), round(point.temperature_c, 1)
        eaten = ORIGINAL_SG - gravity
        litres = round(eaten * CO2_LITRES_PER_SG, 1)
        body = compact_json({
            "device_name": name, "device_id": device_id, "temp_unit": "°C", "volume_unit": "L",
            "bpm": bubbles_per_minute(point), "temp": temp, "sg": gravity, "og": ORIGINAL_SG,
            "abv": round(eaten * ABV_PER_SG, 2), "co2_volume": litres, "batch_volume": LITRES,
            "bubbles": round(litres * BUBBLES_PER_LITRE),
        })  # fmt: skip
        facts = {
            "bpm": bubbles_per_minute(point), "og": ORIGINAL_SG, "abv": round(eaten * ABV_PER_SG, 2),
            "co2_volume": litres,
        }  # fmt: skip
        said = Said(name, str(device_id), repr(gravity), "G", repr(temp), "C", facts)
        return HttpReport((said,), plain_post(to, target(to, DEFAULT_PATH), body.encode()), any_2xx)
