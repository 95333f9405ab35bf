"""Brew Bubbles: a bubble counter's URL target.

Source: lbussy/brew-bubbles `src/pushhelper.cpp` (devices.md 10.3): ArduinoJson of api_name, name, bpm,
ambient, temp, temp_unit, printed to a raw socket with a CRLF after it; no gravity.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.answers import text_200_ok
from sample_devices.wire.bodies import compact_json
from sample_devices.wire.clients import raw_socket_post, target
from sample_devices.wire.identity import named
from sample_devices.wire.numbers import arduino_json
from sample_devices.wire.plaato import bubbles_per_minute
from sample_devices.wire.report import Address, HttpReport, Place, Said

DEFAULT_PATH = "/brewpi-api.php"
AMBIENT_ABOVE_BEER_F = 4.5


@dataclass(frozen=True, slots=True)
class BrewBubbles:
    """A Brew Bubbles with a URL target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; it has no time."""
        name = named(self.place, "Bubble")
        vessel = round(point.temperature_c * 9 / 5 + 32, 1)
        temp, ambient = arduino_json(vessel), arduino_json(vessel + AMBIENT_ABOVE_BEER_F)
        body = (
            f'{{"api_name":"Brew Bubbles","name":{compact_json(name)},'
            f'"bpm":{arduino_json(bubbles_per_minute(point))},"ambient":{ambient},'
            f'"temp":{temp},"temp_unit":"F"}}'
        )
        facts = {"bpm": arduino_json(bubbles_per_minute(point)), "ext_temp": ambient}
        said = Said(name, None, None, None, temp, "F", facts)
        return HttpReport((said,), raw_socket_post(to, target(to, DEFAULT_PATH), body.encode()), text_200_ok)
