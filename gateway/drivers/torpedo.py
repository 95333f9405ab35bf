"""Torpedo, an ESP32 hydrometer in MicroPython.

HTTP (dukeduck1984/Hydrometer-Esp32-Micropython README): POST `{"name","ID","temperature" °C,"angle","battery"
volt,"fahrenheit","currentGravity" SG,"currentPlato","batteryLevel" %,"updateIntervalMs"}`.
MQTT (same source): one topic of the user's choice, in the README's example `/v1.6/devices/hydrometer`, with
`{"temperature","sg","plato","battery"}`. iTilt's topic at Ubidots looks the same; its readings are handed
over to its driver.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, identity, itilt, wire
from gateway.drivers.base import Driver
from gateway.errors import DriverError

TEMPERATURES: dict[str, fill.Unit | None] = {"temperature": None, "fahrenheit": "F"}

NUMBERS = {"battery": "battery", "batteryLevel": "battery_percent", "angle": "angle", "RSSI": "rssi"}

SECONDS_PER_MILLISECOND = 0.001

KNOWN = ("currentGravity", "currentPlato", "sg", "plato", "temperature")


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none if each of its members is empty."""
    source = wire.fields(payload)
    if itilt.fits(source):
        return itilt.parse(payload)
    device_id = wire.text(source, "ID", "id")
    label = payload.label if payload.label != device_id else ""
    name = wire.text(source, "name") or label
    report = Report(stable_id=device_id or name, name=name)
    identity.settle(report, payload, source, own=device_id or "", shared=not name)
    fill.token(report, payload, source)
    fill.any_gravity(report, source)
    fill.temperature(report, source, TEMPERATURES)
    fill.interval(report, source, "updateIntervalMs", SECONDS_PER_MILLISECOND)
    fill.facts(report, source, NUMBERS)
    if fill.measures(report):
        return [report]
    if any(key in source for key in KNOWN):
        return []
    raise DriverError("neither gravity nor temperature of a Torpedo")


DRIVER = Driver("torpedo", "Torpedo", parse, topics=("/v1.6/devices/{label}",))
