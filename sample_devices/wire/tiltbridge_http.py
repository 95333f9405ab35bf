"""TiltBridge 1.x: its HTTP targets; numbers are strings, temperature `%.1f`, gravity `%.4f`.

Source: thorrak/tiltbridge `src/sendData.cpp`, `src/tilt/tiltHydrometer.cpp` (devices.md 7.5).  POST with a
User-Agent of its own, Content-Type and `Accept: application/json`:

    local        {"mdns_id","tilts":{"Red":{"color","temp","tempUnit","gravity","weeks_on_battery",
                 "sends_battery","high_resolution","fwVersion","rssi","gsheets_name","gsheets_link"}}}
    stream       {"name","temp","temp_unit":"F","gravity","gravity_unit":"G","device_source":"TiltBridge"}
    Grainfather  {"Temp","Unit":"F","SG"}, one URL per Tilt, which alone says whose reading it is
    BrewStatus   form SG, Temp, Color, Timepoint (11 decimals, local serial), Beer, Comment
    Sheets       {"Beer","Temp","SG","Color","Comment","Email","tzOffset"}, by another client
    taplist.io   {"Color","Temp","SG","temperature_unit":"F","gravity_unit":"G"}

1.0.0 to 1.0.2 (`send_to_url` of their sendData.cpp) print the local target to a raw socket: Host always with
its port, Connection, Content-Length, Content-Type, and a CRLF after the body.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sample_devices.fermentation import Point
from sample_devices.wire.answers import text_200_ok
from sample_devices.wire.bodies import compact_json
from sample_devices.wire.clients import FORM, JSON, esp_post, raw_socket_post, target
from sample_devices.wire.identity import serial
from sample_devices.wire.numbers import fixed
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said, local_time
from sample_devices.wire.tilt_pi import timepoint
from sample_devices.wire.tilt_values import Beacon, beacon, beer, beer_facts, colour, neighbour_colour

LOCAL_PATH = "/tiltbridge/"
STREAM_PATH = "/stream?id=abc123"
TILT_PATH = "/tilt"
USER_AGENT = "tiltbridge/1.2.4 (branch master; build a1b2c3d)"

NEIGHBOUR_SG = 0.0123  # how much heavier the beer in the next fermenter is
NEIGHBOUR_C = -2.0
WEEKS_ON_BATTERY = 3
NOTHING_ELSE: Facts = {}
_ACCEPT = "Accept: application/json"
_HOUR = timedelta(hours=1)


def segment(path: str) -> str:
    """Give the id in a Grainfather path, `blue-tilt` of `/iot/blue-tilt/tilt`, or nothing."""
    parts = path.split("/")
    return parts[2] if parts[:2] == ["", "iot"] and len(parts) > 2 else ""


def neighbour(point: Point) -> Point:
    """Give what a second Tilt of the same bridge measures: another beer, a bit heavier and colder."""
    return replace(
        point,
        gravity_sg=point.gravity_sg + NEIGHBOUR_SG,
        temperature_c=point.temperature_c + NEIGHBOUR_C,
    )


def _said(name: str, seen: Beacon, facts: Facts = NOTHING_ELSE) -> Said:
    return Said(name, None, fixed(seen.gravity_sg, 4), "G", fixed(seen.temp_f, 1), "F", facts)


def _local_facts(point: Point, fine: bool) -> Facts:
    facts: Facts = {"rssi": point.rssi_dbm}
    return facts if fine else facts | {"weeks_on_battery": WEEKS_ON_BATTERY}


def _local_member(said: Said, rssi_dbm: int, fine: bool) -> dict[str, object]:
    return {
        "color": said.name, "temp": said.temp, "tempUnit": "F", "gravity": said.gravity,
        "weeks_on_battery": 0 if fine else WEEKS_ON_BATTERY, "sends_battery": not fine,
        "high_resolution": fine, "fwVersion": 0 if fine else 1005, "rssi": rssi_dbm,
        "gsheets_name": "", "gsheets_link": "",
    }  # fmt: skip


def _local_body(place: Place, readings: Sequence[Said], rssi_dbm: int) -> bytes:
    tilts = {
        said.name: _local_member(said, rssi_dbm, fine=bool(index)) for index, said in enumerate(readings)
    }
    mdns_id = f"tiltbridge{serial(place)}"
    return compact_json({"mdns_id": mdns_id, "tilts": tilts}).encode()


def _post(to: Address, path: str, body: bytes, kind: str = JSON) -> bytes:
    return esp_post(to, target(to, path), body, [kind, _ACCEPT], USER_AGENT)


@dataclass(frozen=True, slots=True)
class TiltBridgeLocal:
    """A TiltBridge with a local target and two Tilts, the second one a Tilt Pro."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of both Tilts; the local target has no time."""
        first = colour(self.place._replace(ordinal=2 * self.place.ordinal))
        second = neighbour_colour(first)
        readings = (
            _said(first.capitalize(), beacon(point), _local_facts(point, fine=False)),
            _said(second.capitalize(), beacon(neighbour(point), fine=True), _local_facts(point, fine=True)),
        )
        return HttpReport(readings, _post(to, LOCAL_PATH, _local_body(self.place, readings, point.rssi_dbm)))


