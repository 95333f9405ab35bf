"""Devices that post in the shapes of the cloud services: Brewfather and Brewer's Friend streams.

Sources: the services' documentation of their custom streams (devices.md 11.1, 11.2), and MvdDonk/brewfather
`custom_components/brewfather/coordinator.py` for Home Assistant, which sends `gravity` null.  Empty text
stands for a missing number in the Brewer's Friend shape.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point, plato
from sample_devices.wire.answers import any_2xx, result_success
from sample_devices.wire.bodies import compact_json, python_json
from sample_devices.wire.clients import JSON, aiohttp_post, plain_post, target
from sample_devices.wire.identity import named
from sample_devices.wire.plaato import bubbles_per_minute
from sample_devices.wire.pressuremon_http import pressure_psi
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said

BREWFATHER_PATH = "/stream?id=abc123"
FRIEND_KEY = "0123456789abcdef"
BAR_PER_PSI = 0.0689476


@dataclass(frozen=True, slots=True)
class BrewfatherStream:
    """A controller that fills nearly every member of the Brewfather stream."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the shape has no time."""
        name = named(self.place, "Controller-")
        gravity, temp = round(point.gravity_sg, 4), round(point.temperature_c, 1)
        body = compact_json({
            "name": name, "temp": temp, "aux_temp": 4.6, "ext_temp": 21.9, "temp_unit": "C",
            "gravity": gravity, "gravity_unit": "G",
            "pressure": round(pressure_psi(point) * BAR_PER_PSI, 2), "pressure_unit": "BAR", "ph": 4.31,
            "bpm": round(bubbles_per_minute(point)), "comment": "krausen falling", "beer": "Helles",
            "battery": round(point.battery_v, 2), "device_source": "X Sensor", "report_source": "MyHub",
            "device_state": "cooling", "temp_target": 18,
        })  # fmt: skip
        facts: Facts = {
            "pressure": round(pressure_psi(point) * BAR_PER_PSI, 2), "pressure_unit": "BAR", "ph": 4.31,
            "bpm": round(bubbles_per_minute(point)), "battery": round(point.battery_v, 2), "aux_temp": 4.6,
            "ext_temp": 21.9, "temp_target": 18, "beer": "Helles", "comment": "krausen falling",
        }  # fmt: skip
        said = Said(name, None, repr(gravity), "G", repr(temp), "C", facts)
        return HttpReport((said,), plain_post(to, target(to, BREWFATHER_PATH), body.encode()), any_2xx)


@dataclass(frozen=True, slots=True)
class BrewersFriendStream:
    """A device that posts degrees Plato in the Brewer's Friend shape, the key in path and header."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the shape has no time."""
        name = named(self.place, "BrewBench")
        gravity, temp = round(plato(point.gravity_sg), 1), round(point.temperature_c, 1)
        body = compact_json({
            "name": name, "temp": temp, "temp_unit": "C", "gravity": gravity, "gravity_unit": "P", "ph": 4.5,
            "comment": "", "beer": "Doppelbock", "battery": round(point.battery_v, 6),
            "RSSI": point.rssi_dbm, "angle": "",
        })  # fmt: skip
        own = [JSON, f"X-API-KEY: {FRIEND_KEY}"]
        request = plain_post(to, target(to, f"/stream/{FRIEND_KEY}"), body.encode(), own)
        facts: Facts = {
            "battery": round(point.battery_v, 6), "rssi": point.rssi_dbm, "beer": "Doppelbock", "ph": 4.5,
        }  # fmt: skip
        return HttpReport((Said(name, None, repr(gravity), "P", repr(temp), "C", facts),), request, any_2xx)


@dataclass(frozen=True, slots=True)
class HomeAssistant:
    """Home Assistant with the Brewfather add-on and no gravity sensor; its name is always the same."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name = "HomeAssistant" if self.place.name is None else self.place.name
        temp = round(point.temperature_c, 1)
        body = python_json({"name": name, "temp": temp, "temp_unit": "C", "gravity": None})
        request = aiohttp_post(to, target(to, BREWFATHER_PATH), body.encode())
        return HttpReport((Said(name, None, None, None, repr(temp), "C"),), request, result_success)
