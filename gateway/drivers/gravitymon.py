"""GravityMon and its gateway: HTTP POST and GET templates.

POST (mp-se/gravitymon src/push_templates.cpp, 2.x): `{"name","ID","token","interval","temperature",
"temp_units","gravity","velocity","angle","battery","RSSI","corr-gravity","gravity-unit","run-time"}`; `ID`
is the chip id in hex, a string. 1.x lacks `velocity`. `gravity-unit` is G or P, `velocity` points a day,
`run-time` seconds awake. Without a sensor the temperature is -273. NaN goes out as bare `nan`.

GET: the same as query, with `id`, `rssi` and `temp-units`, values not URL-encoded, and a second `?` where
the URL already had a query. The gateway's POST template ends in a trailing comma and has no unit.
Firmware counts exactly 200 as success.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import spindle, wire
from gateway.drivers.base import Driver


def parse(payload: Payload) -> list[Report]:
    """One report per payload."""
    return [spindle.parse(payload, "gravitymon", wire.fields(payload))]


DRIVER = Driver("gravitymon", "GravityMon", parse)
