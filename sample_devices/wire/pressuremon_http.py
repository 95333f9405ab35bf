"""PressureMon with its default HTTP POST template.

Source: mp-se/pressuremon `src/push_pressuremon.cpp` (devices.md 6.8): name, id (hex, lower-case key),
token, interval, temperature (2 decimals), temperature-unit, pressure (2), pressure-unit "PSI", "Bar" or
"kPa", battery (2), rssi, run-time (1); no gravity.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.clients import JSON, esp_post, target
from sample_devices.wire.gravitymon import USER_AGENT, hex_id
from sample_devices.wire.numbers import ds18b20, fixed
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said

DEFAULT_PATH = "/pressuremon"
INTERVAL_S = 300
PSI_PER_SG = 300.0  # our own: pressure builds up as gravity falls
HEAVIEST_SG = 1.070


def pressure_psi(point: Point) -> float:
    """Give the pressure in PSI above the atmosphere, growing while gravity falls."""
    return (HEAVIEST_SG - point.gravity_sg) * PSI_PER_SG


def pressure_facts(point: Point) -> Facts:
    """Give what all of its targets have beside the temperature."""
    return {
        "pressure": fixed(pressure_psi(point), 2),
        "pressure_unit": "PSI",
        "battery": fixed(point.battery_v, 2),
        "rssi": point.rssi_dbm,
    }


@dataclass(frozen=True, slots=True)
class PressureMonHttp:
    """A PressureMon with one HTTP POST target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the template has no time, so the moment is not used."""
        device_id = hex_id(self.place)
        name = f"pressmon{device_id}" if self.place.name is None else self.place.name
        temp = fixed(ds18b20(point.temperature_c), 2)
        body = (
            f'{{"name": "{name}", "id": "{device_id}", "token": "", "interval": {INTERVAL_S}, '
            f'"temperature": {temp}, "temperature-unit": "C", "pressure": {fixed(pressure_psi(point), 2)}, '
            f'"pressure-unit": "PSI", "battery": {fixed(point.battery_v, 2)}, "rssi": {point.rssi_dbm}, '
            f'"run-time": {fixed(point.awake_s, 1)} }}'
        )
        request = esp_post(to, target(to, DEFAULT_PATH), body.encode(), [JSON], USER_AGENT)
        facts = pressure_facts(point) | {"interval_s": INTERVAL_S, "run_time_s": fixed(point.awake_s, 1)}
        return HttpReport((Said(name, device_id, None, None, temp, "C", facts),), request)
