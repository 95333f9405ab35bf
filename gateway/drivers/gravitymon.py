"""GravityMon and its gateway: HTTP POST and GET templates.

POST (mp-se/gravitymon src/push_templates.cpp, 2.x): `{"name","ID","token","interval","temperature",
"temp_units","gravity","velocity","angle","battery","RSSI","corr-gravity","gravity-unit","run-time"}`; `ID`
is the chip id in hex, a string. 1.x lacks `velocity`. `gravity-unit` is G or P, `velocity` points a day,
`run-time` seconds awake. Without a sensor the temperature is -273. NaN goes out as bare `nan`.

1.0 renamed `rssi` to `RSSI`, 0.9 `temp-units` to `temp_units`; very early ones had `gravity-units` `SG`.

GET: the same as query, with `id`, `rssi` and `temp-units`, values not URL-encoded, and a second `?` where
the URL already had a query. The gateway's POST template (mp-se/gravitymon-gateway src/pushtarget.cpp) ends in
a trailing comma and has no unit; its `interval` is 0 for reports heard by BLE, with the gateway's own name.
Firmware counts exactly 200 as success.

Templates that users choose (mp-se/gravitymon-ui gravityFormatOptions.js, mp-se/gravitymon src_docs):
iSpindle (no unit, hex `ID`), BrewFatherCustom (a custom stream), UBIDots (no name: the address has it). A
temperature without a unit has the user's unit. Templates for Bricks, ThingSpeak and Blynk are handed over to
their own drivers; so is a PressureMon's payload, which the gateway for all of mp-se's devices posts to the
same URL.

MQTT (src/push_templates.cpp): by default as the iSpindel's; the template for Home Assistant has
`gravmon/<mdns>/` + `temperature`, `gravity`, `rssi`, `tilt`, `battery`, in this order.
"""

from collections.abc import Callable

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import blynk, bricks, emanometer, pressuremon, spindle, stream, thingspeak, wire
from gateway.drivers.base import Driver, ValueTopics
from gateway.drivers.recognise import recognise

RELATIVES: dict[str, Callable[[Payload], list[Report]]] = {
    "blynk": blynk.parse,
    "bricks": bricks.parse,
    "emanometer": emanometer.parse,
    "pressuremon": pressuremon.parse,
    "thingspeak": thingspeak.parse,
}
"""Drivers of formats that also come to GravityMon's path, by their names in `recognise`."""


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none for a custom stream or a Bricks template without a value."""
    source = wire.fields(payload)
    if stream.fits(source):
        return stream.parse(payload)
    row = recognise(source)
    if row is not None and row.driver in RELATIVES:
        return RELATIVES[row.driver](payload)
    knows_gravity = "gravity" in source or "pressure" not in source
    return [spindle.parse(payload, source, gravity=knows_gravity, temp_unit=None)]


DRIVER = Driver(
    "gravitymon",
    "GravityMon",
    parse,
    paths=("/gravitymon", "/post", "/api/gravity/public", "/api/dispatch/public"),
    values=(ValueTopics("gravmon/{label}/{key}"),),
)
