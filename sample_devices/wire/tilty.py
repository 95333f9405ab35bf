"""tilty and pytilt: two programs that pass a Tilt's gravity on times 1000.

Sources: myoung34/tilty README and tests, whose Go version fills a user's template with the raw minor;
chiefwigms/picobrew_pico `app/main/routes_tilt_api.py` for pytilt (devices.md 7.8).

    tilty   {"color","gravity","mac","temp" (Fahrenheit),"timestamp" (Unix s, quoted),"gravity_unit",
            "temp_unit"}
    form    Color, SG (times 1000), Temp (Fahrenheit), Timepoint (ISO, local), as BrewStat takes it
    pytilt  [{"color","temp" (Celsius, 2 decimals),"gravity","timestamp" (ISO, local)}]
"""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from sample_devices.fermentation import Point
from sample_devices.wire.answers import any_2xx
from sample_devices.wire.bodies import python_json, thousandth
from sample_devices.wire.clients import FORM, JSON, go_post, python_post, target
from sample_devices.wire.report import Address, HttpReport, Place, Said, local_time
from sample_devices.wire.tilt_values import beacon, colour, mac

TILTY_PATH = "/tilt"
PYTILT_PATH = "/API/tilt"
MAC_PROGRAM = 0xA2


@dataclass(frozen=True, slots=True)
class Tilty:
    """tilty (Go) with a templated webhook."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt, stamped with the sending moment; 1024 says G and means 1.024."""
        seen, name, device_id = beacon(point), colour(self.place), mac(self.place, MAC_PROGRAM)
        minor, temp = round(seen.gravity_sg * 1000), round(seen.temp_f)
        body = python_json({
            "color": name, "gravity": minor, "mac": device_id, "temp": temp,
            "timestamp": str(int(sent_at.timestamp())), "gravity_unit": "G", "temp_unit": "F",
        })  # fmt: skip
        measured_at = int(sent_at.timestamp())
        said = Said(name, device_id, thousandth(str(minor)), "G", str(temp), "F", measured_at=measured_at)
        return HttpReport((said,), go_post(to, target(to, TILTY_PATH), body.encode()), any_2xx)


@dataclass(frozen=True, slots=True)
class TiltyForm:
    """tilty (Go) with a form as template."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt, stamped with the sending moment."""
        seen, name = beacon(point), colour(self.place, 1)
        minor, temp = round(seen.gravity_sg * 1000), round(seen.temp_f)
        stamp = sent_at.replace(tzinfo=None).isoformat(timespec="seconds")
        body = f"Color={name}&SG={minor}&Temp={temp}&Timepoint={quote(stamp)}".encode()
        said = Said(name, None, thousandth(str(minor)), "G", str(temp), "F", local_time(sent_at))
        return HttpReport((said,), go_post(to, target(to, TILTY_PATH), body, FORM), any_2xx)


@dataclass(frozen=True, slots=True)
class PyTilt:
    """pytilt with one Tilt in its list."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of a list of one, stamped with the sending moment."""
        seen, name = beacon(point), colour(self.place, 2).capitalize()
        minor, temp = round(seen.gravity_sg * 1000), round((seen.temp_f - 32) * 5 / 9, 2)
        stamp = sent_at.replace(tzinfo=None).isoformat(timespec="microseconds")
        body = python_json([{"color": name, "temp": temp, "gravity": minor, "timestamp": stamp}])
        said = Said(name, None, thousandth(str(minor)), "G", repr(temp), "C", local_time(sent_at))
        return HttpReport((said,), python_post(to, target(to, PYTILT_PATH), body.encode(), [JSON]), any_2xx)
