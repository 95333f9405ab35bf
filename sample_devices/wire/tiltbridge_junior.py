"""TiltBridge Junior: every three seconds a list of Tilts, raw and smoothed.

Source: thorrak/tiltbridge_junior `TiltHydrometer.py`, `data_targets/legacy_fermentrack_target.py`
(devices.md 7.6); numbers with a decimal point are strings, the smoothed ones have one decimal more.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.bodies import compact_json, shortest
from sample_devices.wire.clients import JSON, python_post, target
from sample_devices.wire.report import Address, HttpReport, Place, Said
from sample_devices.wire.tilt_values import beacon, colour

DEFAULT_PATH = "/tiltbridge/"
WEEKS_ON_BATTERY = 6
SMOOTHING_WINDOW = 60  # beacons


@dataclass(frozen=True, slots=True)
class TiltBridgeJunior:
    """A TiltBridge Junior with one Tilt; the smoothed values are the reading."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        raw, fine = beacon(point), beacon(point, fine=True)
        name = colour(self.place, 7).capitalize()
        gravity, temp = shortest(fine.gravity_sg, 4), shortest(fine.temp_f, 1)
        tilt = {
            "color": name, "raw_gravity": shortest(raw.gravity_sg, 3), "raw_temp": shortest(raw.temp_f, 0),
            "rssi": point.rssi_dbm, "tilt_pro": False, "sends_battery": True,
            "weeks_on_battery": WEEKS_ON_BATTERY, "firmware_version": 1006, "smoothed_gravity": gravity,
            "smoothed_temp": temp, "smoothing_window": SMOOTHING_WINDOW, "temp_format": "F",
        }  # fmt: skip
        body = compact_json({"tilts": [tilt], "tiltbridge_junior": True})
        request = python_post(to, target(to, DEFAULT_PATH), body.encode(), [JSON])
        facts = {"rssi": point.rssi_dbm, "weeks_on_battery": WEEKS_ON_BATTERY}
        return HttpReport((Said(name, None, gravity, "G", temp, "F", facts),), request)
