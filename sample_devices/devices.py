"""The kinds of device that can be simulated, and one device with its curve and its connection."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle
from typing import Literal, NamedTuple

from sample_devices.fermentation import Fermentation
from sample_devices.transports import http, mqtt
from sample_devices.transports.errors import NotAnswered
from sample_devices.wire.gravitymon import GravityMonHttp, GravityMonMqtt
from sample_devices.wire.ispindel import ISpindelHttp, ISpindelMqtt
from sample_devices.wire.report import Address, Device, HttpReport, Login, Message, Place, Report
from sample_devices.wire.tilt_pi import TiltPiHttp

Transport = Literal["http", "mqtt"]


class Kind(NamedTuple):
    """A kind of device: its transport, how one is made for a place in a fleet, and a sentence."""

    transport: Transport
    factory: Callable[[Place], Device]
    about: str


# A new kind is one wire module and one line here.
KINDS: dict[str, Kind] = {
    "ispindel-http": Kind("http", ISpindelHttp, "iSpindel 7.3.3, generic HTTP: JSON, gravity in Plato."),
    "ispindel-mqtt": Kind("mqtt", ISpindelMqtt, "iSpindel 7.3.3, MQTT: seven topics, gravity in Plato."),
    "gravitymon-http": Kind("http", GravityMonHttp, "GravityMon 2.x, default POST: JSON, gravity in SG."),
    "gravitymon-mqtt": Kind("mqtt", GravityMonMqtt, "GravityMon 2.x, default MQTT: eight topics, SG."),
    "tiltpi-http": Kind("http", TiltPiHttp, "Tilt Pi, cloud POST: form, SG and Fahrenheit, beer name."),
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

    def has(self, transport: Transport) -> bool:
        """Tell whether a target was given for a transport."""
        return (self.http if transport == "http" else self.mqtt) is not None


@dataclass(frozen=True, slots=True)
class Simulated:
    """One device of a fleet: its kind, what it prints on the wire, its beer, and its targets."""

    kind: str
    device: Device
    beer: Fermentation
    targets: Targets

    def report(self, elapsed_s: float) -> Report:
        """Make the report of a simulated time in seconds since pitching, as sent now."""
        to = self.targets.http or Address("", 80)
        return self.device.report(self.beer.at(elapsed_s), to, datetime.now(UTC).astimezone())

    async def send(self, report: Report) -> str:
        """Send a report once and say how it was answered, or raise NotAnswered."""
        if isinstance(report, HttpReport):
            return await _post(self.targets.http, report)
        return await _publish(self.targets.mqtt, report.login, report.messages)


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
    answer = await http.send(to.host, to.port, report.request)
    text = f"{answer.status} {answer.reason}".rstrip()
    if not answer.ok:
        raise NotAnswered(f"{to.host}:{to.port}: answered {text}")
    return f"{text} {answer.body.decode(errors='replace')}".rstrip()


async def _publish(to: Broker | None, login: Login, messages: Sequence[Message]) -> str:
    if to is None:
        raise NotAnswered("no MQTT target was given")
    if to.user is not None:
        login = Login(login.client_id, login.keep_alive_s, to.user, to.password)
    await mqtt.deliver(to.host, to.port, login, messages)
    return f"{len(messages)} messages handed over"
