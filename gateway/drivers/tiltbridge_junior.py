"""TiltBridge Junior, a TiltBridge in Python that posts every 3 s.

`{"tilts":[{"color","raw_gravity","raw_temp","rssi","tilt_pro","sends_battery","weeks_on_battery",
"firmware_version","smoothed_gravity","smoothed_temp","smoothing_window","temp_format" F/C}],
"tiltbridge_junior":true}`, figures of the Tilt as text (thorrak/tiltbridge_junior TiltHydrometer.py,
data_targets/legacy_fermentrack_target.py). Smoothed values are preferred; gravity is SG, and
temperature °F without a unit.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, identity, tiltbridge, wire
from gateway.drivers.base import Driver
from gateway.drivers.tilts import is_version_beacon, split_color
from gateway.drivers.wire import Fields
from gateway.errors import DriverError

SPACING_S = 60.0
"""Seconds between kept readings, one of twenty: no beer changes faster."""


def parse(payload: Payload) -> list[Report]:
    """Return a report per Tilt; none without a Tilt in range."""
    tilts = wire.fields(payload).get("tilts")
    if not isinstance(tilts, list):
        if tilts or "tiltbridge_junior" not in wire.fields(payload):
            raise DriverError("no list of Tilts")
        return []
    return tiltbridge.each(
        [tilt if isinstance(tilt, dict) else {} for tilt in tilts],
        lambda tilt: _report(payload, tilt),
    )


def _report(payload: Payload, source: Fields) -> list[Report]:
    color, mac = split_color(wire.text(source, "color") or "")
    report = Report(stable_id=mac or color or payload.label, name=color)
    identity.settle(report, payload, source)
    fill.gravity(report, source, "smoothed_gravity", "raw_gravity", unit="G", reason=fill.FORMAT_SAYS)
    fill.temperature(report, source, {"smoothed_temp": None, "raw_temp": None}, "F")
    fill.facts(report, source, {"rssi": "rssi"})
    if source.get("sends_battery", True) in tiltbridge.TRUTHS:
        fill.facts(report, source, {"weeks_on_battery": "weeks_on_battery"})
    if is_version_beacon(report):
        return []
    return fill.only_measured(report, source, "raw_gravity", "raw_temp", "smoothed_gravity", "smoothed_temp")


DRIVER = Driver("tiltbridge_junior", "TiltBridge Junior", parse, spacing_s=SPACING_S)
