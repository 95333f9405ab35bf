"""TiltBridge: its local target, Fermentrack 2, and MQTT of 2, 1.x and 0.2.

Local target, also called legacy Fermentrack (thorrak/tiltbridge src/tilt/tiltHydrometer.cpp,
src/targets/legacy_fermentrack.cpp), every 30 s: `{"mdns_id","tilts":{"Red":{"color","temp","tempUnit" F/C,
"gravity" SG,"weeks_on_battery","sends_battery","high_resolution","fwVersion","rssi","mac" (from 2 on),
"gsheets_name","gsheets_link"}}}`; temperature and gravity are texts, numbers in 0.2. The gravity is the
Tilt's own, without the calibration made at the bridge. `weeks_on_battery` counts only with `sends_battery`.
Without a Tilt in range `tilts` is null.

Fermentrack 2 (src/targets/fermentrack_2.cpp), every 5 minutes, PUT to `/api/tiltbridge/device/status/` of
`{"apiKey","deviceID","tilts":[{the same, but for `gravity` "uncalibratedGravity","calibratedGravity",
"latestGravity"}],"version"}`; the calibrated one is taken. Its earlier requests are in `fermentrack_2`.

MQTT (src/targets/mqtt.cpp, before src/sendData.cpp): `<topic>/tilt_<Color>` with `{"Color","timeStamp"
Unix s,"fermunits","SG","Temp","tempunits","WoB"}`; the topic is `tiltbridge` by default and empty as long as
nobody saved it. `timeStamp` is small before the bridge knows the time. 0.2.2 (tag v0.2.2), by MQTT of all
colours on one topic, and by HTTP: `{"color","device","gravity","gravity_unit","temp","temp_unit"}`.

The other targets have other drivers: user target and Brewfather `stream`; Google Sheets, taplist.io and
BrewStatus `tilt`; Grainfather `grainfather`; InfluxDB `influx`. Version 2 takes 200 to 204 from each.

A Tilt's identity is its MAC, if the bridge sends it, else its colour and the bridge's mDNS name, or the topic
that a user chose for the bridge.
"""

from collections.abc import Callable, Sequence

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fermentrack_2, fill, identity, stream, wire
from gateway.drivers.base import Driver
from gateway.drivers.tilts import is_version_beacon, split_color
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

TOPIC_PREFIX = "tilt_"

MQTT = "mqtt "
"""The beginning of a channel by MQTT; the topic follows."""

DEFAULT_ROOT = "tiltbridge"

EMPTY_ROOT = f"{MQTT}/"
"""The beginning of a channel if the bridge's topic is empty; topics of other programs may look alike."""

TILTS_MAX = 64
"""The most Tilts of a bridge: there are eight colours, and a few Tilts of each."""

GRAVITIES = ("SG", "gravity", "calibratedGravity", "uncalibratedGravity", "latestGravity")
"""Names of the gravity: a format has one of the first two, or the three others."""

TRUTHS = (True, "true", "True", "1")


def parse(payload: Payload) -> list[Report]:
    """Return a report per Tilt; none without a Tilt in range, or for a message of another program."""
    if payload.channel.startswith(EMPTY_ROOT) and not payload.label.startswith(TOPIC_PREFIX):
        return []
    source = wire.fields(payload)
    if "tilts" in source:
        return _reports_in(payload, source)
    if "name" in source and stream.fits(source):
        return stream.parse(payload)
    bridge = wire.text(source, "device", "mdns_id") or ""
    if not bridge and payload.channel.startswith(MQTT):
        # The topic above `tilt_<Color>` if the user chose it: another bridge has another root.
        root, _, last = payload.channel.removeprefix(MQTT).rpartition("/")
        if last.startswith(TOPIC_PREFIX) and root != DEFAULT_ROOT:
            bridge = root.strip("/")
    return report_of(payload, source, bridge)


def _reports_in(payload: Payload, source: Fields) -> list[Report]:
    tilts = source["tilts"]
    if not tilts:
        return []
    if isinstance(tilts, list):
        listed = [tilt if isinstance(tilt, dict) else {} for tilt in tilts]
        return each(listed, lambda tilt: report_of(payload, tilt, ""))
    if not isinstance(tilts, dict):
        raise DriverError("tilts is no object of Tilts by colour")
    named = [{"color": key, **tilt} if isinstance(tilt, dict) else {} for key, tilt in tilts.items()]
    return each(named, lambda tilt: report_of(payload, tilt, wire.text(source, "mdns_id") or ""))


def each(tilts: Sequence[Fields], read: Callable[[Fields], list[Report]]) -> list[Report]:
    """Return the reports of several Tilts, each read by itself, so that a bad one spoils no other."""
    if len(tilts) > TILTS_MAX:
        raise DriverError(f"{len(tilts)} Tilts in one payload")
    reports: list[Report] = []
    trouble: DriverError | None = None
    for tilt in tilts:
        try:
            reports += read(tilt)
        except DriverError as error:
            trouble = error
    if trouble is not None and not reports:
        raise trouble
    return reports


def report_of(payload: Payload, source: Fields, bridge: str) -> list[Report]:
    """Return the report of one Tilt; `source` has the members of any of the formats above."""
    color, mac = split_color(wire.text(source, "Color", "color") or payload.label.removeprefix(TOPIC_PREFIX))
    if not color:
        raise DriverError("no colour of a Tilt")
    report = Report(
        stable_id=mac or (f"{color}@{bridge}" if bridge else color),
        name=color,
        beer=wire.text(source, "gsheets_name"),
        reply=fermentrack_2.TAKEN,
    )
    if told := identity.mac_of(source):
        report.stable_id, report.shared_id = told, report.stable_id
    if bridge:
        report.facts["bridge"] = bridge
    fill.token(report, payload, source)
    fill.gravity(report, source, *GRAVITIES, unit="G", reason=fill.FORMAT_SAYS)
    fill.temperature(report, source, {"Temp": None, "temp": None}, "F")
    fill.clock(report, source, "timeStamp")
    fill.facts(report, source, {"rssi": "rssi"}, {"WoB": "weeks_on_battery"})
    if source.get("sends_battery", True) in TRUTHS:
        fill.facts(report, source, {"weeks_on_battery": "weeks_on_battery"})
    return (
        []
        if is_version_beacon(report)
        else fill.only_measured(report, source, "gravity", "temp", "Temp", *GRAVITIES)
    )


DRIVER = Driver(
    "tiltbridge",
    "TiltBridge",
    parse,
    paths=("/tiltbridge", f"{fermentrack_2.DEVICE_PATH}/status"),
    topics=("tiltbridge", "tiltbridge/{label}", "/{label}"),
    reply=fermentrack_2.TAKEN,
    exchanges=fermentrack_2.EXCHANGES,
)
