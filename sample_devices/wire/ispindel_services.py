"""iSpindel, firmware 7.3.3: the services beside generic HTTP and MQTT.

Source: universam1/iSpindel `pio/lib/Sender/Sender.cpp`, `pio/src/iSpindel.cpp` (devices.md 5.4 to 5.10).
All print values as ArduinoJson does.  Temperature is in the user's unit, always Celsius for Prometheus and
Bricks; the chip id is in the JSON of TCP and in FHEM's query only.

    TCP         the generic JSON and CRLF; waits up to 2 s for a reply
    TCONTROL    `T: <temperature> D: <angle> U: <volt> G: <gravity>` and CRLF up to 6.0.6; since 6.1.0 the
                code clears its own values before it prints them, and an empty line is all
    ThingSpeak  POST /update of a form, printed by mathworks/thingspeak-arduino `src/ThingSpeak.h`: field1 to
                field7 are tilt, temperature, temp_units, battery, gravity, interval, RSSI; the key a header
    InfluxDB    POST <uri>: `measurements,source=<name> tilt=..,..,temp_units="C",..`, content type of a form
    Prometheus  POST /metrics/job/<job>/instance/<instance>: TYPE, HELP and value lines; no name; wants 202
    FHEM        GET /fhem?cmd.Test=set <name> <angle> <temperature> <unit> <battery> <gravity> <ID>&XHR=1
    Ubidots     POST /api/v1.6/devices/<name>?token=<token>, host fixed, CRLF after the body not counted
    Bricks      POST /api/iot/v1: apikey, type, brand, version, chipid (16 digits of an MD5), s_number_*
    Brewblox    MQTT, topic of the user's: {"key":<name>,"data":{"Tilt[deg]":..,..}}
    AWS         MQTT, topic of the user's: {"state":{"reported":{..}}, "key":<name>}
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.answers import accepted, any_2xx, entry_number, exactly_200
from sample_devices.wire.clients import FORM, JSON, esp_post, request, target, with_query
from sample_devices.wire.esp import chip_id
from sample_devices.wire.identity import serial
from sample_devices.wire.ispindel import FACTS, device_name, facts_of, generic_json, login, said, texts
from sample_devices.wire.report import Address, HttpReport, Message, MqttReport, Place, Said, TcpReport

INFLUX_PATH = "/write?db=ispindel"
PROMETHEUS_JOB = "ispindel"
THINGSPEAK_HOST = "api.thingspeak.com"
THINGSPEAK_AGENT = "tslib-arduino/2.1.1 (ESP8266)"
UBIDOTS_HOST = "industrial.api.ubidots.com"
BRICKS_PATH = "/api/iot/v1"
TOKEN = "BBFF-abc"  # noqa: S105 - made up
FLASH_CHIP_ID = 1_458_400

_AGENT = "ESP8266HTTPClient"


@dataclass(frozen=True, slots=True)
class ISpindelTcp:
    """An iSpindel set to the generic TCP service."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> TcpReport:
        """Make the line; neither address nor moment is on the wire."""
        values = texts(point)
        line = generic_json(self.place, values) + "\r\n"
        return TcpReport((said(self.place, values, with_id=True),), line.encode())


@dataclass(frozen=True, slots=True)
class ISpindelTcontrol:
    """An iSpindel set to TCONTROL, which has sent nothing but an empty line since 6.1.0."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> TcpReport:
        """Make the empty line, in which is no reading."""
        return TcpReport((), b"\r\n")


@dataclass(frozen=True, slots=True)
class ISpindelTcontrolOld:
    """An iSpindel 6.0 set to TCONTROL; nothing says which one it is."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> TcpReport:
        """Make the line of four values."""
        values = texts(point)
        line = f"T: {values.temperature} D: {values.tilt} U: {values.battery} G: {values.gravity}\r\n"
        facts = facts_of(values, FACTS[:2])
        return TcpReport(
            (Said("", None, values.gravity, "P", values.temperature, None, facts),), line.encode()
        )


@dataclass(frozen=True, slots=True)
class ISpindelThingSpeak:
    """An iSpindel set to ThingSpeak, whose name server leads it to us; the key is all that tells it apart."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of the library."""
        values, key = texts(point), f"W{chip_id(self.place):015X}"
        pairs = "&".join(f"field{place}={text}" for place, text in enumerate(values, 1))
        body = f"{pairs}&headers=false".encode()
        fields = [
            f"Host: {THINGSPEAK_HOST}",
            f"User-Agent: {THINGSPEAK_AGENT}",
            f"X-THINGSPEAKAPIKEY: {key}",
            FORM,
            f"Content-Length: {len(body)}",
        ]
        spoken = Said(key, None, values.gravity, "P", values.temperature, values.temp_units, facts_of(values))
        posted = request(f"POST {target(to, '/update')} HTTP/1.1", fields, body)
        # The library knows no other path; at one that a person gave there may be another kind of answer.
        return HttpReport((spoken,), posted, entry_number if to.path is None else exactly_200)


@dataclass(frozen=True, slots=True)
class ISpindelInflux:
    """An iSpindel set to InfluxDB without a user; it does not look at the answer."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one line without a time."""
        values = texts(point)
        fields = values._asdict() | {"temp_units": f'"{values.temp_units}"'}
        pairs = ",".join(f"{key}={text}" for key, text in fields.items())
        body = f"measurements,source={device_name(self.place)} {pairs}".encode()
        posted = esp_post(to, target(to, INFLUX_PATH), body, [FORM], _AGENT)
        return HttpReport((said(self.place, values),), posted, any_2xx)


