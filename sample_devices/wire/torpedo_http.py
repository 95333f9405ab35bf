"""Torpedo: the HTTP report of an ESP32 hydrometer in MicroPython.

Source: dukeduck1984/Hydrometer-Esp32-Micropython `torpedo/main.py`, `torpedo/microWebCli.py` (devices.md
10.7): name, ID (number), temperature (Celsius), angle, battery (volts), fahrenheit, currentGravity (SG),
currentPlato, batteryLevel (percent), updateIntervalMs.  Any 2xx will do.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point, plato
from sample_devices.wire.answers import any_2xx
from sample_devices.wire.bodies import python_json
from sample_devices.wire.clients import microwebcli_post, target
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
        facts = {
            "angle": round(point.tilt_deg, 1),
            "battery": round(point.battery_v, 2),
            "battery_percent": round(battery_percent(point)),
            "interval_s": INTERVAL_MS // 1000,
        }
        said = Said(name, str(device_id), repr(gravity), "G", repr(temp), "C", facts)
        return HttpReport((said,), microwebcli_post(to, target(to, DEFAULT_PATH), body), any_2xx)
