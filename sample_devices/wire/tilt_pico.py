"""Tilt Pico 2: cloud POST of one Tilt from MicroPython; and the older Pico W gateway's from Arduino.

Sources: baronbrew/Tilt-Pico-2 `main.py`, micropython/micropython-lib `python-ecosys/requests` (devices.md
4.6, 7.4): Timepoint, SG, Temp, Color, Beer, Comment joined with `=` and `&`, nothing URL-encoded; Timepoint
is local, from integer arithmetic, with 7 decimals; Comment is `P` on the first log after the start.  The
declared length counts characters while UTF-8 is sent: too short for a beer with an umlaut.

Pico W: baronbrew/TiltPico `Tilt_PicoW_Gateway/Tilt_PicoW_Gateway.ino`: Timepoint, Temp, SG, Beer (encoded,
with its cloud id), Color, Comment without `=`, by arduino-pico's port of ESP8266HTTPClient, whose User-Agent
was not read.
"""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from sample_devices.fermentation import Point
from sample_devices.wire.answers import any_2xx
from sample_devices.wire.clients import FORM, esp_post, micropython_old_post, target
from sample_devices.wire.report import Address, HttpReport, Place, Said, local_time
from sample_devices.wire.tilt_pi import timepoint as serial_day
from sample_devices.wire.tilt_values import beacon, colour, mac

DEFAULT_PATH = "/tilt"
MAC_PROGRAM = 0xA1
CLOUD_ID = 112
PICO_AGENT = "Pico"
BEERS = ("Kölsch von Hand", "Brown Ale", "Märzen", "Jul Øl & Nüsse")

_SPREADSHEET_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - a local serial has no zone
_SERIAL_DECIMALS = 10**7
_DAY_S = 86_400


def timepoint(sent_at: datetime) -> str:
    """Give the local time as spreadsheet serial with 7 decimals, cut and not rounded."""
    since = sent_at.replace(tzinfo=None) - _SPREADSHEET_EPOCH
    return f"{since.days}.{since.seconds * _SERIAL_DECIMALS // _DAY_S:07d}"


@dataclass(frozen=True, slots=True)
class TiltPicoW:
    """A Pico W gateway that posts one Tilt."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of a point, stamped with the sending moment."""
        seen, name, named = beacon(point), colour(self.place, 6), BEERS[self.place.ordinal % len(BEERS)]
        gravity, temp = repr(seen.gravity_sg), repr(seen.temp_f)
        body = (
            f"Timepoint={serial_day(sent_at)!r}&Temp={temp}&SG={gravity}"
            f"&Beer={quote(f'{named},{CLOUD_ID}', safe='')}&Color={name}&Comment"
        ).encode()
        own = [f"{FORM}; charset=utf-8"]
        request = esp_post(to, target(to, DEFAULT_PATH), body, own, PICO_AGENT)
        said = Said(name, None, gravity, "G", temp, "F", local_time(sent_at) | {"beer": named})
        return HttpReport((said,), request, any_2xx)


@dataclass(frozen=True, slots=True)
class TiltPico:
    """A Tilt Pico 2 that posts one Tilt to one cloud URL."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of a point, stamped with the sending moment."""
        seen, name, device_id = beacon(point), colour(self.place, 1), mac(self.place, MAC_PROGRAM)
        gravity, temp = repr(seen.gravity_sg), repr(seen.temp_f)
        comment, named = "" if point.elapsed_s else "P", BEERS[self.place.ordinal % len(BEERS)]
        text = (
            f"Timepoint={timepoint(sent_at)}&SG={gravity}&Temp={temp}&Color={name}:{device_id}"
            f"&Beer={named}&Comment={comment}"
        )
        own = [FORM.replace("Content-Type", "content-type") + "; charset=utf-8"]
        request = micropython_old_post(to, target(to, DEFAULT_PATH), text, own)
        said = Said(name, device_id, gravity, "G", temp, "F", local_time(sent_at) | {"beer": named})
        return HttpReport((said,), request, any_2xx)
