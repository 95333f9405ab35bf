"""Brew Bubbles, a bubble counter for airlocks.

HTTP (lbussy/brew-bubbles src/pushhelper.cpp): POST `{"api_name":"Brew Bubbles","name","bpm" bubbles a minute,
"ambient","temp","temp_unit" C/F}` over a raw socket, CRLF after the body, no gravity. It looks for exactly
`200 OK` in the status line. Its Brewfather and Brewer's Friend targets are custom streams. BrewPi Remix takes
it at `/brewpi-api.php`.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver
from gateway.errors import DriverError

FURTHER_TEMPERATURES = {"ambient": "ext_temp", "ext_temp": "ext_temp", "aux_temp": "aux_temp"}


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none if its members are empty. 0 bubbles a minute are a measurement."""
    source = wire.fields(payload)
    name = wire.text(source, "name") or payload.label
    report = Report(stable_id=name, name=name)
    fill.token(report, payload, source)
    fill.temperature(report, source, {"temp": None}, default=None)
    fill.further_temperatures(report, source, FURTHER_TEMPERATURES)
    fill.facts(report, source, {"bpm": "bpm"})
    if fill.measures(report):
        return [report]
    if "bpm" in source or "temp" in source:
        return []
    raise DriverError("neither bubbles nor temperature")


DRIVER = Driver("brew_bubbles", "Brew Bubbles", parse, paths=("/brewpi-api.php",))