@dataclass(frozen=True, slots=True)
class TiltBridgeStream:
    """A TiltBridge with a user, Brewfather or Brewer's Friend target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt."""
        said = _said(colour(self.place, 2).capitalize(), beacon(point))
        body = compact_json({
            "name": said.name, "temp": said.temp, "temp_unit": "F", "gravity": said.gravity,
            "gravity_unit": "G", "device_source": "TiltBridge",
        })  # fmt: skip
        return HttpReport((said,), _post(to, STREAM_PATH, body.encode()))


@dataclass(frozen=True, slots=True)
class TiltBridgeBrewStatus:
    """A TiltBridge with a BrewStatus target: a form."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt, stamped with the sending moment."""
        said = _said(colour(self.place, 3).capitalize(), beacon(point), local_time(sent_at))
        body = (
            f"SG={said.gravity}&Temp={said.temp}&Color={said.name}&Timepoint={timepoint(sent_at):.11f}"
            "&Beer=Undefined&Comment="
        )
        return HttpReport((said,), _post(to, TILT_PATH, body.encode(), FORM))


@dataclass(frozen=True, slots=True)
class TiltBridgeSheets:
    """A TiltBridge with a Google Sheets target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt; of the moment only its zone is sent, in hours."""
        said = _said(colour(self.place, 4).capitalize(), beacon(point))
        said = replace(said, facts=beer_facts(self.place))
        body = compact_json({
            "Beer": beer(self.place), "Temp": said.temp, "SG": said.gravity, "Color": said.name,
            "Comment": "", "Email": "brewer@example.org",
            "tzOffset": int((sent_at.utcoffset() or timedelta()) / _HOUR),
        })  # fmt: skip
        path = target(to, TILT_PATH)
        return HttpReport(
            (said,), esp_post(to, path, body.encode(), [JSON], "ESP32HTTPClient", connection="close")
        )


@dataclass(frozen=True, slots=True)
class TiltBridgeTaplist:
    """A TiltBridge with a taplist.io target."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt."""
        said = _said(colour(self.place, 5).capitalize(), beacon(point))
        body = compact_json({
            "Color": said.name, "Temp": said.temp, "SG": said.gravity,
            "temperature_unit": "F", "gravity_unit": "G",
        })  # fmt: skip
        return HttpReport((said,), _post(to, TILT_PATH, body.encode()))


@dataclass(frozen=True, slots=True)
class TiltBridge10:
    """A TiltBridge 1.0.x with a local target and one Tilt."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST as it is printed to the socket, CRLF after the body."""
        said = _said(colour(self.place, 6).capitalize(), beacon(point), _local_facts(point, fine=False))
        body = _local_body(self.place, [said], point.rssi_dbm)
        posted = raw_socket_post(to, target(to, LOCAL_PATH), body, f"{to.host}:{to.port}")
        return HttpReport((said,), posted, text_200_ok)


@dataclass(frozen=True, slots=True)
class TiltBridgeGrainfather:
    """A TiltBridge with a Grainfather target of its own for the Tilt."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt, whose only name is in the path."""
        path = target(to, f"/iot/{colour(self.place, 7).lower()}-tilt-{serial(self.place)}/tilt")
        said = _said(segment(path), beacon(point))
        body = compact_json({"Temp": said.temp, "Unit": "F", "SG": said.gravity})
        return HttpReport((said,), _post(to, path, body.encode()))
