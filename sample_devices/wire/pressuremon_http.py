"""PressureMon with its HTTP templates: POST, POST of two sensors, GET.

Source: mp-se/pressuremon `src/push_pressuremon.cpp`, `html/app.js.gz` (devices.md 6.8): name, id (hex,
lower-case key), token, interval, temperature (2 decimals), temperature-unit, pressure (2), with two sensors
pressure1, pressure-unit "PSI", "Bar" or "kPa", battery (2), rssi, run-time (1); no gravity.  A GET has the
same names and is not encoded.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.clients import JSON, esp_get, esp_post, target, with_query
from sample_devices.wire.gravitymon import USER_AGENT, hex_id
from sample_devices.wire.numbers import ds18b20, fixed
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said

DEFAULT_PATH = "/pressuremon"
INTERVAL_S = 300
SECOND_BELOW_PSI = 0.4
TEXTS = frozenset({"name", "id", "token", "temperature-unit", "pressure-unit"})
FACTS = {
    "interval": "interval_s", "pressure": "pressure", "pressure1": "pressure1",
    "pressure-unit": "pressure_unit", "battery": "battery", "rssi": "rssi", "run-time": "run_time_s",
}  # fmt: skip
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
    """A PressureMon with one HTTP POST target, and one sensor or two."""

    place: Place
    has_two: bool = False

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the template has no time, so the moment is not used."""
        values = _values(self.place, point, self.has_two)
        quoted = {key: f'"{text}"' if key in TEXTS else text for key, text in values.items()}
        body = ", ".join(f'"{key}": {text}' for key, text in quoted.items())
        request = esp_post(to, target(to, DEFAULT_PATH), f"{{{body} }}".encode(), [JSON], USER_AGENT)
        return HttpReport((_said(values),), request)


@dataclass(frozen=True, slots=True)
class PressureMonGet:
    """A PressureMon with one HTTP GET target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the GET; the template has no time, so the moment is not used."""
        values = _values(self.place, point)
        query = "&".join(f"{key}={text}" for key, text in values.items())
        request = esp_get(to, with_query(target(to, DEFAULT_PATH), query), USER_AGENT)
        return HttpReport((_said(values),), request)


def _values(place: Place, point: Point, has_two: bool = False) -> dict[str, str]:
    device_id, psi = hex_id(place), pressure_psi(point)
    second = {"pressure1": fixed(psi - SECOND_BELOW_PSI, 2)} if has_two else {}
    return {
        "name": f"pressmon{device_id}" if place.name is None else place.name,
        "id": device_id,
        "token": "",
        "interval": str(INTERVAL_S),
        "temperature": fixed(ds18b20(point.temperature_c), 2),
        "temperature-unit": "C",
        "pressure": fixed(psi, 2),
        **second,
        "pressure-unit": "PSI",
        "battery": fixed(point.battery_v, 2),
        "rssi": str(point.rssi_dbm),
        "run-time": fixed(point.awake_s, 1),
    }


def _said(values: dict[str, str]) -> Said:
    facts: Facts = {FACTS.get(key, key): text for key, text in values.items() if key in FACTS}
    return Said(values["name"], values["id"], None, None, values["temperature"], "C", facts)
