"""Drivers: one pure module per device family, and the one place that lists them all.

A new family is a module with a `DRIVER`, a line in `DRIVERS`, and a folder of cases.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import (
    aws,
    blynk,
    brew_bubbles,
    brewblox,
    brewpiless,
    bricks,
    craftbeerpi,
    emanometer,
    esphome,
    fermentrack,
    fhem,
    grainfather,
    gravitymon,
    home_assistant,
    influx,
    irelay,
    ispindel,
    itilt,
    plaato,
    pressuremon,
    prometheus,
    rapt,
    smartpid,
    stream,
    tcontrol,
    theengs,
    thingspeak,
    tilt,
    tilt_tools,
    tiltbridge,
    tiltbridge_junior,
    torpedo,
    ubidots,
    wire,
)
from gateway.drivers.base import Driver, ValueTopics
from gateway.drivers.recognise import recognise
from gateway.errors import DriverError

DRIVERS: tuple[Driver, ...] = (
    ispindel.DRIVER,
    gravitymon.DRIVER,
    tilt.DRIVER,
    brew_bubbles.DRIVER,
    brewpiless.DRIVER,
    emanometer.DRIVER,
    fermentrack.DRIVER,
    irelay.DRIVER,
    pressuremon.DRIVER,
    stream.DRIVER,
    torpedo.DRIVER,
    aws.DRIVER,
    blynk.DRIVER,
    bricks.DRIVER,
    home_assistant.DRIVER,
    esphome.DRIVER,
    fhem.DRIVER,
    influx.DRIVER,
    itilt.DRIVER,
    prometheus.DRIVER,
    smartpid.DRIVER,
    tcontrol.DRIVER,
    thingspeak.DRIVER,
    ubidots.DRIVER,
    brewblox.DRIVER,
    grainfather.DRIVER,
    plaato.DRIVER,
    rapt.DRIVER,
    tilt_tools.DRIVER,
    tiltbridge.DRIVER,
    tiltbridge_junior.DRIVER,
    theengs.DRIVER,
    craftbeerpi.DRIVER,
)

BY_NAME = {driver.name: driver for driver in DRIVERS}

TILTS = frozenset({"tilt", "tilt_tools", "tiltbridge", "tiltbridge_junior"})
"""Drivers of Tilts. Many programs report Tilts in several formats, so one program's path receives another's
format."""

LINE_PROTOCOL_DRIVER = "influx"
EXPOSITION_DRIVER = "prometheus"

DEVICES_PER_PAYLOAD = 64
"""The most devices in a payload. No bridge has more channels."""

READINGS_PER_LIST = 16_384
"""The most readings of a bridge that was offline: pytilt notes a Tilt every ten seconds."""

IDENTITY_BYTES = 128
"""Bytes (UTF-8) of the longest device id. The longest known one is a GUID."""


class Decoded(NamedTuple):
    """The reports in a payload; none if its format is known and it holds no measurement.

    `trouble` describes the part that was not understood, if another part was; `left` is that part as a
    payload.
    """

    reports: list[Report]
    trouble: str | None = None
    left: bytes = b""


def decode(payload: Payload) -> Decoded:
    """Return the reports in a payload, by the driver of its address or of its content.

    Raise `DriverError` if nothing in the payload is understood.
    """
    if (label := wire.clean(payload.label)) != payload.label:
        payload = replace(payload, label=label)  # it may become a name, as what is in the body
    parts = None if wire.is_object(payload) else wire.parts(payload)
    decoded = Decoded(_decode_one(payload)) if parts is None else _decode_list(payload, parts)
    reports = decoded.reports
    if len(reports) > DEVICES_PER_PAYLOAD:
        if parts is None:
            raise DriverError(f"{len(reports)} readings in one payload")
        devices = len({report.device_key for report in reports})
        if devices > DEVICES_PER_PAYLOAD:
            raise DriverError(f"readings of {devices} devices in one payload")
    if any(len(report.stable_id.encode()) > IDENTITY_BYTES for report in reports):
        raise DriverError(f"a device id of more than {IDENTITY_BYTES} bytes")
    if len(reports) > 1:
        # A bridge that was offline sends several readings at once, in local time of an unknown zone:
        # the age of each is counted from the newest, by the sender's clock.
        times = [None if r.device_time is None else datetime.fromisoformat(r.device_time) for r in reports]
        newest = max((time for time in times if time is not None), default=None)
        for report, time in zip(reports, times, strict=True):
            if time is not None and newest is not None:
                report.age_s = (newest - time).total_seconds()
    return decoded


def _decode_one(payload: Payload) -> list[Report]:
    """Decode by the first driver that understands the payload, else raise the first one's error."""
    first, *others = _drivers_of(payload)
    try:
        return _parsed(payload, first)
    except DriverError:
        for other in others:
            with suppress(DriverError):
                return _parsed(payload, other)
        raise


def _parsed(payload: Payload, name: str) -> list[Report]:
    driver = BY_NAME.get(name)
    if driver is None:
        raise DriverError(f"looks like {name}, for which there is no driver yet")
    reports = driver.parse(payload)
    for report in reports:
        report.family = report.family or name
    return reports


def _drivers_of(payload: Payload) -> tuple[str, ...]:
    """Return the drivers to try: the address', else the content's, else the address' usual one."""
    if payload.driver is not None:
        # Another driver of Tilts, if the content clearly is its own: one program's path gets others' formats.
        row = recognise(wire.fields(payload)) if payload.driver in TILTS else None
        is_other = row is not None and row.driver in TILTS and not row.generic
        return (row.driver if row is not None and is_other else payload.driver,)
    if wire.is_object(payload):
        return _shown_by_content(payload)
    if payload.fields is None and not payload.body.strip():
        if payload.channel.startswith(tcontrol.CHANNEL):
            return (tcontrol.DRIVER.name,)  # an empty line, which nothing else sends there
        if not payload.query and payload.hint is not None:
            return (payload.hint,)
    if wire.is_line_protocol(payload):
        return (LINE_PROTOCOL_DRIVER,)
    if wire.is_exposition(payload):
        return (EXPOSITION_DRIVER,)
    return _shown_by_content(payload)


def _shown_by_content(payload: Payload) -> tuple[str, ...]:
    row = recognise(wire.fields(payload))
    if row is not None and not (row.generic and payload.hint):
        return (row.driver,)
    if payload.hint is None:
        raise DriverError("no known device sends this")
    return (payload.hint,) if row is None else (payload.hint, row.driver)


def _decode_list(payload: Payload, parts: list[wire.Part]) -> Decoded:
    """Decode each item by itself, so that a bad item spoils no other."""
    if len(parts) > READINGS_PER_LIST:
        raise DriverError(f"{len(parts)} readings in one list")
    reports: list[Report] = []
    troubles: list[str] = []
    left: list[bytes] = []
    for place, part in enumerate(parts, 1):
        try:
            found = _decode_one(replace(payload, body=b"", query="", fields=part.fields))
        except DriverError as error:
            troubles.append(f"item {place}: {error}")
            left.append(part.raw[1:-1])
            continue
        for report in found:
            report.raw = part.raw if len(parts) > 1 else None
        reports += found
    if troubles and not reports:
        raise DriverError(troubles[0])
    return Decoded(reports, troubles[0], b"[%b]" % b",".join(left)) if troubles else Decoded(reports)


__all__ = ["BY_NAME", "DRIVERS", "Decoded", "Driver", "ValueTopics", "decode"]
