"""BierBot Bricks, as iSpindel, GravityMon and Bricks' own devices report to it.

GET or POST `/api/iot/v1`: `apikey`, `type`, `brand`, `version`, `chipid`, `s_number_wort_0` (gravity) always
Plato but from an iSpindel, `s_number_temp_0` always °C, `s_number_voltage_0` volt, `s_number_wifi_0` dBm,
`s_number_tilt_0` degree (universam1/iSpindel pio/src/iSpindel.cpp, 7.3.3, `chipid` 16 hex characters;
mp-se/gravitymon src_docs/source/services.rst). The last number counts sensors of a kind. Bricks' own devices
without a sensor ask with their switches alone, `a_bool_epower_0`, and wait for the answer.

Reply (BierBot Bricks IoT API): `{"error":0,"error_text":"","warning":0,"warning_text":"",
"next_request_ms":900000}`; the iSpindel sleeps as long as `next_request_ms` says.
"""

from operator import itemgetter
from typing import Any

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver
from gateway.errors import DriverError

REQUEST = frozenset({"apikey", "chipid"})
"""Members of every request, with sensors or without."""

PREFIX = "s_number_"

NEXT_REQUEST_MS = 900_000
"""The devices' own interval: a quarter of an hour."""

REPLY = {
    "error": 0, "error_text": "", "warning": 0, "warning_text": "", "next_request_ms": NEXT_REQUEST_MS,
}  # fmt: skip

SPINDLE_TYPE = "ispindel"
"""The type whose gravity is in the unit of the user's polynomial; Bricks' own interface has degrees Plato."""

NUMBERS = {"voltage": "battery", "wifi": "rssi", "tilt": "angle"}
NUMERALS = {"pressure": "pressure"}


def parse(payload: Payload) -> list[Report]:
    """Return one report per request; none without a sensor."""
    source = wire.fields(payload)
    # The first sensor of each kind, by its kind.
    found: dict[str, tuple[int, Any]] = {}
    for key, value in source.items():
        kind, _, place = key.removeprefix(PREFIX).rpartition("_")
        if key.startswith(PREFIX) and place.isdecimal() and len(place) < wire.DIGITS_LIMIT:
            found[kind] = min(found.get(kind, (int(place), value)), (int(place), value), key=itemgetter(0))
    values = {kind: value for kind, (_, value) in found.items()}
    chip_id = wire.text(source, "chipid", "chip_id") or wire.numeral(source, "chipid") or ""
    name = chip_id or payload.label or payload.source
    report = Report(stable_id=name, name=name, reply=REPLY)
    fill.token(report, payload, source)
    is_spindle = (wire.text(source, "type") or "").lower() == SPINDLE_TYPE
    fill.gravity(
        report,
        values,
        "wort",
        unit=None if is_spindle else "P",
        reason=fill.FORMAT_SAYS,
        required="wort" in values,
    )
    fill.temperature(report, values, {"temp": None}, "C")
    fill.facts(report, values, NUMBERS, NUMERALS)
    if report.facts.get("angle") == 0:
        report.flags.append("angle_zero")
    if fill.measures(report):
        return [report]
    if source.keys() >= REQUEST and all(wire.is_missing(values, kind) for kind in ("wort", "temp")):
        return []
    raise DriverError("neither s_number_wort_0 nor s_number_temp_0")


DRIVER = Driver("bricks", "BierBot Bricks", parse, paths=("/api/iot/v1",), reply=REPLY)
