"""PressureMon: HTTP POST and GET templates, and MQTT one value per topic.

POST and GET (mp-se/pressuremon src/push_pressuremon.cpp, html/app.js.gz, Oct 2025): `name`, `id` (chip id in
hex), `token`, `interval`, `temperature`, `temperature-unit` C/F, `pressure`, `pressure1` with a second
sensor, `pressure-unit` PSI/Bar/kPa, `battery` volt, `rssi`, `run-time`. 0.4 had `temperature_unit` and
`pressure_unit`. A little below 0 is normal at atmosphere. There is no gravity. Firmware counts exactly 200 as
success.

MQTT (same source): `pressuremon/<mdns>/` + `temperature`, `temperature-unit`, `battery`, `pressure`,
`pressure1`, `pressure-unit`, `interval`, `RSSI`; `RSSI` is the last.
"""

import math

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, spindle, wire
from gateway.drivers.base import Driver, ValueTopics

NOT_FITTED = (65535, 655.35, 45.185, 4518.48)
"""Pressures that mean no second sensor: 0xFFFF raw, and as hundredths of a PSI in PSI, Bar and kPa."""

NOT_FITTED_TOLERANCE = 2e-4
"""The share of the value by which firmware rounds: to the user's decimals, two at least."""


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload."""
    source = wire.fields(payload)
    report = spindle.parse(payload, source, gravity=False)
    second = report.facts.get("pressure1")
    if second is not None and any(
        math.isclose(float(second), sign, rel_tol=NOT_FITTED_TOLERANCE) for sign in NOT_FITTED
    ):
        del report.facts["pressure1"]
    fill.words(report, source, {"pressure-unit": "pressure_unit", "pressure_unit": "pressure_unit"})
    return [report]


DRIVER = Driver(
    "pressuremon",
    "PressureMon",
    parse,
    paths=("/pressuremon", "/api/pressure/public"),
    values=(ValueTopics("pressuremon/{label}/{key}", frozenset({"RSSI", "rssi"})),),
)
