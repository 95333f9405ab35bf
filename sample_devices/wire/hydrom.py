"""Hydrom: a commercial relative of the iSpindel.

Sources: vitotai/BrewPiLess issue 409 and the vendor's page on MQTT (devices.md 10.11, not verified): JSON as
the iSpindel's to a BrewPiLess' path, a token always, `gravity` in Plato and `tilt_SG`; of the client nothing
is known.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point, plato
from sample_devices.wire.bodies import compact_json
from sample_devices.wire.clients import plain_post, target
from sample_devices.wire.identity import named
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said

DEFAULT_PATH = "/gravity"


@dataclass(frozen=True, slots=True)
class Hydrom:
    """A Hydrom set to a BrewPiLess."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name, gravity = named(self.place, "Hydrom"), round(point.gravity_sg, 4)
        temp = round(point.temperature_c, 1)
        facts: Facts = {
            "angle": round(point.tilt_deg, 1), "battery": round(point.battery_v, 2), "rssi": point.rssi_dbm,
        }  # fmt: skip
        body = compact_json({
            "name": name, "token": "h", "angle": facts["angle"], "temperature": temp,
            "battery": facts["battery"], "gravity": round(plato(gravity), 1), "tilt_SG": gravity,
            "RSSI": point.rssi_dbm,
        })  # fmt: skip
        said = Said(name, None, repr(gravity), "G", repr(temp), "C", facts)
        return HttpReport((said,), plain_post(to, target(to, DEFAULT_PATH), body.encode()))
