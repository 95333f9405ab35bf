"""The kinds of simulated device, and one device with its curve and its connection."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from typing import NamedTuple

from sample_devices.fermentation import Fermentation
from sample_devices.kinds import Kind, Transport
from sample_devices.kinds_http import HTTP_KINDS
from sample_devices.kinds_mqtt import MQTT_KINDS
from sample_devices.kinds_services import SERVICE_KINDS
from sample_devices.transports import http, mqtt, tcp
from sample_devices.transports.errors import NotAnswered
from sample_devices.wire.gravitymon import GravityMonHttp, GravityMonMqtt
from sample_devices.wire.ispindel import ISpindelHttp, ISpindelMqtt
from sample_devices.wire.report import (
    Address,
    Device,
    HttpReport,
    Login,
    MqttReport,
    Place,
    Report,
    TcpReport,
)
from sample_devices.wire.tilt_pi import TiltPiHttp

# A new kind is one wire module and one line in a table.
KINDS: dict[str, Kind] = {
    "ispindel-http": Kind("http", ISpindelHttp, "iSpindel 7.3.3, generic HTTP: JSON, gravity in Plato."),
    "ispindel-mqtt": Kind("mqtt", ISpindelMqtt, "iSpindel 7.3.3, MQTT: seven topics, gravity in Plato."),
    "gravitymon-http": Kind("http", GravityMonHttp, "GravityMon 2.x, default POST: JSON, gravity in SG."),
    "gravitymon-mqtt": Kind("mqtt", GravityMonMqtt, "GravityMon 2.x, default MQTT: eight topics, SG."),
    "tiltpi-http": Kind("http", TiltPiHttp, "Tilt Pi, cloud POST: form, SG and Fahrenheit, beer name."),
    **HTTP_KINDS,
    **SERVICE_KINDS,
    **MQTT_KINDS,
}


class Broker(NamedTuple):
    """Where an MQTT report goes; user and password only where the device has them configured."""

    host: str
    port: int
    user: str | None = None
    password: str | None = None


class Targets(NamedTuple):
    """Where a fleet reports to; None where a transport was not given."""

    http: Address | None = None
    mqtt: Broker | None = None
    tcp: Address | None = None

    def has(self, transport: Transport) -> bool:
        """Tell whether a target was given for a transport."""
        return {"http": self.http, "mqtt": self.mqtt, "tcp": self.tcp}[transport] is not None


@dataclass(frozen=True, slots=True)
class Simulated:
    """One device of a fleet: its kind, what it prints on the wire, its beer, and its targets."""

    kind: str
    device: Device
    beer: Fermentation
    targets: Targets

    def report(self, elapsed_s: float, sent_at: datetime | None = None) -> Report:
        """Make the report of a simulated time in seconds since pitching, as sent at a moment, else now."""
        to = self.targets.http or Address("", 80)
        moment = datetime.now(UTC).astimezone() if sent_at is None else sent_at
        return self.device.report(self.beer.at(elapsed_s), to, moment)

    async def send(self, report: Report) -> str:
        """Send a report once and say how it was answered, or raise NotAnswered."""
        match report:
            case HttpReport():
                return await _post(self.targets.http, report)
            case MqttReport():
                return await _publish(self.targets.mqtt, report)
            case TcpReport():
                return await _write(self.targets.tcp, report)


def simulate(kind: str, place: Place, targets: Targets) -> Simulated:
    """Make one device; its curve follows from seed and number."""
    return Simulated(kind, KINDS[kind].factory(place), Fermentation(f"{place.seed}|{place.number}"), targets)


def simulate_fleet(kinds: Sequence[str], size: int, seed: int, targets: Targets) -> list[Simulated]:
    """Make as many devices as the size says, the kinds in turn, no two with the same identity."""
    so_far: Counter[str] = Counter()
    devices = []
    for number, kind in zip(range(size), cycle(kinds), strict=False):
        devices.append(simulate(kind, Place(seed, number, so_far[kind]), targets))
        so_far[kind] += 1
    return devices


async def _post(to: Address | None, report: HttpReport) -> str:
    if to is None:
        raise NotAnswered("no HTTP target was given")
    if report.cut:
        await http.send_cut(to.host, to.port, report.request)
        return "cut off, nothing to be answered"
    answer = await http.send(to.host, to.port, report.request)
    text = f"{answer.status} {answer.reason}".rstrip()
    if not report.taken_if(answer.status, answer.reason, answer.body):
        raise NotAnswered(f"{to.host}:{to.port}: answered {text}")
    return f"{text} {answer.body.decode(errors='replace')}".rstrip()


async def _publish(to: Broker | None, report: MqttReport) -> str:
    if to is None:
        raise NotAnswered("no MQTT target was given")
    login = report.login
    if to.user is not None:
        login = Login(login.client_id, login.keep_alive_s, to.user, to.password)
    await mqtt.deliver(to.host, to.port, login, report.messages)
    return f"{len(report.messages)} messages handed over"


async def _write(to: Address | None, report: TcpReport) -> str:
    if to is None:
        raise NotAnswered("no TCP target was given")
    reply = await tcp.send(to.host, to.port, report.data)
    return f"replied {reply!r}" if reply else "no reply"
