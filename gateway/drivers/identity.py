"""The identity of a device, in formats that leave it to the sender.

A MAC is the identity, whatever program sends it. The colour is that of a Tilt, in every format. An id of one
device goes before an id that several may share: the sender's address, the collecting machine, a job's path.
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
"""Members that may be a MAC; other texts in them are passed over."""

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
    """Return the MAC as it is written; "" without a MAC."""
    if not _ANY_MAC.isdisjoint(source):
        for name in MAC_NAMES:
            if (said := wire.text(source, name)) and mac_digits(said):
                return said
    return ""


def settle(report: Report, payload: Payload, source: Fields, *, own: str = "", shared: bool = False) -> None:
    """Give the report the best identity in the payload. `shared`: several devices may have the present one.

    `own` is the device's id in this format. Earlier versions stored the device under the report's present id.
    """
    color = mac = ""
    # A device with an angle is no Tilt, whatever its colour.
    if not _ANY_COLOR.isdisjoint(source) and "angle" not in source:
        color, mac = split_color(wire.text(source, *COLOR_NAMES) or "")
        if color.lower() not in TILT_COLORS:
            color = mac = ""
    mac = mac_of(source) or (mac if mac_digits(mac) else "")
    if mac:
        found = mac
    elif color:
        found = f"{color}@{own}" if own else color
    elif shared and not own:
        found = wire.text(source, *ID_NAMES) or wire.text(source, *NAMES) or ""
    else:
        return
    before = report.stable_id
    if not found:
        return
    report.stable_id, report.name = found, report.name or color or found
    if found == before:
        return
    if own and mac:
        report.former_id = own
    else:
        report.shared_id = before or payload.source
