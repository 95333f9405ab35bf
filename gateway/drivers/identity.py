"""Which device a reading is of, where a format leaves that to its sender.

A MAC is the identity, whoever tells it. The colour is that of a Tilt, in every format. What tells devices
apart goes before what several may share: the sender's address, the machine that collects, the path of a job.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import TILT_COLORS, Report, mac_digits
from gateway.drivers import wire
from gateway.drivers.tilts import split_color
from gateway.drivers.wire import Fields

MAC_NAMES = (
    "mac", "MAC", "Mac", "mac_address", "macAddress", "mac-address", "macaddress", "device_mac", "tilt_mac",
    "ble_mac", "bt_mac", "address", "ble_address", "bluetooth_address",
)  # fmt: skip
"""Members that may be a MAC; what is none is passed over."""

COLOR_NAMES = ("color", "Color", "colour", "Colour", "tilt_color", "tiltColor", "tilt_colour")

ID_NAMES = (
    "device_id", "deviceId", "device", "ID", "id", "chipid", "chip_id", "sensor_id", "sensorId", "uuid",
    "serial", "serial_number", "unique_id",
)  # fmt: skip

NAMES = (
    "name",
    "device_name",
    "deviceName",
    "sensor",
    "sensor_name",
    "source",
    "label",
    "topic",
    "entity_id",
)

_ANY_MAC = frozenset(MAC_NAMES)
_ANY_COLOR = frozenset(COLOR_NAMES)


def mac_of(source: Fields) -> str:
    """The MAC as it is written; empty where none is told."""
    if not _ANY_MAC.isdisjoint(source):
        for name in MAC_NAMES:
            if (said := wire.text(source, name)) and mac_digits(said):
                return said
    return ""


def settle(report: Report, payload: Payload, source: Fields, *, own: str = "", shared: bool = False) -> None:
    """Give the report the identity that is told, where it has a lesser one: `shared` says that it is none.

    `own` is the device's id in this format. Earlier versions knew the device by what the report had before.
    """
    color, mac = _color_of(source)
    mac = mac_of(source) or mac
    if mac:
        found = mac
    elif color:
        found = f"{color}@{own}" if own else color
    elif shared and not own:
        found = wire.text(source, *ID_NAMES) or wire.text(source, *NAMES) or ""
    else:
        return
    before = report.stable_id
    if not found or found == before:
        return
    report.stable_id, report.name = found, report.name or color or found
    if own and mac:
        report.former_id = own
    else:
        report.shared_id = before or payload.source


def _color_of(source: Fields) -> tuple[str, str]:
    """Colour and MAC of a Tilt; a thing with an angle is none, whatever colour it has."""
    if _ANY_COLOR.isdisjoint(source) or "angle" in source:
        return "", ""
    color, mac = split_color(wire.text(source, *COLOR_NAMES) or "")
    return (color, mac if mac_digits(mac) else "") if color.lower() in TILT_COLORS else ("", "")
