"""Ubidots, as iSpindel, GravityMon and eManometer post to it: an iSpindel's values, the name in the path.

POST `/api/v1.6/devices/<name>?token=<token>`; iSpindel (universam1/iSpindel pio/lib/Sender/Sender.cpp):
`{"tilt","temperature","battery","gravity","interval","RSSI"}` and a CRLF that Content-Length does not count;
GravityMon `{"temperature","gravity","angle","battery","rssi"}` (mp-se/gravitymon-ui
src/modules/gravityFormatOptions.js) or with `RSSI` (mp-se/gravitymon src_docs/source/services.rst);
eManometer `{"temperature","pressure" bar,"co2","interval","RSSI","nun-openings","open-time"}`
(JackFrost80/eManometer pio/src/main.cpp). There are no units; the temperature has the
unit that the device is set to, Kelvin included. Ubidots itself also takes a variable as
`{"value":20.5,"timestamp":<ms>}` (docs.ubidots.com).
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import emanometer, fill, spindle, wire
from gateway.drivers.base import Driver


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload."""
    sent = wire.fields(payload)
    source = {k: v.get("value") if isinstance(v, dict) else v for k, v in sent.items()}
    is_gauge = emanometer.fits(source)
    report = spindle.parse(payload, source, gravity=not is_gauge, temp_unit=None)
    if is_gauge:
        fill.facts(report, source, emanometer.NUMBERS)
    if is_gauge and "pressure" in report.facts:
        report.facts["pressure_unit"] = emanometer.PRESSURE_UNIT
    for variable in sent.values():
        if isinstance(variable, dict) and report.measured_at is None:
            fill.clock(report, variable, "timestamp")
    return [report]


DRIVER = Driver("ubidots", "Ubidots", parse, paths=("/api/v1.6/devices/{label}", "/v1.6/devices/{label}"))
