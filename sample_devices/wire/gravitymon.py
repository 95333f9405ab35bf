"""GravityMon 2.x with its default templates: HTTP POST and MQTT.

Sources: mp-se/gravitymon `src/push_templates.cpp`, `src/push_gravitymon.cpp`, mp-se/espframework
`src/basepush.cpp` (devices.md 6.1, 6.2, 6.6).  Text templates filled with fixed decimals;
nothing is escaped.

HTTP: `POST` to the configured URL with the default header `Content-Type: application/json`, blanks
after colons and commas and one before the closing brace:

    name          text      mDNS name
    ID            text      chip id, hex
    token         text      may be empty; here it is
    interval      number    seconds of sleep
    temperature   number    2 decimals, in temp_units
    temp_units    text      "C" or "F"; here "C"
    gravity       number    4 decimals, in gravity-unit
    velocity      number    1 decimal, gravity points per day
    angle         number    3 decimals, degrees
    battery       number    2 decimals, volts
    RSSI          number    dBm
    corr-gravity  number    4 decimals, gravity corrected for temperature
    gravity-unit  text      "G" or "P"; here "G"
    run-time      number    2 decimals, seconds awake

MQTT: one QoS 0 message per value, `ispindel/<mdns>/` + tilt, temperature, temp_units, battery,
gravity, velocity, interval, RSSI, in this order.  arduino-mqtt leaves empty user and password out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sample_devices.fermentation import Point
from sample_devices.wire.esp import chip_id, one_value_messages, post
from sample_devices.wire.numbers import ds18b20, fixed
from sample_devices.wire.report import Address, HttpReport, Login, MqttReport, Place, Said

DEFAULT_PATH = "/ingest/gravitymon"
INTERVAL_S = 900
KEEP_ALIVE_S = 10  # default of arduino-mqtt
USER_AGENT = "ESP32HTTPClient"  # 2.x runs on ESP32 boards

FACTS = ("angle", "battery", "rssi", "velocity", "interval_s", "corr_gravity", "run_time_s")
"""Of the POST template."""

MQTT_FACTS = FACTS[:5]

_CALIBRATION_F = 68.0  # 20 degrees Celsius, the firmware's default


class Texts(NamedTuple):
    """The values of a report with the firmware's decimals, in the order of the MQTT template."""

    tilt: str
    temperature: str
    temp_units: str
    battery: str
    gravity: str
    velocity: str
    interval: str
    RSSI: str


def hex_id(place: Place) -> str:
    """Give the chip id as the firmware prints it: lower-case hex, six digits."""
    return f"{chip_id(place):06x}"


def device_name(place: Place) -> str:
    """Give the mDNS name, by default `gravmon` and the chip id."""
    return f"gravmon{hex_id(place)}" if place.name is None else place.name


@dataclass(frozen=True, slots=True)
class GravityMonHttp:
    """A GravityMon with one HTTP POST target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the default template has no time, so the moment is not used."""
        body = default_body(self.place, point).encode()
        said = default_said(self.place, point)
        return HttpReport((said,), post(to, DEFAULT_PATH, body, USER_AGENT))


@dataclass(frozen=True, slots=True)
class GravityMonMqtt:
    """A GravityMon with an MQTT target and the default topic template."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the eight messages; neither address nor moment is on the wire."""
        name, texts = device_name(self.place), template_values(point)
        said = default_said(self.place, point, MQTT_FACTS, with_id=False)
        return MqttReport((said,), Login(name, KEEP_ALIVE_S), one_value_messages(name, texts._asdict()))


def default_body(place: Place, point: Point) -> str:
    """Fill the default POST template."""
    texts = template_values(point)
    corrected = fixed(corrected_sg(point.gravity_sg, ds18b20(point.temperature_c)), 4)
    return (
        f'{{"name": "{device_name(place)}", "ID": "{hex_id(place)}", "token": "", '
        f'"interval": {texts.interval}, "temperature": {texts.temperature}, '
        f'"temp_units": "{texts.temp_units}", "gravity": {texts.gravity}, '
        f'"velocity": {texts.velocity}, "angle": {texts.tilt}, "battery": {texts.battery}, '
        f'"RSSI": {texts.RSSI}, "corr-gravity": {corrected}, "gravity-unit": "G", '
        f'"run-time": {fixed(point.awake_s, 2)} }}'
    )


def default_said(place: Place, point: Point, with_facts: Sequence[str] = FACTS, with_id: bool = True) -> Said:
    """Say what a report's one reading is; the MQTT templates send no chip id, and some lack other values."""
    texts, device_id = template_values(point), hex_id(place) if with_id else None
    every = (
        *(texts.tilt, texts.battery, texts.RSSI, texts.velocity, texts.interval),
        fixed(corrected_sg(point.gravity_sg, ds18b20(point.temperature_c)), 4),
        fixed(point.awake_s, 2),
    )
    facts = {name: text for name, text in zip(FACTS, every, strict=True) if name in with_facts}
    return Said(device_name(place), device_id, texts.gravity, "G", texts.temperature, texts.temp_units, facts)


def corrected_sg(gravity_sg: float, temperature_c: float) -> float:
    """Correct SG for the density of water at degrees Celsius against the calibration temperature."""
    return gravity_sg * _water(temperature_c * 9 / 5 + 32) / _water(_CALIBRATION_F)


def _water(temperature_f: float) -> float:
    """Give the usual hydrometer correction polynomial at degrees Fahrenheit."""
    return (
        1.00130346 - 1.34722124e-4 * temperature_f + 2.04052596e-6 * temperature_f**2
    ) - 2.32820948e-9 * temperature_f**3


def template_values(point: Point) -> Texts:
    """Print the values of a point."""
    return Texts(
        tilt=fixed(point.tilt_deg, 3),
        temperature=fixed(ds18b20(point.temperature_c), 2),
        temp_units="C",
        battery=fixed(point.battery_v, 2),
        gravity=fixed(point.gravity_sg, 4),
        velocity=fixed(point.velocity_points_per_day, 1),
        interval=str(INTERVAL_S),
        RSSI=str(point.rssi_dbm),
    )
