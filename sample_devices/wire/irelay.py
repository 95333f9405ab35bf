"""Nautilis iRelay: the report of its own probe.

Source: its receiver wormoworm/irelay-mqtt `src/api.py` (devices.md 10.5): temperature, unit `celsius`, and
a token as the only thing that tells two of them apart.  Host is `brew-spy.com` whatever answers for it.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.clients import plain_post, target
from sample_devices.wire.identity import named
from sample_devices.wire.numbers import arduino_json, ds18b20
from sample_devices.wire.report import Address, HttpReport, Place, Said

DEFAULT_PATH = "/api/irelay"
HOST = Address("brew-spy.com", 80)


@dataclass(frozen=True, slots=True)
class IRelay:
    """An iRelay whose DNS answers with the address of the gateway; a chosen name is its token."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the reading has neither name nor id."""
        temp = arduino_json(ds18b20(point.temperature_c))
        body = f'{{"temperature":{temp},"unit":"celsius","token":"{named(self.place, "spytok")}"}}'
        request = plain_post(HOST, target(to, DEFAULT_PATH), body.encode())
        return HttpReport((Said("", None, None, None, temp, "C"),), request)
