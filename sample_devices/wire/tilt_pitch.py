"""tilt-pitch: webhook and the streams of Brewfather, Brewer's Friend, Grainfather and taplist.io of one Tilt.

Source: linjmeyer/tilt-pitch `pitch/providers`, `pitch/models/tilt_status.py` (devices.md 7.7): Python's
json and requests, `Content-type` so spelled.

    webhook      timestamp (local, no zone), color (lower case), name (the beer), hd, temp_fahrenheit,
                 temp_celsius, original_gravity, gravity, degrees_plato, alcohol_by_volume,
                 apparent_attenuation, temp_valid, gravity_valid
    Brewfather   name `PitchTilt<color>`, beer, temp, temp_unit, gravity, gravity_unity (sic)
    Friend       name `Pitch-Tilt-<color>`, device_source, gravity, og, beer, temp_unit, temp, gravity_unit
    taplist.io   Color, Temp, SG, temperature_unit, gravity_unit; a User-Agent of its own
    Grainfather  specific_gravity, temperature, unit `fahrenheit` or `celsius`; the name is in the URL
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point, plato
from sample_devices.wire.answers import any_2xx
from sample_devices.wire.bodies import python_json
from sample_devices.wire.clients import python_post, target
from sample_devices.wire.identity import serial
from sample_devices.wire.report import Address, HttpReport, Place, Said, local_time
from sample_devices.wire.tilt_values import beacon, beer, beer_facts, colour
from sample_devices.wire.tiltbridge_http import segment

WEBHOOK_PATH = "/tilt"
STREAM_PATH = "/stream?id=xyz"
FRIEND_PATH = "/stream/KEY"
ORIGINAL_SG = 1.07
ABV_PER_SG = 131.25  # percent; the usual short formula

_HEADERS = ("Content-type: application/json",)


def _celsius(fahrenheit: float) -> float:
    return round((fahrenheit - 32) * 5 / 9, 1)


def _post(to: Address, path: str, body: object) -> bytes:
    return python_post(to, path, python_json(body).encode(), _HEADERS, accept="text/plain")


@dataclass(frozen=True, slots=True)
class TiltPitchWebhook:
    """tilt-pitch with a webhook."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt, stamped with the sending moment in local time."""
        seen, name = beacon(point), colour(self.place, 3).lower()
        gravity, temp = seen.gravity_sg, round(seen.temp_f)
        degrees = plato(gravity)
        body = {
            "timestamp": str(sent_at.replace(tzinfo=None)), "color": name, "name": beer(self.place),
            "hd": False, "temp_fahrenheit": temp, "temp_celsius": _celsius(temp),
            "original_gravity": ORIGINAL_SG, "gravity": gravity, "degrees_plato": round(degrees, 1),
            "alcohol_by_volume": round((ORIGINAL_SG - gravity) * ABV_PER_SG, 2),
            "apparent_attenuation": round((1 - degrees / plato(ORIGINAL_SG)) * 100, 2),
            "temp_valid": True, "gravity_valid": True,
        }  # fmt: skip
        facts = local_time(sent_at) | beer_facts(self.place)
        facts |= {"og": ORIGINAL_SG, "abv": round((ORIGINAL_SG - gravity) * ABV_PER_SG, 2)}
        said = Said(name, None, repr(gravity), "G", repr(temp), "F", facts)
        return HttpReport((said,), _post(to, target(to, WEBHOOK_PATH), body))


@dataclass(frozen=True, slots=True)
class TiltPitchStream:
    """tilt-pitch with a Brewfather stream."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt."""
        seen, name = beacon(point), f"PitchTilt{colour(self.place, 4).lower()}"
        temp = _celsius(seen.temp_f)
        body = {
            "name": name, "beer": beer(self.place), "temp": temp, "temp_unit": "C",
            "gravity": seen.gravity_sg, "gravity_unity": "G",
        }  # fmt: skip
        said = Said(name, None, repr(seen.gravity_sg), "G", repr(temp), "C", beer_facts(self.place))
        return HttpReport((said,), _post(to, target(to, STREAM_PATH), body), any_2xx)


@dataclass(frozen=True, slots=True)
class TiltPitchFriend:
    """tilt-pitch with a Brewer's Friend stream, set to Fahrenheit."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt."""
        seen, name = beacon(point), f"Pitch-Tilt-{colour(self.place, 6).lower()}"
        temp = round(seen.temp_f)
        body = {
            "name": name, "device_source": "tilt", "gravity": seen.gravity_sg, "og": ORIGINAL_SG,
            "beer": beer(self.place), "temp_unit": "F", "temp": temp, "gravity_unit": "G",
        }  # fmt: skip
        facts = beer_facts(self.place) | {"og": ORIGINAL_SG}
        said = Said(name, None, repr(seen.gravity_sg), "G", repr(temp), "F", facts)
        return HttpReport((said,), _post(to, target(to, FRIEND_PATH), body), any_2xx)


@dataclass(frozen=True, slots=True)
class TiltPitchTaplist:
    """tilt-pitch with a taplist.io URL."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt."""
        seen, name = beacon(point), colour(self.place, 7).lower()
        temp = round(seen.temp_f)
        body = python_json({
            "Color": name, "Temp": temp, "SG": seen.gravity_sg, "temperature_unit": "F", "gravity_unit": "G",
        })  # fmt: skip
        posted = python_post(to, target(to, WEBHOOK_PATH), body.encode(), _HEADERS, agent="tilt-pitch")
        return HttpReport((Said(name, None, repr(seen.gravity_sg), "G", repr(temp), "F"),), posted, any_2xx)


@dataclass(frozen=True, slots=True)
class TiltPitchGrainfather:
    """tilt-pitch with a Grainfather URL of the Tilt's own."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt, whose only name is in the path."""
        seen = beacon(point)
        path = target(to, f"/iot/pitch-{colour(self.place, 5).lower()}-{serial(self.place)}/tilt")
        temp = round(seen.temp_f)
        body = {"specific_gravity": seen.gravity_sg, "temperature": temp, "unit": "fahrenheit"}
        said = Said(segment(path), None, repr(seen.gravity_sg), "G", repr(temp), "F")
        return HttpReport((said,), _post(to, path, body), any_2xx)
