"""Devices that may be one hydrometer, found by what they share."""

from collections import defaultdict
from collections.abc import Sequence

from gateway.domain.device import Device
from gateway.domain.report import MAC_FAMILY, TILT_COLORS, mac_digits


def lookalikes(devices: Sequence[Device]) -> list[tuple[str, list[Device]]]:
    """Find devices that may be one, with the thing they share: `the same MAC` or `the same colour`."""
    found: dict[tuple[str, str], list[Device]] = defaultdict(list)
    for device in devices:
        if digits := mac_digits(device.stable_id):
            found["the same MAC", digits].append(device)
        if color := tilt_color(device):
            found["the same colour", color].append(device)
    # A colour is no evidence if every device has a MAC: then only equal MACs are.
    return [
        (shared, group)
        for (shared, _), group in found.items()
        if len(group) > 1
        and (shared != "the same colour" or not all(mac_digits(device.stable_id) for device in group))
    ]


def tilt_color(device: Device) -> str:
    """Return the colour of a Tilt, from its id, or from its name if its id is a MAC; else an empty text."""
    known = device.name if device.key.startswith(f"{MAC_FAMILY}:") else device.stable_id
    color = known.partition("@")[0].rpartition("/")[2].lower()
    if color not in TILT_COLORS:
        return ""
    from gateway.drivers import BY_NAME  # not above: `devices list` would wait for all drivers

    return color if device.family in BY_NAME else ""
