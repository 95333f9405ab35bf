"""A temperature whose name says its unit is one, in every driver whose members users name themselves."""

import json

import pytest

from gateway.domain.payload import Payload
from gateway.drivers import decode

FAHRENHEIT = ("tempf", "temp_f", "tempF", "temperature_f", "temp_fahrenheit", "temperature_fahrenheit")
CELSIUS = ("tempc", "temp_c", "tempC", "temperature_c", "temp_celsius", "temperature_celsius")
NAMES = [*((name, "F") for name in FAHRENHEIT), *((name, "C") for name in CELSIUS)]

JSON_DRIVERS = (None, "stream", "ispindel", "gravitymon", "tilt_tools", "rapt", "brewpiless", "esphome")


@pytest.mark.parametrize(("name", "unit"), NAMES)
@pytest.mark.parametrize("driver", JSON_DRIVERS)
def test_of_an_object(driver: str | None, name: str, unit: str) -> None:
    body = json.dumps({"name": "x", "color": "Red", "gravity": "1.045", name: "68.4"})
    [report] = decode(Payload(body.encode(), 0.0, "", driver=driver, label="x")).reports
    assert (report.temp, report.temp_unit) == ("68.4", unit)


@pytest.mark.parametrize(("name", "unit"), NAMES)
def test_of_a_line(name: str, unit: str) -> None:
    line = f"measurements,source=x gravity=1.045,{name}=68.4"
    [report] = decode(Payload(line.encode(), 0.0, "", driver="influx")).reports
    assert (report.temp, report.temp_unit) == ("68.4", unit)


def test_without_a_gravity_nothing_is_guessed_at_on_a_shared_path() -> None:
    """A thermometer's object has the same names."""
    with pytest.raises(Exception, match="no known device"):
        decode(Payload(b'{"tempf": 68, "hum": 40}', 0.0, ""))
