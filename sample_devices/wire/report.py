"""What a simulated device hands to a transport: bytes or messages, and what it says with them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from sample_devices.fermentation import Point
from sample_devices.wire.answers import Rule, exactly_200


class Address(NamedTuple):
    """Where an HTTP report goes: host, port, and a request target if not the device's default."""

    host: str
    port: int
    path: str | None = None

    @property
    def authority(self) -> str:
        """Give `host` or `host:port`, the port left out for 80 and 443, IPv6 in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in {80, 443} else f"{host}:{self.port}"


Facts = dict[str, str | float]
"""Further values of a reading, text or number as on the wire."""


def local_time(sent_at: datetime) -> Facts:
    """Say the moment as devices do whose clock knows no zone."""
    return {"device_time_local": sent_at.replace(tzinfo=None).isoformat(timespec="seconds")}


class Place(NamedTuple):
    """A device's place in a fleet: seed, number in the fleet from 0, ordinal among its kind, chosen name."""

    seed: int
    number: int = 0
    ordinal: int = 0
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """One reading of a report, as text on the wire; None where the wire has no such thing.

    `facts` are further values by the names of devices.md section 2 (battery in volts, battery_percent, rssi,
    angle, interval_s, velocity, pressure, bpm, beer ...), the ones that a server should give back.
    `measured_at` is the device's own time in Unix seconds, None where it sends none or only a local one,
    which is the fact device_time_local.
    """

    name: str
    device_id: str | None
    gravity: str | None
    gravity_unit: str | None  # "G" specific gravity, "P" degrees Plato
    temp: str | None
    temp_unit: str | None  # "C" or "F"
    facts: Mapping[str, str | float] = field(default_factory=dict[str, str | float])
    measured_at: float | None = None


@dataclass(frozen=True, slots=True)
class HttpReport:
    """One HTTP request, complete, the readings in it, and the answers that its device takes for a yes.

    With `cut` it is the beginning of one, after which the connection ends; there is no answer to wait for.
    """

    said: tuple[Said, ...]
    request: bytes
    taken_if: Rule = exactly_200
    cut: bool = False


@dataclass(frozen=True, slots=True)
class TcpReport:
    """The bytes of one raw TCP connection, and the readings in them; any answer or none will do."""

    said: tuple[Said, ...]
    data: bytes


class Message(NamedTuple):
    """One MQTT message."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False


@dataclass(frozen=True, slots=True)
class Login:
    """How an MQTT client introduces itself; None leaves a field out, "" sends it empty."""

    client_id: str
    keep_alive_s: int
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class MqttReport:
    """The MQTT messages of a report in sending order, what its readings say, and the connection's login."""

    said: tuple[Said, ...]
    login: Login
    messages: tuple[Message, ...]


Report = HttpReport | MqttReport | TcpReport


class Device(Protocol):
    """A simulated device: from a point of its curve to the report it would send."""

    def report(self, point: Point, to: Address, sent_at: datetime) -> Report:
        """Make the report of a point, sent to an address at a moment (zone-aware)."""
