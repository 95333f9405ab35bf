"""Plaato Airlock's web hook, called by the vendor's cloud, and the pins of the vendor's pull API.

`{"device_name","device_id","temp_unit" °C or °F,"volume_unit","bpm" bubbles a minute,"temp","sg","og",
"abv" %,"co2_volume","batch_volume","bubbles"}`, numbers or texts (receivers JohNan/home-assistant-plaato
and JohNan/pyplaato; the vendor documents nothing). Pins (JohNan/pyplaato): `v102` to `v110` and `v119`.
"""

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import fill, wire
from gateway.drivers.base import Driver

PINS = {
    "v102": "bpm",
    "v103": "temp",
    "v104": "batch_volume",
    "v105": "og",
    "v106": "sg",
    "v107": "abv",
    "v108": "temp_unit",
    "v109": "volume_unit",
    "v110": "bubbles",
    "v119": "co2_volume",
}

NUMBERS = {
    "bpm": "bpm",
    "abv": "abv",
    "co2_volume": "co2_volume",
    "batch_volume": "batch_volume",
    "bubbles": "bubbles",
}

NUMERALS = {"og": "og"}


def parse(payload: Payload) -> list[Report]:
    """Return one report per payload; none if each value is empty."""
    sent = wire.fields(payload)
    source = {PINS.get(key, key): value for key, value in sent.items()}
    device_id = wire.text(source, "device_id")
    name = wire.text(source, "device_name", "name") or ("" if device_id == payload.label else payload.label)
    report = Report(stable_id=device_id or name, name=name, beer=wire.text(source, "beer_name", "beer"))
    fill.token(report, payload, source)
    fill.gravity(report, source, "sg", unit="G", reason="the name of sg")
    fill.temperature(report, source, {"temp": None})
    fill.facts(report, source, NUMBERS, NUMERALS)
    fill.words(report, source, {"volume_unit": "volume_unit"})
    return fill.only_measured(report, source, "sg", "temp", "bpm")


DRIVER = Driver("plaato", "Plaato", parse, paths=("/plaato", "/plaato/{token}", "/webhook/plaato"))
