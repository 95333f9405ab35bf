"""eManometer, a pressure gauge for kegs and spunding valves, built on the iSpindel's code.

HTTP (JackFrost80/eManometer pio/src/main.cpp, 0.7.6b): the iSpindel's JSON without `angle`, `gravity` and
`battery`: `{"name","ID","token"?,"temperature","temp_units","type":"eManometer","pressure" bar,"co2" g/l,
"interval","RSSI","num-openings"?,"open-time"?}`, the last two only while spunding; its Ubidots part spells
`nun-openings`. The unit of the pressure is not sent.

MQTT (same source): `ispindel/<name>/` + `temperature`, `temp_units`, `pressure`, `co2`, `interval`, `RSSI`,
and while spunding `num-openings` and `open-time` behind it: `forwardMQTT` adds `RSSI` a second time, which
does not move it. That root is the iSpindel's, whose driver hands such readings over.

To InfluxDB and Prometheus the device sends no value: up to 1.0.0, pio/src/Sender.cpp clears its values before
it writes them (`_doc.to`).
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, spindle, wire
from gateway.drivers.base import Driver
from gateway.drivers.wire import Fields

NUMBERS = {"num-openings": "num_openings", "nun-openings": "num_openings", "open-time": "open_time"}

PRESSURE_UNIT = "BAR"


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload."""
    source = wire.fields(payload)
    report = spindle.parse(payload, source, gravity=False)
    fill.facts(report, source, NUMBERS)
    if "pressure" in report.facts:
        report.facts["pressure_unit"] = PRESSURE_UNIT
    return [report]


def fits(source: Fields) -> bool:
    """Return whether the payload names this device, or has a pressure and no hydrometer's value."""
    return source.get("type") == "eManometer" or (
        ("pressure" in source or "co2" in source)
        and not any(key in source for key in ("gravity", "angle", "tilt"))
    )


DRIVER = Driver("emanometer", "eManometer", parse)
