"""eManometer 0.7.6b: the services of its iSpindel code base beside MQTT.

Source: JackFrost80/eManometer `pio/src/main.cpp`, `pio/lib/Sender/Sender.cpp` (devices.md 10.4).

    generic     ArduinoJson of name, ID, temperature, temp_units, type, pressure (bar), co2, interval, RSSI,
                and in spunding mode num-openings, open-time; by HTTP, or by TCP with CRLF behind it
    Ubidots     POST /api/v1.6/devices/<name>?token=<token>: temperature without a unit and the last six,
                `nun-openings` so spelled, in every mode, and CRLF after the body
    InfluxDB    `measurements,source=<name>`: the code clears its values before it prints them
    Prometheus  nothing, for the same reason
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.answers import accepted, any_2xx
from sample_devices.wire.bodies import compact_json
from sample_devices.wire.clients import FORM, JSON, esp_post, request, target
from sample_devices.wire.esp import chip_id, post
from sample_devices.wire.identity import named
from sample_devices.wire.numbers import arduino_json, ds18b20
from sample_devices.wire.pressuremon_http import pressure_psi
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said, TcpReport

TOKEN = "BBFF-abc"  # noqa: S105 - made up
DEFAULT_PATH = "/ispindel"
INTERVAL_S = 300
BAR_PER_PSI = 0.0689476
OPENINGS, OPEN_S = 14, 6  # of the spunding valve
SPUNDING_FACTS = {"num_openings": OPENINGS, "open_time": OPEN_S}
CO2_G_PER_L = 1.7  # of beer without pressure
CO2_G_PER_L_BAR = 1.6
_AGENT = "ESP8266HTTPClient"


def emanometer_facts(point: Point) -> Facts:
    """Give what all of its services have beside the temperature, outside of spunding mode."""
    bar = round(pressure_psi(point) * BAR_PER_PSI, 2)
    return {
        "pressure": arduino_json(bar),
        "pressure_unit": "BAR",
        "co2": arduino_json(round(CO2_G_PER_L + CO2_G_PER_L_BAR * bar, 1)),
        "interval_s": INTERVAL_S,
        "rssi": point.rssi_dbm,
    }


@dataclass(frozen=True, slots=True)
class EManometerHttp:
    """An eManometer in spunding mode, set to the generic HTTP service."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the device has no clock."""
        said, body = _generic(self.place, point)
        return HttpReport((said,), post(to, target(to, DEFAULT_PATH), body.encode()))


@dataclass(frozen=True, slots=True)
class EManometerTcp:
    """An eManometer in spunding mode, set to the generic TCP service."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> TcpReport:
        """Make the line."""
        said, body = _generic(self.place, point)
        return TcpReport((said,), f"{body}\r\n".encode())


@dataclass(frozen=True, slots=True)
class EManometerUbidots:
    """An eManometer set to Ubidots, whose name server leads it to us."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST, printed by hand, with two bytes more than it says."""
        name, temp, facts = named(self.place, "eMano"), _temperature(point), emanometer_facts(point)
        body = (
            f'{{"temperature":{temp},"pressure":{facts["pressure"]},"co2":{facts["co2"]},'
            f'"interval":{INTERVAL_S},"RSSI":{point.rssi_dbm},"nun-openings":{OPENINGS},"open-time":{OPEN_S}}}'
        )
        fields = [
            "Host: things.ubidots.com",
            "User-Agent: ESP8266",
            "Connection: close",
            JSON,
            f"Content-Length: {len(body)}",
        ]
        path = target(to, f"/api/v1.6/devices/{name}?token={TOKEN}")
        said = Said(name, None, None, None, temp, None, facts | SPUNDING_FACTS)
        return HttpReport((said,), request(f"POST {path} HTTP/1.1", fields, f"{body}\r\n".encode()))


@dataclass(frozen=True, slots=True)
class EManometerInflux:
    """An eManometer set to InfluxDB, which sends nothing but its name; it does not look at the answer."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST, in which is no reading."""
        body = f"measurements,source={named(self.place, 'eMano')}".encode()
        return HttpReport((), esp_post(to, target(to, "/write?db=emano"), body, [FORM], _AGENT), any_2xx)


@dataclass(frozen=True, slots=True)
class EManometerPrometheus:
    """An eManometer set to a Prometheus Pushgateway, which sends nothing."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of an empty body."""
        path = target(to, f"/metrics/job/emanometer/instance/{named(self.place, '')}")
        return HttpReport((), esp_post(to, path, b"", ["Content-Type: text/plain"], _AGENT), accepted)


def _generic(place: Place, point: Point) -> tuple[Said, str]:
    name, device_id = named(place, "eMano"), str(chip_id(place))
    temp, facts = _temperature(point), emanometer_facts(point)
    body = (
        f'{{"name":{compact_json(name)},"ID":{device_id},"temperature":{temp},"temp_units":"C",'
        f'"type":"eManometer","pressure":{facts["pressure"]},"co2":{facts["co2"]},'
        f'"interval":{INTERVAL_S},"RSSI":{point.rssi_dbm},"num-openings":{OPENINGS},"open-time":{OPEN_S}}}'
    )
    return Said(name, device_id, None, None, temp, "C", facts | SPUNDING_FACTS), body


def _temperature(point: Point) -> str:
    return arduino_json(ds18b20(point.temperature_c))
