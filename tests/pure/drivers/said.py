"""What a simulated device says, as a reading has it: one rule for drivers alone and for the whole gateway."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

UNIT_WITHOUT_WORD = "C"
"""What those simulated devices measure in that do not say it."""

SOURCE = "127.0.0.1"
"""Where simulated devices send from."""

NAMES = {
    "ispindel-prometheus": "ispindel/{}",
    "tiltbridge-grainfather": "",
    "tilt-pitch-grainfather": "",
    "ispindel-tcontrol-6.0": SOURCE,
}
"""What a device is called whose name stands in a path: job and instance; nothing where it is its id alone. It
is the address of a device that says nothing of itself."""

NAMED_BY_KEY = frozenset({"ispindel-thingspeak", "gravitymon-thingspeak", "gravitymon-blynk"})
KEY_DIGITS = 10
"""Devices that are known by their key alone are called by the beginning of its SHA-256."""

BREWPI = "brewpi-"
"""Fermentrack counts its controllers and its sensors each from 1, so the driver tells them apart."""

AHEAD_S, OLDEST_S = 120.0, 30 * 86_400.0
"""How far a device's own clock may be ahead, and how much older than its arrival a reading may be."""

OLDEST_OF_KIND_S = {"brewpiless-http": 3_600.0}
"""The same of a controller whose hydrometer has been silent for longer: its report is one of now."""

LOCAL_TIME, LOCAL_TIME_TOLERANCE_S = "device_time_local", 1.0
"""A spreadsheet's serial day is not exact."""

NOT_SET_BEFORE = "1971"
"""A local time before it says that the clock was never set; it need not be kept."""


class Values(NamedTuple):
    """The texts of a reading; empty for what the device did not say."""

    name: str
    gravity: str
    gravity_unit: str
    temp: str
    temp_unit: str


def values_said(
    kind: str,
    name: str,
    gravity: str | None,
    gravity_unit: str | None,
    temp: str | None,
    temp_unit: str | None,
) -> Values:
    """As a reading has them: SG without a gravity, Celsius where the wire has no unit."""
    return Values(
        _name(kind, name),
        *(gravity or "", gravity_unit or "G"),
        *(temp or "", temp_unit or UNIT_WITHOUT_WORD),
    )


def _name(kind: str, name: str) -> str:
    if kind in NAMED_BY_KEY:
        return hashlib.sha256(name.encode()).hexdigest()[:KEY_DIGITS]
    return NAMES.get(kind, "{}").format(name)


def differences(
    kind: str, said: Mapping[str, Any], reading: Mapping[str, Any], sent_at: float, tolerance_s: float
) -> Iterator[str]:
    """What a reading does not have as it was said: whose it is, its further values, and its time.

    `said` has the members of what a simulated device says. `reading` has `device_id`, `created_at` in Unix
    seconds, and the further values by their names.
    """
    if said["device_id"] is not None and _bare(said["device_id"]) != _bare(reading["device_id"]):
        yield f"device_id {reading['device_id']}, not {said['device_id']}"
    for name, value in said["facts"].items():
        if not _is_same(name, value, reading.get(name)):
            yield f"{name} {reading.get(name)}, not {value}"
    due_at = _due_at(kind, said["measured_at"], sent_at)
    if not -1 <= reading["created_at"] - due_at <= tolerance_s:
        yield f"created_at {reading['created_at']}, not {due_at}"


def _due_at(kind: str, measured_at: float | None, sent_at: float) -> float:
    """The device's own time where it can be true, else that of its arrival."""
    oldest_s = OLDEST_OF_KIND_S.get(kind, OLDEST_S)
    if measured_at is None or not -AHEAD_S <= sent_at - measured_at <= oldest_s:
        return sent_at
    return measured_at


def _bare(device_id: str) -> str:
    """Of a MAC its digits: programs write them in several ways."""
    return device_id.removeprefix(BREWPI).replace(":", "").lower()


def _is_same(name: str, said: str | float, found: str | float | None) -> bool:
    if found is None:
        return name == LOCAL_TIME and str(said) < NOT_SET_BEFORE
    if name == LOCAL_TIME:
        apart = datetime.fromisoformat(str(found)) - datetime.fromisoformat(str(said))
        return abs(apart.total_seconds()) <= LOCAL_TIME_TOLERANCE_S
    try:
        return float(found) == float(said)
    except ValueError:
        return found == said
