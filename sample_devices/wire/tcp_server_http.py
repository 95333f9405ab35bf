"""iSpindel-TCP-Server: its forward to a BrewPiLess.

Source: DottoreTozzi/iSpindel-TCP-Server `iSpindle.py` (devices.md 10.6): Python's json of name, angle,
temperature (degrees Celsius, not said), battery, gravity (degrees Plato, not said) by urllib, whose headers
are in the order of sample 22; the User-Agent is the spindle's name.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point, plato
from sample_devices.wire.bodies import python_json
from sample_devices.wire.clients import JSON, request, target
from sample_devices.wire.ispindel import device_name
from sample_devices.wire.report import Address, HttpReport, Place, Said

DEFAULT_PATH = "/gravity"


@dataclass(frozen=True, slots=True)
class TcpServerBrewPiLess:
    """An iSpindel-TCP-Server that forwards one spindle."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no units and no time."""
        name = device_name(self.place)
        gravity, temp = round(plato(point.gravity_sg), 2), round(point.temperature_c, 1)
        body = python_json({
            "name": name, "angle": round(point.tilt_deg, 1), "temperature": temp,
            "battery": round(point.battery_v, 2), "gravity": gravity,
        }).encode()  # fmt: skip
        fields = [
            "Accept-Encoding: identity",
            f"Content-Length: {len(body)}",
            f"Host: {to.authority}",
            JSON,
            f"User-Agent: {name}",
            "Connection: close",
        ]
        sent = request(f"POST {target(to, DEFAULT_PATH)} HTTP/1.1", fields, body)
        facts = {"angle": round(point.tilt_deg, 1), "battery": round(point.battery_v, 2)}
        return HttpReport((Said(name, None, repr(gravity), "P", repr(temp), "C", facts),), sent)
