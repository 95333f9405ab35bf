"""Tilt Pi: cloud POST of one Tilt as an encoded form.

Source: baronbrew/TILTpi `flow.json`, a Node-RED flow (devices.md section 7.2).  The fields are joined as
`key=value` with `&` and the finished string then goes through JavaScript's encodeURI, so `&`, `+` and
`#` inside a beer name arrive bare:

    Timepoint  local time as spreadsheet serial: Unix days + 25569, shifted by the zone offset
    Temp       degrees Fahrenheit; whole for a Tilt that is not HD
    SG         specific gravity, at most 3 decimals, as JavaScript prints a number
    Beer       beer name, `Untitled` by default
    Color      `RED`, or `RED:aa:bb:cc:dd:ee:ff` where one colour occurs more than once
    Comment    free text, normally empty

Node-RED's client writes the flow's own header and the length in lower case first, then Host and
`Connection: close`; there is no User-Agent.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from sample_devices.fermentation import Point
from sample_devices.wire.report import Address, HttpReport, Place, Said, local_time

DEFAULT_PATH = "/ingest/tilt"
COLORS = ("RED", "GREEN", "BLACK", "PURPLE", "ORANGE", "BLUE", "YELLOW", "PINK")
UNNAMED = "Untitled"
BEERS = (
    "Malt & Hops",
    UNNAMED,
    "Old Cellar Stout",
    "Grätzer 100%",
    "Harvest Saison",
    "Fog + Hops IPA",
    "Kölsch",
    "Batch #42",
)

_SPREADSHEET_EPOCH_DAYS = 25569
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_URI_UNESCAPED = ";,/?:@&=+$#-_.!~*'()"  # ECMAScript: uriReserved, uriUnescaped marks and #


def encode_uri(text: str) -> str:
    """Percent-encode as JavaScript's encodeURI: UTF-8, the reserved characters left alone."""
    return quote(text, safe=_URI_UNESCAPED)


def timepoint(sent_at: datetime) -> float:
    """Give a zone-aware moment as LOCAL spreadsheet serial in days, in milliseconds steps."""
    offset = sent_at.utcoffset()
    if offset is None:
        raise ValueError("the sending moment needs its zone")
    milliseconds = (sent_at - _UNIX_EPOCH) // timedelta(milliseconds=1)
    # The order of operations is the flow's: another one would end in other last digits.
    return milliseconds / 1000 / 60 / 60 / 24 + _SPREADSHEET_EPOCH_DAYS + offset / timedelta(days=1)


def color(place: Place) -> str:
    """Give the Color field: the bare colour for the first eight of a fleet, then with a MAC."""
    if place.name is not None:
        return place.name
    rounds, colour = divmod(place.ordinal, len(COLORS))
    if rounds == 0:
        return COLORS[colour]
    octets = bytes([0xF6, 0xBD, place.seed % 256]) + place.ordinal.to_bytes(3, "big")
    return f"{COLORS[colour]}:{octets.hex(':')}"


def beer(place: Place) -> str:
    """Name the beer; some names have the characters that encodeURI leaves alone."""
    return BEERS[place.ordinal % len(BEERS)]


@dataclass(frozen=True, slots=True)
class TiltPiHttp:
    """A Tilt Pi that posts one Tilt to one cloud URL."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of a point, stamped with the sending moment."""
        temp = _js_number(round(point.temperature_c * 9 / 5 + 32))
        gravity = _js_number(round(point.gravity_sg, 3))
        body = encode_uri(
            f"Timepoint={_js_number(timepoint(sent_at))}&Temp={temp}&SG={gravity}"
            f"&Beer={beer(self.place)}&Color={color(self.place)}&Comment="
        ).encode()
        head = [
            f"POST {DEFAULT_PATH if to.path is None else to.path} HTTP/1.1",
            "content-type: application/x-www-form-urlencoded; charset=utf-8",
            f"content-length: {len(body)}",
            f"Host: {to.authority}",
            "Connection: close",
        ]
        name, _, mac = color(self.place).partition(":")
        named = beer(self.place)
        facts = local_time(sent_at) | ({} if named == UNNAMED else {"beer": named})
        said = Said(name, mac or None, gravity, "G", temp, "F", facts)
        return HttpReport((said,), "\r\n".join([*head, "", ""]).encode() + body)


def _js_number(number: float) -> str:
    """Print as JavaScript does: shortest digits that read back the same, no `.0`."""
    return repr(float(number)).removesuffix(".0")