@dataclass(frozen=True, slots=True)
class ISpindelPrometheus:
    """An iSpindel set to a Prometheus Pushgateway; the instance of the path is all the name it has."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of six gauges."""
        values = texts(point)
        gauges = {key: text for key, text in values._asdict().items() if key != "temp_units"}
        body = "".join(
            f"# TYPE {key} gauge\n# HELP {key} The approximate value of {key}.\n{key} {text}\n"
            for key, text in gauges.items()
        )
        instance = f"{serial(self.place):03d}" if self.place.name is None else self.place.name
        path = target(to, f"/metrics/job/{PROMETHEUS_JOB}/instance/{instance}")
        spoken = Said(instance, None, values.gravity, "P", values.temperature, "C", facts_of(values))
        posted = esp_post(to, path, body.encode(), ["Content-Type: text/plain"], _AGENT)
        return HttpReport((spoken,), posted, accepted)


@dataclass(frozen=True, slots=True)
class ISpindelFhem:
    """An iSpindel set to FHEM."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the GET, printed by hand: the port is always named, User-Agent is the name."""
        values, name = texts(point), device_name(self.place)
        words = (name, values.tilt, values.temperature, values.temp_units, values.battery, values.gravity)
        query = f"cmd.Test=set%20{'%20'.join(words)}%20{chip_id(self.place)}&XHR=1"
        line = f"GET {with_query(target(to, '/fhem'), query)} HTTP/1.1"
        fields = [f"Host: {to.host}:{to.port}", f"User-Agent: {name}", "Connection: close"]
        spoken = said(self.place, values, with_id=True, with_facts=FACTS[:2])
        return HttpReport((spoken,), request(line, fields))


@dataclass(frozen=True, slots=True)
class ISpindelUbidots:
    """An iSpindel set to Ubidots, whose name server leads it to us."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST, printed by hand, with two bytes more than it says."""
        values, name = texts(point), device_name(self.place)
        body = _object({key: text for key, text in values._asdict().items() if key != "temp_units"})
        fields = [
            f"Host: {UBIDOTS_HOST}",
            "User-Agent: ESP8266",
            "Connection: close",
            JSON,
            f"Content-Length: {len(body)}",
        ]
        path = target(to, f"/api/v1.6/devices/{name}?token={TOKEN}")
        posted = request(f"POST {path} HTTP/1.1", fields, f"{body}\r\n".encode())
        return HttpReport((said(self.place, values),), posted)


@dataclass(frozen=True, slots=True)
class ISpindelBricks:
    """An iSpindel set to BierBot Bricks, whose name server leads it to us."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the name stays in the device."""
        values, chip = texts(point), bricks_chip_id(self.place)
        body = _object(
            {
                "apikey": f'"{TOKEN}"',
                "type": '"ispindel"',
                "brand": '"wemos_d1_mini"',
                "version": '"7.3.3"',
                "chipid": f'"{chip}"',
                "s_number_wort_0": values.gravity,
                "s_number_temp_0": values.temperature,
                "s_number_voltage_0": values.battery,
                "s_number_wifi_0": values.RSSI,
                "s_number_tilt_0": values.tilt,
            }
        )
        posted = esp_post(to, target(to, BRICKS_PATH), body.encode(), [JSON], _AGENT)
        facts = facts_of(values, FACTS[:3])
        return HttpReport((Said(chip, chip, values.gravity, "P", values.temperature, "C", facts),), posted)


@dataclass(frozen=True, slots=True)
class ISpindelBrewblox:
    """An iSpindel set to Brewblox, with Brewblox's own topic for histories."""

    place: Place
    topic: str = "brewcast/history"

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the message; it has no time."""
        values, name = texts(point), device_name(self.place)
        data = _object(
            {
                "Tilt[deg]": values.tilt,
                f"Temperature[deg{values.temp_units}]": values.temperature,
                "Battery[V]": values.battery,
                "Gravity": values.gravity,
                "Rssi[dBm]": values.RSSI,
            }
        )
        payload = f'{{"key":"{name}","data":{data}}}'.encode()
        spoken = said(self.place, values, with_facts=FACTS[:3])
        return MqttReport((spoken,), login(name), (Message(self.topic, payload),))


@dataclass(frozen=True, slots=True)
class ISpindelAws:
    """An iSpindel set to AWS IoT, without the TLS that the firmware insists on."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> MqttReport:
        """Make the message to the thing's shadow; it has no unit of temperature."""
        values, name = texts(point), device_name(self.place)
        reported = {key: text for key, text in values._asdict().items() if key != "temp_units"}
        inner = _object({"name": json.dumps(name, ensure_ascii=False)} | reported)
        payload = f'{{"state":{{"reported":{inner}}}, "key":"{name}"}}'.encode()
        topic = f"$aws/things/{name}/shadow/update"
        return MqttReport((said(self.place, values),), login(name), (Message(topic, payload),))


def bricks_chip_id(place: Place) -> str:
    """Give the chip id as the firmware hashes it: 16 hex digits of flash id and MAC."""
    mac = (bytes([0x5C, 0xCF, 0x7F]) + chip_id(place).to_bytes(3, "big")).hex(":").upper()
    return hashlib.md5(f"{FLASH_CHIP_ID}_{mac}".encode(), usedforsecurity=False).hexdigest()[:16]


def _object(members: dict[str, str]) -> str:
    """Put JSON texts together without blanks."""
    return "{" + ",".join(f'"{key}":{text}' for key, text in members.items()) + "}"
