"""GravityMon 2.x by HTTP GET, and the GravityMon Gateway with its shipped POST template.

Sources: mp-se/gravitymon `src/push_templates.cpp`, `src/push_gravitymon.cpp`, mp-se/gravitymon-gateway
`src/pushtarget.cpp` v0.5.0 (devices.md 6.4, 6.7).

GET: the query is appended with `?` to the configured URL, also where that has a query already, and
nothing is URL-encoded; keys are name, id (hex), token, interval, temperature, temp-units (with hyphen),
gravity, velocity, angle, battery, rssi, corr-gravity, gravity-unit, run-time.

Gateway: a POST template with a comma before the closing brace; keys are name, ID (hex), token,
interval, temperature, temp_units, gravity, angle, battery, RSSI (the gateway's own level).

Decimals: temperature 2, gravity 4, velocity 1, angle 3, battery 2, run-time 2.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.clients import JSON, esp_get, esp_post, target, with_query
from sample_devices.wire.gravitymon import (
    INTERVAL_S,
    USER_AGENT,
    corrected_sg,
    default_said,
    device_name,
    hex_id,
)
from sample_devices.wire.numbers import ds18b20, fixed
from sample_devices.wire.report import Address, HttpReport, Place

DEFAULT_PATH = "/gravitymon"


@dataclass(frozen=True, slots=True)
class GravityMonGet:
    """A GravityMon with one HTTP GET target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the GET; the template has no time, so the moment is not used."""
        name, device_id = device_name(self.place), hex_id(self.place)
        celsius = ds18b20(point.temperature_c)
        temp, gravity = fixed(celsius, 2), fixed(point.gravity_sg, 4)
        query = (
            f"name={name}&id={device_id}&token=&interval={INTERVAL_S}&temperature={temp}&temp-units=C"
            f"&gravity={gravity}&velocity={fixed(point.velocity_points_per_day, 1)}"
            f"&angle={fixed(point.tilt_deg, 3)}&battery={fixed(point.battery_v, 2)}&rssi={point.rssi_dbm}"
            f"&corr-gravity={fixed(corrected_sg(point.gravity_sg, celsius), 4)}&gravity-unit=G"
            f"&run-time={fixed(point.awake_s, 2)}"
        )
        request = esp_get(to, with_query(target(to, DEFAULT_PATH), query), USER_AGENT)
        return HttpReport((default_said(self.place, point),), request)


@dataclass(frozen=True, slots=True)
class GravityMonGateway:
    """A GravityMon Gateway that passes one device's reading on."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST with its trailing comma; the moment is not used."""
        name, device_id = device_name(self.place), hex_id(self.place)
        temp, gravity = fixed(ds18b20(point.temperature_c), 2), fixed(point.gravity_sg, 4)
        body = (
            f'{{"name": "{name}", "ID": "{device_id}", "token": "", "interval": {INTERVAL_S}, '
            f'"temperature": {temp}, "temp_units": "C", "gravity": {gravity}, '
            f'"angle": {fixed(point.tilt_deg, 3)}, "battery": {fixed(point.battery_v, 2)}, '
            f'"RSSI": {point.rssi_dbm}, }}'
        )
        request = esp_post(to, target(to, DEFAULT_PATH), body.encode(), [JSON], USER_AGENT)
        said = default_said(self.place, point, ("angle", "battery", "rssi", "interval_s"))
        return HttpReport((said,), request)
