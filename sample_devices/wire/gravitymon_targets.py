"""GravityMon 2.x beside its default POST and MQTT, PressureMon's MQTT and InfluxDB, the chamber controller.

Sources: mp-se/gravitymon `src/push_templates.cpp`, `src_docs/source/services.rst`, mp-se/gravitymon-ui
`src/modules/gravityFormatOptions.js`, mp-se/pressuremon `src/push_pressuremon.cpp`, mp-se/chamber-controller
`src/main.cpp`, mp-se/espframework `src/basepush.cpp` (devices.md 6.1, 6.5, 6.6, 6.8, 6.9).

    TCP        the POST template's text without a line end; waits 2 s
    InfluxDB   POST <url>/api/v2/write?org=&bucket=, `Authorization: Token`, no Content-Type; exactly 204
    HA 2       gravmon/<mdns>/ + temperature, gravity, rssi, tilt, battery, then the discovery messages of
               each, not retained, with every report; a device class and a unit only where one is stated
    Brewblox   brewcast/history: {"key","data"} with both temperatures and both gravities
    pressure   pressuremon/<mdns>/ + temperature, temperature-unit, battery, pressure, pressure-unit,
               interval, RSSI
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point, plato
from sample_devices.wire.answers import no_content
from sample_devices.wire.clients import esp_post, target
from sample_devices.wire.esp import one_value_messages
from sample_devices.wire.gravitymon import (
    KEEP_ALIVE_S,
    USER_AGENT,
    corrected_sg,
    default_body,
    default_said,
    device_name,
    hex_id,
    template_values,
)
from sample_devices.wire.numbers import as_float32, ds18b20, fixed
from sample_devices.wire.pressuremon_http import INTERVAL_S, pressure_facts, pressure_psi
from sample_devices.wire.report import (
    Address,
    HttpReport,
    Login,
    Message,
    MqttReport,
    Place,
    Said,
    TcpReport,
)

INFLUX_PATH = "/api/v2/write?org=home&bucket=brew"
INFLUX_TOKEN = "abc=="  # noqa: S105 - made up
VERSION = "2.2.0"

SENSORS = ("angle", "battery", "rssi")

DISCOVERY = {
    "temperature": ("temp", '"dev_cla":"temperature","unit_of_meas":"°C",'),
    "gravity": ("grav", '"unit_of_meas":" G",'),
    "rssi": ("rssi", '"dev_cla":"signal_strength","unit_of_meas":"dBm",'),
    "tilt": ("tilt", ""),
    "battery": ("batt", '"dev_cla":"voltage","unit_of_meas":"V",'),
}
"""Home Assistant 2: the end of each value's unique id, and what its discovery message says of it."""

CHAMBER_BELOW_BEER_C = 1.4
CHAMBER_TARGET_C = 18.5


@dataclass(frozen=True, slots=True)
class GravityMonTcp:
    """A GravityMon whose POST target has the option TCP."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> TcpReport:
        """Make the text of the POST template; nothing ends it."""
        return TcpReport((default_said(self.place, point),), default_body(self.place, point).encode())


@dataclass(frozen=True, slots=True)
class GravityMonInflux:
    """A GravityMon with an InfluxDB v2 target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one line without a time."""
        texts = template_values(point)
        corrected = fixed(corrected_sg(point.gravity_sg, ds18b20(point.temperature_c)), 4)
        line = (
            f"measurement,host={device_name(self.place)},device={hex_id(self.place)},"
            f"temp-format={texts.temp_units},gravity-format=G gravity={texts.gravity},"
            f"velocity={texts.velocity},corr-gravity={corrected},angle={texts.tilt},"
            f"temp={texts.temperature},battery={texts.battery},rssi={texts.RSSI}\n"
        )
        facts = ("velocity", "corr_gravity", *SENSORS)
        return influx_report(default_said(self.place, point, facts), to, line)


@dataclass(frozen=True, slots=True)
class GravityMonHomeAssistant:
    """A GravityMon with the second MQTT template for Home Assistant."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make five values, `rssi` in the middle, and five discovery messages."""
        name, texts = device_name(self.place), template_values(point)
        values = {
            "temperature": texts.temperature,
            "gravity": texts.gravity,
            "rssi": texts.RSSI,
            "tilt": texts.tilt,
            "battery": texts.battery,
        }
        messages = one_value_messages(name, values, "gravmon")
        messages += tuple(_discovery(self.place, key) for key in values)
        said = default_said(self.place, point, SENSORS, with_id=False)
        return MqttReport((said,), Login(name, KEEP_ALIVE_S), messages)


