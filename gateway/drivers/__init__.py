"""Drivers: one pure module per device family, and the one place that knows them all.

A new family is a module with a `DRIVER`, a line in `DRIVERS`, and a folder of cases.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import (
    aws,
    blynk,
    brew_bubbles,
    brewblox,
    brewpiless,
    bricks,
    emanometer,
    esphome,
    fermentrack,
    fhem,
    grainfather,
    gravitymon,
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
)

BY_NAME = {driver.name: driver for driver in DRIVERS}

LINE_PROTOCOL_DRIVER = "influx"
EXPOSITION_DRIVER = "prometheus"

REPORTS_PER_PAYLOAD = 64
"""A bridge with more channels than that is not a bridge."""

IDENTITY_CHARACTERS = 128
"""A device id at most; the longest known is a GUID."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The reports in a payload; none where it is known and holds no measurement.

    `trouble` says what of it was not understood, where the rest was.
    """

    reports: list[Report]
    trouble: str | None = None


def decode(payload: Payload) -> Decoded:
    """The reports in a payload, by the driver that its address names or its content shows.

    `DriverError` where nothing in it is understood.
    """
    items = None if wire.is_object(payload) else wire.items(payload)
    decoded = Decoded(_decode_one(payload)) if items is None else _decode_list(payload, items)
    reports = decoded.reports
    if len(reports) > REPORTS_PER_PAYLOAD:
        raise DriverError(f"{len(reports)} readings in one payload")
    if any(len(report.stable_id) > IDENTITY_CHARACTERS for report in reports):
        raise DriverError(f"a device id of more than {IDENTITY_CHARACTERS} characters")
    if len(reports) > 1:
        _set_ages(reports)
    return decoded


def _decode_one(payload: Payload) -> list[Report]:
    driver = BY_NAME.get(name := _driver_of(payload))
    if driver is None:
        raise DriverError(f"looks like {name}, for which there is no driver yet")
    reports = driver.parse(payload)
    for report in reports:
        report.family = report.family or driver.name
    return reports


def _driver_of(payload: Payload) -> str:
    """The address' own driver, else the content's, else the one that the address usually means."""
    if payload.driver is not None:
        return payload.driver
    if wire.is_object(payload):
        return _shown_by_content(payload)
    if not payload.body.strip() and payload.channel.startswith(tcontrol.CHANNEL):
        return tcontrol.DRIVER.name  # an empty line, which nothing else sends there
    if wire.is_line_protocol(payload):
        return LINE_PROTOCOL_DRIVER
    if wire.is_exposition(payload):
        return EXPOSITION_DRIVER
    return _shown_by_content(payload)


def _shown_by_content(payload: Payload) -> str:
    row = recognise(wire.fields(payload))
    if row is not None and not (row.generic and payload.hint):
        return row.driver
    if payload.hint is not None:
        return payload.hint
    raise DriverError("no device that is known sends this")


def _decode_list(payload: Payload, items: list[Mapping[str, Any]]) -> Decoded:
    """Each item by itself, so that a bad one does not take its neighbours along."""
    reports: list[Report] = []
    troubles: list[str] = []
    for place, item in enumerate(items[: REPORTS_PER_PAYLOAD + 1], 1):
        try:
            reports += _decode_one(replace(payload, body=b"", query="", fields=item))
        except DriverError as error:
            troubles.append(f"item {place}: {error}")
    if troubles and not reports:
        raise DriverError(troubles[0])
    return Decoded(reports, troubles[0] if troubles else None)


def _set_ages(reports: list[Report]) -> None:
    """How much older than its newest each reading of a device is, by the device's own clock.

    A bridge that was offline sends several at once, in local time of a zone that nobody tells.
    """
    newest: dict[str, datetime] = {}
    times = [None if r.device_time is None else datetime.fromisoformat(r.device_time) for r in reports]
    for report, time in zip(reports, times, strict=True):
        if time is not None:
            newest[report.device_key] = max(time, newest.get(report.device_key, time))
    for report, time in zip(reports, times, strict=True):
        if time is not None:
            report.age_s = (newest[report.device_key] - time).total_seconds()


__all__ = ["BY_NAME", "DRIVERS", "Decoded", "Driver", "ValueTopics", "decode"]
