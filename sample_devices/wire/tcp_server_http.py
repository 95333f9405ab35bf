"""iSpindel-TCP-Server: its forwards to a BrewPiLess and to CraftBeerPi.

Source: DottoreTozzi/iSpindel-TCP-Server `iSpindle.py` (devices.md 10.6): Python's json of name, angle,
temperature (degrees Celsius, not said), battery, gravity (degrees Plato, not said) by urllib, whose headers
are in the order of sample 22; the User-Agent is the spindle's name.  CraftBeerPi gets no gravity, or in the
place of the angle, which nobody can tell; here the option is set that gives the angle.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point, plato
from sample_devices.wire.bodies import python_json
from sample_devices.wire.clients import JSON, request, target
from sample_devices.wire.ispindel import device_name
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said

DEFAULT_PATH = "/gravity"
CRAFTBEERPI_PATH = "/api/hydrometer/v1/data"


@dataclass(frozen=True, slots=True)
class TcpServerBrewPiLess:
    """An iSpindel-TCP-Server that forwards one spindle."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no units and no time."""
        gravity = round(plato(point.gravity_sg), 2)
        return _forward(self.place, point, to, DEFAULT_PATH, gravity)


@dataclass(frozen=True, slots=True)
class TcpServerCraftBeerPi:
    """An iSpindel-TCP-Server that forwards one spindle to CraftBeerPi, with its angle."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no units and no time."""
        return _forward(self.place, point, to, CRAFTBEERPI_PATH, None)


def _forward(place: Place, point: Point, to: Address, path: str, gravity: float | None) -> HttpReport:
    name, temp = device_name(place), round(point.temperature_c, 1)
    facts: Facts = {"angle": round(point.tilt_deg, 1), "battery": round(point.battery_v, 2)}
    data = {"name": name, "angle": facts["angle"], "temperature": temp, "battery": facts["battery"]}
    body = python_json(data if gravity is None else data | {"gravity": gravity}).encode()
    fields = [
        "Accept-Encoding: identity",
        f"Content-Length: {len(body)}",
        f"Host: {to.authority}",
        JSON,
        f"User-Agent: {name}",
        "Connection: close",
    ]
    sent = request(f"POST {target(to, path)} HTTP/1.1", fields, body)
    text, unit = (None, None) if gravity is None else (repr(gravity), "P")
    return HttpReport((Said(name, None, text, unit, repr(temp), "C", facts),), sent)