@dataclass(frozen=True, slots=True)
class GravityMonBrewblox:
    """A GravityMon with the MQTT template for Brewblox."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the message; it has both units of everything."""
        name, texts = device_name(self.place), template_values(point)
        fahrenheit = fixed(ds18b20(point.temperature_c) * 9 / 5 + 32, 2)
        payload = (
            f'{{"key":"{name}","data":{{"Temperature[degC]": {texts.temperature},'
            f'"Temperature[degF]": {fahrenheit},"Battery[V]":{texts.battery},"Tilt[deg]":{texts.tilt},'
            f'"Rssi[dBm]":{texts.RSSI},"SG":{texts.gravity},"Plato":{fixed(plato(point.gravity_sg), 2)}}}}}'
        )
        said = default_said(self.place, point, SENSORS, with_id=False)
        messages = (Message("brewcast/history", payload.encode()),)
        return MqttReport((said,), Login(name, KEEP_ALIVE_S), messages)


@dataclass(frozen=True, slots=True)
class PressureMonMqtt:
    """A PressureMon with an MQTT target and the default topic template."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the seven messages."""
        name, temp = _pressure_name(self.place), fixed(ds18b20(point.temperature_c), 2)
        values = {
            "temperature": temp,
            "temperature-unit": "C",
            "battery": fixed(point.battery_v, 2),
            "pressure": fixed(pressure_psi(point), 2),
            "pressure-unit": "PSI",
            "interval": str(INTERVAL_S),
            "RSSI": str(point.rssi_dbm),
        }
        facts = pressure_facts(point) | {"interval_s": INTERVAL_S}
        said = Said(name, None, None, None, temp, "C", facts)
        return MqttReport((said,), Login(name, KEEP_ALIVE_S), one_value_messages(name, values, "pressuremon"))


@dataclass(frozen=True, slots=True)
class PressureMonInflux:
    """A PressureMon with an InfluxDB v2 target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one line without a time."""
        name, device_id = _pressure_name(self.place), hex_id(self.place)
        temp = fixed(ds18b20(point.temperature_c), 2)
        line = (
            f"measurement,host={name},device={device_id},temperature-unit=C,pressure-unit=PSI "
            f"pressure={fixed(pressure_psi(point), 2)},temp={temp},"
            f"battery={fixed(point.battery_v, 2)},rssi={point.rssi_dbm}\n"
        )
        return influx_report(Said(name, device_id, None, None, temp, "C", pressure_facts(point)), to, line)


@dataclass(frozen=True, slots=True)
class ChamberInflux:
    """A chamber controller: the line is all that it can send; six decimals, no unit."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one line without a time and without an end."""
        device_id = hex_id(self.place)
        name = f"chamber{device_id}" if self.place.name is None else self.place.name
        beer = f"{as_float32(point.temperature_c):.6f}"
        chamber = f"{as_float32(point.temperature_c - CHAMBER_BELOW_BEER_C):.6f}"
        line = (
            f"chamber,host={name},device={device_id},mode=b beer-temp={beer},chamber-temp={chamber},"
            f"beer-target-temp={CHAMBER_TARGET_C:.6f},chamber-target-temp={CHAMBER_TARGET_C - 1:.6f},"
            "actuator-cool=0,actuator-heat=1,state=3"
        )
        facts = {"aux_temp": chamber, "temp_target": f"{CHAMBER_TARGET_C:.6f}"}
        return influx_report(Said(name, device_id, None, None, beer, None, facts), to, line)


def influx_report(said: Said, to: Address, line: str) -> HttpReport:
    """Make the POST that all the family's devices make to InfluxDB v2, without a Content-Type."""
    own = [f"Authorization: Token {INFLUX_TOKEN}"]
    request = esp_post(to, target(to, INFLUX_PATH), line.encode(), own, USER_AGENT)
    return HttpReport((said,), request, no_content)


def _pressure_name(place: Place) -> str:
    return f"pressmon{hex_id(place)}" if place.name is None else place.name


def _discovery(place: Place, key: str) -> Message:
    name, device_id = device_name(place), hex_id(place)
    short, rest = DISCOVERY[key]
    payload = (
        f'{{"dev":{{"name":"{name}","mdl":"gravmon","sw":"{VERSION}","ids":"{device_id}"}},'
        f'"uniq_id":"{device_id}_{short}","name":"{key}",{rest}"stat_t":"gravmon/{name}/{key}"}}'
    )
    return Message(f"homeassistant/sensor/gravmon_{device_id}/{key}/config", payload.encode())
