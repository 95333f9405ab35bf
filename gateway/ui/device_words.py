"""Devices in words: their values, their units with the reason, and their states."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gateway.domain.device import Device
from gateway.services.devices import DeviceState
from gateway.ui.brew_words import is_silent
from gateway.ui.words import GRAVITY_UNITS, NOTHING, Ago, Quantity, Words

SET_BY_USER = "set by the user"

REASONS = tuple(
    (key, re.compile(pattern))
    for key, pattern in (
        ("set", SET_BY_USER),
        ("size_plato", r"no unit sent; .* can only be Plato"),
        ("size_sg", r"no unit sent; .* is specific gravity"),
        ("times", r".* is specific gravity times (?P<times>1000+)"),
        ("always_sg", r"no unit sent, but .* always sent specific gravity"),
        ("always_plato", r"no unit sent, but .* always sent Plato"),
        ("always_fahrenheit", r"no unit sent, but .* always sent Fahrenheit"),
        ("size_fahrenheit", r"no unit sent; .* can only be Fahrenheit"),
        ("size_celsius", r"no unit sent; .* can only be Celsius"),
        ("size_kelvin", r"no unit sent; .* is Kelvin"),
        ("no_reason", r"no unit sent, and nothing speaks for Fahrenheit"),
        ("payload", r"the payload says so"),
        ("name_of", r"the name of (?P<name>.+)"),
        ("says", r"(?P<name>\S+) says (?P<unit>.+)"),
        ("format", r"what this format means"),
        ("name_end", r"the end of its name"),
        ("tilt_pro", r"a Tilt Pro's SG times 10"),
    )
)
"""Reasons for a unit that have words in the catalogues; the others are shown as they are."""

UNITS = {"G": "SG", "P": "°P", "C": "°C", "F": "°F"}

SHOWN_FLAGS = ("gravity_out_of_range", "calibration_out_of_range", "temp_sensor_fault", "gravity_missing")
"""Flags of the last reading that become the state of a device; the first one counts."""


class Values(NamedTuple):
    """The last values of a device, and whether they are old."""

    gravity: Quantity
    temp: Quantity
    battery: Quantity | None
    signal: Quantity | None
    tilt: Quantity | None
    heard: Ago | None
    old: bool


class State(NamedTuple):
    """A state of a device: words, and a kind: good, warn, bad or quiet."""

    word: str
    kind: str


def values_of(state: DeviceState, words: Words) -> Values:
    """Return the last values of a device."""
    summary = state.summary
    return Values(
        gravity=_gravity(state, words),
        temp=words.temp(summary.celsius),
        battery=battery(summary.facts, words),
        signal=signal(summary.facts, words),
        tilt=tilt(summary.facts, words),
        heard=None if summary.last_seen_at is None else words.ago(summary.last_seen_at),
        old=_is_silent(state, words.now),
    )


def _gravity(state: DeviceState, words: Words) -> Quantity:
    """Return the gravity in the viewer's unit; one that does not count, as it was sent."""
    summary = state.summary
    if summary.sg is not None or not summary.gravity:
        return words.gravity(summary.sg)
    return Quantity(summary.gravity, UNITS.get(summary.gravity_unit or "", ""))


def battery(facts: Mapping[str, Any], words: Words) -> Quantity | None:
    """Return the battery in volts, else in percent; None if the device does not tell it."""
    if (volts := _number(facts, "battery")) is not None:
        return Quantity(words.number(volts, 2), "V")
    percent = _number(facts, "battery_percent")
    return None if percent is None else words.percent(percent)


def signal(facts: Mapping[str, Any], words: Words) -> Quantity | None:
    """Return the strength of the signal."""
    rssi = _number(facts, "rssi")
    return None if rssi is None else Quantity(words.number(rssi, 0), "dBm")


def tilt(facts: Mapping[str, Any], words: Words) -> Quantity | None:
    """Return the tilt in degrees."""
    angle = _number(facts, "angle")
    return None if angle is None else Quantity(f"{words.number(angle, 1)}°", "")


def _number(facts: Mapping[str, Any], name: str) -> float | None:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_silent(state: DeviceState, now: float) -> bool:
    last = state.summary.last_seen_at
    return last is not None and is_silent(state.device, last, now)


def state_of(state: DeviceState, words: Words) -> State:
    """Return the state of a device in words: what needs a person comes first."""
    if state.count is not None:
        return State(words.t("device.state.counted", done=state.count.done, of=state.count.of), "quiet")
    if state.device.reprocessing:
        return State(words.t("device.state.reprocessing"), "quiet")
    if state.waiting:
        return State(words.t("device.state.waiting", n=state.waiting), "warn")
    last = state.summary.last_seen_at
    if last is None:
        return State(words.t("device.state.never"), "quiet")
    if _is_silent(state, words.now):
        kind = "warn" if state.device.session_id is not None else "quiet"
        return State(words.t("device.state.silent", span=words.span(words.now - last)), kind)
    wrong = next((flag for flag in SHOWN_FLAGS if flag in state.summary.flags), None)
    if wrong is not None:
        return State(words.t(f"device.state.{wrong}"), "warn")
    if state.device.session_id is None:
        return State(words.t("device.state.unassigned"), "quiet")
    return State(words.t("device.state.good"), "good")


def family_title(family: str) -> str:
    """Return the name of a family for people."""
    from gateway.drivers import BY_NAME

    driver = BY_NAME.get(family)
    return driver.title if driver else family


def unit_of(device: Device, what: str) -> str:
    """Return the unit of `gravity` or `temp`, or a dash while nothing has shown it."""
    settings = device.settings
    chosen = settings.gravity_unit if what == "gravity" else settings.temp_unit
    found = chosen or device.inferred.get(f"{what}_unit", ("", ""))[0]
    if what == "gravity":
        found = found or device.gravity_unit or ""
    return UNITS.get(found, NOTHING)


def why(device: Device, what: str, words: Words) -> str:
    """Return why `gravity` or `temp` has its unit: a part of a sentence, or "" if nothing is known."""
    chosen = device.settings.gravity_unit if what == "gravity" else device.settings.temp_unit
    reason = SET_BY_USER if chosen is not None else device.inferred.get(f"{what}_unit", ("", ""))[1]
    return reason_in_words(reason, words)


def reason_in_words(reason: str, words: Words) -> str:
    """Return the reason for a unit in the viewer's language, as far as the catalogues have it."""
    for key, pattern in REASONS:
        if found := pattern.fullmatch(reason):
            return words.t(f"device.why.{key}", **found.groupdict())
    return reason


def flags_in_words(flags: Sequence[str], words: Words) -> str:
    """Return the flags of a reading in words, as far as the catalogues have them."""
    known = (f"device.flag.{flag}" for flag in flags)
    return ", ".join(words.t(key) if words.has(key) else flag for key, flag in zip(known, flags, strict=True))


def unit_choices(words: Words) -> list[tuple[str, str]]:
    """Return the units in which a gravity can be typed, the viewer's first."""
    units = sorted(GRAVITY_UNITS.items(), key=lambda unit: unit[0] != words.gravity_unit)
    return [(code, name) for code, name in units]
