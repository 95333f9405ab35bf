"""Torpedo: the HTTP report of an ESP32 hydrometer in MicroPython.

Source: dukeduck1984/Hydrometer-Esp32-Micropython README (devices.md 10.7): name, ID (number), temperature
(Celsius), angle, battery (volts), fahrenheit, currentGravity (SG), currentPlato, batteryLevel (percent),
updateIntervalMs.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point, plato
from sample_devices.wire.bodies import python_json
from sample_devices.wire.clients import micropython_post, target
from sample_devices.wire.esp import chip_id
from sample_devices.wire.identity import named
from sample_devices.wire.rapt_http import battery_percent
from sample_devices.wire.report import Address, HttpReport, Place, Said

DEFAULT_PATH = "/api/hydrometer/v1/data"
INTERVAL_MS = 1_200_000


@dataclass(frozen=True, slots=True)
class TorpedoHttp:
    """A Torpedo with an HTTP target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name, device_id = named(self.place, "Hydrometer"), chip_id(self.place)
        gravity, temp = round(point.gravity_sg, 3), round(point.temperature_c, 1)
        body = python_json({
            "name": name, "ID": device_id, "temperature": temp, "angle": round(point.tilt_deg, 1),
            "battery": round(point.battery_v, 2), "fahrenheit": round(point.temperature_c * 9 / 5 + 32, 1),
            "currentGravity": gravity, "currentPlato": round(plato(gravity), 1),
            "batteryLevel": round(battery_percent(point)), "updateIntervalMs": INTERVAL_MS,
        })  # fmt: skip
        said = Said(name, str(device_id), repr(gravity), "G", repr(temp), "C")
        return HttpReport((said,), micropython_post(to, target(to, DEFAULT_PATH), body))
