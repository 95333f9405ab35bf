"""BrewPiLess: its HTTP log with the presets for Brewfather and Brewer's Friend, and a GET of the user's.

Source: vitotai/BrewPiLess `htmljs/src/js/script-logging.js`, `src/DataLogger.cpp`, `src/LogFormatter.cpp`
(devices.md 10.1): a format string filled with temperatures (1 decimal, controller unit), SG (4), tilt (2),
hydrometer voltage (1) and the Unix time of the last hydrometer report.  What is missing prints as `null`,
in the Brewer's Friend preset as `""`; a GET appends `?` and the text.  User-Agent is `ESP8266`.
"""

from dataclasses import dataclass
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.clients import JSON, esp_get, esp_post, target, with_query
from sample_devices.wire.identity import named
from sample_devices.wire.numbers import fixed
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said

BREWFATHER_PATH = "/brewpiless?id=abc123"
FRIEND_PATH = "/stream/KEY"
LOG_PATH = "/log"
USER_AGENT = "ESP8266"

BEER_SET_C = 18.5
FRIDGE_BELOW_BEER_C = 2.3
WARMER_PROBE_C = 0.2


def _facts(point: Point) -> Facts:
    return {"angle": fixed(point.tilt_deg, 2), "battery": fixed(point.battery_v, 1)}


@dataclass(frozen=True, slots=True)
class BrewPiLessBrewfather:
    """A BrewPiLess with the Brewfather preset."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST; the sending moment stands for the last hydrometer report."""
        name = named(self.place, "bpl-")
        temp, gravity = fixed(point.temperature_c, 1), fixed(point.gravity_sg, 4)
        fridge, probe = point.temperature_c - FRIDGE_BELOW_BEER_C, point.temperature_c + WARMER_PROBE_C
        body = (
            f'{{"id":"{name}","beerTemp":{temp},"beerSet":{BEER_SET_C},"fridgeTemp":{fixed(fridge, 1)},'
            f'"fridgeSet":{fixed(fridge, 1)},"roomTemp":null,"gravity":{gravity},'
            f'"tiltValue":{fixed(point.tilt_deg, 2)},"auxTemp":{fixed(probe, 1)},'
            f'"extVolt":{fixed(point.battery_v, 1)},"timestamp":{int(sent_at.timestamp())},"tempUnit":"C",'
            f'"pressure":null,"mode":"b","humidity":null}}'
        )
        request = esp_post(to, target(to, BREWFATHER_PATH), body.encode(), [JSON], USER_AGENT)
        facts = _facts(point) | {"aux_temp": fixed(fridge, 1), "temp_target": BEER_SET_C}
        said = Said(name, None, gravity, "G", temp, "C", facts, int(sent_at.timestamp()))
        return HttpReport((said,), request)


@dataclass(frozen=True, slots=True)
class BrewPiLessFriend:
    """A BrewPiLess with the Brewer's Friend preset."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST, blanks as in the preset; it has no time."""
        name = named(self.place, "brewpiless")
        temp, gravity = fixed(point.temperature_c, 1), fixed(point.gravity_sg, 4)
        body = (
            f'{{"name":"{name}","temp": {temp},"temp_unit": "C","gravity":{gravity},"gravity_unit":"G",'
            f'"ph": "","comment": "","beer":"Helles","battery":{fixed(point.battery_v, 1)},"RSSI": "",'
            f'"angle": {fixed(point.tilt_deg, 2)}}}'
        )
        request = esp_post(to, target(to, FRIEND_PATH), body.encode(), [JSON], USER_AGENT)
        facts = _facts(point) | {"beer": "Helles"}
        return HttpReport((Said(name, None, gravity, "G", temp, "C", facts),), request)


@dataclass(frozen=True, slots=True)
class BrewPiLessGet:
    """A BrewPiLess with GET and the format `b=%b&f=%f&g=%g&s=%P`: no name, no unit, nothing for psi."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the GET; it says neither who sends it nor when."""
        temp, gravity = fixed(point.temperature_c, 1), fixed(point.gravity_sg, 4)
        query = f"b={temp}&f={fixed(point.temperature_c - FRIDGE_BELOW_BEER_C, 1)}&g={gravity}&s=null"
        request = esp_get(to, with_query(target(to, LOG_PATH), query), USER_AGENT)
        facts = {"aux_temp": fixed(point.temperature_c - FRIDGE_BELOW_BEER_C, 1)}
        return HttpReport((Said("", None, gravity, "G", temp, None, facts),), request)
