"""Tilt app: cloud POST of one Tilt HD.

Source: baronbrew/Tilt-Hydrometer-Framework7 (devices.md 7.3): a form in the order Timepoint, SG, Temp,
Color, Beer, Comment.  Timepoint is the local spreadsheet serial of the Tilt Pi, SG has 3 decimals (HD 4),
Temp is in degrees Fahrenheit, the colour is in capitals without `•HD`, its MAC behind a colon; the beer has
`,<cloud id>` behind it on the first URL and is encoded as by encodeURIComponent.
"""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from sample_devices.fermentation import Point
from sample_devices.wire.answers import result_or_beername
from sample_devices.wire.clients import FORM, plain_post, target
from sample_devices.wire.report import Address, HttpReport, Place, Said, local_time
from sample_devices.wire.tilt_pi import timepoint
from sample_devices.wire.tilt_values import beacon, beer, beer_facts, colour, mac

DEFAULT_PATH = "/tilt"
MAC_PROGRAM = 0xA0
CLOUD_ID = 17

_COMPONENT_UNESCAPED = "-_.!~*'()"  # ECMAScript: uriUnescaped marks


@dataclass(frozen=True, slots=True)
class TiltApp:
    """A phone with the Tilt app that posts one Tilt HD to its first URL."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of a point, stamped with the sending moment."""
        seen, name, device_id = beacon(point, fine=True), colour(self.place), mac(self.place, MAC_PROGRAM)
        gravity, temp = f"{seen.gravity_sg:.4f}", repr(seen.temp_f).removesuffix(".0")
        time = repr(timepoint(sent_at)).removesuffix(".0")
        batch = quote(f"{beer(self.place)},{CLOUD_ID}", safe=_COMPONENT_UNESCAPED)
        body = (
            f"Timepoint={time}&SG={gravity}&Temp={temp}&Color={name}:{device_id}&Beer={batch}&Comment="
        ).encode()
        request = plain_post(to, target(to, DEFAULT_PATH), body, [FORM])
        said = Said(name, device_id, gravity, "G", temp, "F", local_time(sent_at) | beer_facts(self.place))
        return HttpReport((said,), request, result_or_beername)
