"""TiltBridge 2, built with ESP-IDF: its Fermentrack 2, local, InfluxDB and user targets, of two Tilts.

Source: thorrak/tiltbridge `src/targets/fermentrack_2.cpp`, `legacy_fermentrack.cpp`, `src/sendData.cpp`,
`src/tilt/tiltHydrometer.cpp`, `src/targets/send_json_str.cpp`.  Numbers are texts as in 1.x; each Tilt has
its MAC, lower case with colons (NimBLE's `toString`).  200 to 204 is success.

    Fermentrack 2  PUT {"apiKey","deviceID","tilts":[{"color","temp","tempUnit","uncalibratedGravity",
                   "calibratedGravity","latestGravity","weeks_on_battery","sends_battery","high_resolution",
                   "fwVersion","rssi","mac","gsheets_name","gsheets_link"}],"version"}; wants `success` true.
                   Id and key are those that a server gave it once; it registers only without them.
    local          POST {"mdns_id","tilts":{"Red":{the same with "gravity" for the three}}}
    InfluxDB       POST a line for each Tilt, Content-Type text/plain, Authorization behind Accept
    user target    POST {"name","temp","temp_unit","gravity","gravity_unit","device_source"} for each Tilt

esp_http_client (espressif/esp-idf components/esp_http_client) writes User-Agent and Host first, as it sets
both when it begins, then what the program sets, the length at the end.
"""

import json
from dataclasses import dataclass, replace
from datetime import datetime

from sample_devices.fermentation import Point
from sample_devices.wire.bodies import compact_json
from sample_devices.wire.clients import JSON, request, target
from sample_devices.wire.identity import guid, serial
from sample_devices.wire.numbers import fixed
from sample_devices.wire.report import Address, Facts, HttpReport, Place, Said
from sample_devices.wire.tilt_values import beacon, colour, mac, neighbour_colour
from sample_devices.wire.tiltbridge_http import LOCAL_PATH, STREAM_PATH, WEEKS_ON_BATTERY, neighbour

STATUS_PATH = "/api/tiltbridge/device/status/"
INFLUX_PATH = "/api/v2/write?org=home&bucket=beer&precision=s"
VERSION = "2.0.0"
MAC_PROGRAM = 65
GRAVITIES = ("uncalibratedGravity", "calibratedGravity", "latestGravity")
TEXT = "Content-Type: text/plain; charset=utf-8"
INFLUX_HEADER = "Authorization: Token influx-token"
_ACCEPT = "Accept: application/json"


def success(status: int, phrase: str, body: bytes) -> bool:
    """Take 200 to 204, as `http_request` does."""
    return 200 <= status <= 204


def status_taken(status: int, phrase: str, body: bytes) -> bool:
    """Take a JSON object in which `success` is true."""
    try:
        said = json.loads(body)
    except ValueError:
        return False
    return success(status, phrase, body) and isinstance(said, dict) and said.get("success") is True


def _send(to: Address, method: str, path: str, body: bytes, own: tuple[str, ...] = (JSON, _ACCEPT)) -> bytes:
    fields = [f"User-Agent: tiltbridge/{VERSION} (commit a1b2c3d)", f"Host: {to.authority}", *own]
    return request(f"{method} {target(to, path)} HTTP/1.1", [*fields, f"Content-Length: {len(body)}"], body)


def _tilts(place: Place, point: Point) -> tuple[Said, Said]:
    """A Tilt, and a Tilt Pro in the next fermenter."""
    first = colour(place._replace(ordinal=2 * place.ordinal))
    return (
        _tilt(first, mac(place._replace(ordinal=2 * place.ordinal), MAC_PROGRAM), point, fine=False),
        _tilt(
            neighbour_colour(first),
            mac(place._replace(ordinal=2 * place.ordinal + 1, name=None), MAC_PROGRAM),
            neighbour(point),
            fine=True,
        ),
    )


def _tilt(name: str, address: str, point: Point, fine: bool) -> Said:
    seen = beacon(point, fine)
    facts: Facts = {"rssi": point.rssi_dbm}
    if not fine:
        facts |= {"weeks_on_battery": WEEKS_ON_BATTERY}
    measured = fixed(seen.gravity_sg, 4), "G", fixed(seen.temp_f, 1), "F"
    return Said(name.capitalize(), address.lower(), *measured, facts)


def _member(said: Said, gravities: dict[str, str | None]) -> dict[str, object]:
    fine = "weeks_on_battery" not in said.facts
    return {
        "color": said.name, "temp": said.temp, "tempUnit": "F", **gravities,
        "weeks_on_battery": 0 if fine else WEEKS_ON_BATTERY, "sends_battery": not fine,
        "high_resolution": fine, "fwVersion": 0 if fine else 1005, "rssi": said.facts["rssi"],
        "mac": said.device_id, "gsheets_name": "", "gsheets_link": "",
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class TiltBridge2:
    """A TiltBridge 2 with the Fermentrack 2 target, registered."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the PUT of both Tilts, not calibrated; it has no time."""
        said, device_id = _tilts(self.place, point), guid(self.place)
        tilts = [_member(one, dict.fromkeys(GRAVITIES, one.gravity)) for one in said]
        body = {"apiKey": device_id, "deviceID": device_id, "tilts": tilts, "version": VERSION}
        posted = _send(to, "PUT", STATUS_PATH, compact_json(body).encode())
        # The bridge knows no other path; at one that a person gave there may be another kind of answer.
        return HttpReport(said, posted, status_taken if to.path is None else success)


@dataclass(frozen=True, slots=True)
class TiltBridge2Local:
    """A TiltBridge 2 with the local target, which it calls legacy Fermentrack."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of both Tilts; it has no time."""
        said = _tilts(self.place, point)
        tilts = {one.name: _member(one, {"gravity": one.gravity}) for one in said}
        body = {"mdns_id": f"tiltbridge{serial(self.place)}", "tilts": tilts}
        return HttpReport(said, _send(to, "POST", LOCAL_PATH, compact_json(body).encode()), success)


@dataclass(frozen=True, slots=True)
class TiltBridge2Influx:
    """A TiltBridge 2 with the InfluxDB target: colours, no MAC."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of a line for each Tilt; the lines have no time."""
        said = tuple(
            replace(one, device_id=None, facts={"weeks_on_battery": one.facts.get("weeks_on_battery", 0)})
            for one in _tilts(self.place, point)
        )
        lines = [
            f"tilt,color={one.name},device_source=TiltBridge gravity={one.gravity},temperature={one.temp},"
            f'temp_units="F",weeks_on_battery={one.facts["weeks_on_battery"]}\n'
            for one in said
        ]
        own = (TEXT, _ACCEPT, INFLUX_HEADER)
        return HttpReport(said, _send(to, "POST", INFLUX_PATH, "".join(lines).encode(), own), success)


@dataclass(frozen=True, slots=True)
class TiltBridge2Stream:
    """A TiltBridge 2 with a user target, of one of its Tilts."""

    place: Place

    def report(self, point: Point, to: Address, sent_at: datetime) -> HttpReport:
        """Make the POST of one Tilt; it has no time and no MAC."""
        seen = beacon(point)
        name = colour(self.place, 2).capitalize()
        said = Said(name, None, fixed(seen.gravity_sg, 4), "G", fixed(seen.temp_f, 1), "F")
        body = {
            "name": name, "temp": said.temp, "temp_unit": "F", "gravity": said.gravity, "gravity_unit": "G",
            "device_source": "TiltBridge",
        }  # fmt: skip
        return HttpReport((said,), _send(to, "POST", STREAM_PATH, compact_json(body).encode()), success)
