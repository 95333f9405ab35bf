"""A reading that somebody forwards in the format of another family: no driver takes 71 for Celsius.

Each family's format, with a temperature whose unit the payload does not tell. Who forwards Fahrenheit has not
read that the family sends Celsius, and the other way round.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.device import Device, DeviceSettings
from gateway.domain.payload import Payload
from gateway.domain.reading import Reading
from gateway.drivers import BY_NAME, decode
from gateway.intake.normalise import normalise

ARRIVAL = 1_772_800_000.0

SPINDLE = {"name": "Red", "ID": 7, "angle": 50.0, "temperature": "TT", "battery": 4.0, "gravity": 1.048}
BRICK = {"apikey": "k", "type": "gravitymon", "chipid": "7", "s_number_wort_0": 12.1, "s_number_temp_0": "TT"}
TILT = "Timepoint=45000.5&Temp=TT&SG=1.048&Beer=Ale&Color=RED&Comment="

FORMATS: dict[str, list[Any]] = {
    "aws": [{"state": {"reported": SPINDLE}}],
    "blynk": ["token=t&v1=TT&v2=1.048&v3=50"],
    "brew_bubbles": [{"api_name": "Brew Bubbles", "name": "a", "bpm": 3, "temp": "TT"}],
    "brewblox": [],
    "brewpiless": [
        {"id": "a", "beerTemp": "TT", "gravity": 1.048},
        {"id": "a", "auxTemp": "TT", "gravity": 1.048},
    ],
    "bricks": [BRICK, BRICK | {"type": "ispindel"}],
    "craftbeerpi": [{"gravity": "1.048", "temp": "TT"}],
    "emanometer": [{"name": "a", "type": "eManometer", "pressure": 0.8, "temperature": "TT"}],
    "esphome": [{"sg": "1.048", "beer_temperature": "TT"}],
    "fermentrack": [{"gravity_sensors": [{"name": "a", "gravity": 1.048, "temp": "TT"}]}],
    "fhem": ["cmd.Test=set a 50 TT 4.0 1.048 7&XHR=1"],
    "grainfather": [{"specific_gravity": 1.048, "temperature": "TT"}, {"SG": 1.048, "Temp": "TT"}, SPINDLE],
    "gravitymon": [SPINDLE | {"corr-gravity": 1.047, "run-time": 3}, BRICK, {"name": "a", "temp": "TT"}],
    "home_assistant": [
        {"entity_id": "sensor.tilt_red_temperature", "state": "TT", "attributes": {}},
        {"gravity": "1.048", "temp": "TT"},
    ],
    "influx": [
        "measurements,source=a tilt=50,temperature=TT,gravity=1.048",
        "measurement,device=a gravity=1.048,temp=TT",
    ],
    "irelay": [{"temperature": "TT", "token": "t"}],
    "ispindel": [SPINDLE, {"angle": 50, "temperature": "TT"}, {"name": "a", "temp": "TT", "gravity": 1.048}],
    "itilt": [{"4": "TT", "7": "1.048"}, {"4": "temp,c=TT", "7": "1.048"}],
    "plaato": [{"device_id": "a", "sg": 1.048, "temp": "TT"}],
    "pressuremon": [{"name": "a", "id": "7", "temperature": "TT", "pressure": 1, "pressure-unit": "PSI"}],
    "prometheus": ["# TYPE tilt gauge\ntilt 50\ntemperature TT\ngravity 1.048\n"],
    "rapt": [
        {"device_id": "a", "gravity": 1048, "temperature": "TT"},
        SPINDLE,
        {"name": "a", "current_temperature": "TT", "current_gravity": 1.048},
    ],
    "smartpid": [{"temp": "TT", "runmode": "monitor"}],
    "stream": [{"name": "a", "temp": "TT", "gravity": 1.048}, {"name": "a", "beer_temp": "TT"}, SPINDLE],
    "tcontrol": ["T: TT D: 50 U: 3.9 G: 1.048"],
    "theengs": [],
    "thingspeak": ["api_key=k&field1=1.048&field2=TT&field3=50&field4=3.9&field5=-60"],
    "tilt": [TILT, {"name": "a", "temp": "TT", "gravity": 1.048}],
    "tilt_tools": [
        {"color": "Red", "gravity": 1.048, "temp": "TT"},
        [{"color": "Red", "gravity": 1048, "temp": "TT"}],
    ],
    "tiltbridge": [
        {"tilts": {"Red": {"color": "Red", "temp": "TT", "gravity": "1.048"}}, "mdns_id": "b"},
        {"Color": "Red", "SG": 1.048, "Temp": "TT"},
        {"name": "a", "temp": "TT", "gravity": 1.048},
    ],
    "tiltbridge_junior": [{"tilts": [{"color": "Red", "raw_gravity": "1.048", "raw_temp": "TT"}]}],
    "torpedo": [{"ID": "a", "currentGravity": 1.048, "temperature": "TT"}],
    "ubidots": [{"temperature": "TT", "gravity": 1.048, "angle": 50}],
}
"""By driver; TT is the temperature. Without an entry: the names of temperatures say the unit."""

FAHRENHEIT_BY_FORMAT = {"tilt", "tilt_tools", "tiltbridge", "tiltbridge_junior"}


def body_of(format_: Any, temp: str) -> bytes:
    text = format_ if isinstance(format_, str) else json.dumps(format_)
    return text.replace('"TT"', temp).replace("TT", temp).encode()


def read(driver: str, format_: Any, temp: str, device: Device | None = None) -> tuple[Reading, Device]:
    body = body_of(format_, temp)
    assert temp.encode() in body
    payload = Payload(body, ARRIVAL, "http /ingest", driver=driver, source="10.0.0.7", label="x")
    if isinstance(format_, list):
        payload.driver, payload.hint = None, driver
    [report] = decode(payload).reports
    device = device or Device.first_seen(report, int(ARRIVAL))
    reading, inferred = normalise(report, device, payload)
    return reading, device.learned(report, reading, inferred)


EVERY = [(driver, format_) for driver, formats in FORMATS.items() for format_ in formats]


def test_every_driver_is_here() -> None:
    assert FORMATS.keys() == BY_NAME.keys()


@pytest.mark.parametrize(("driver", "format_"), EVERY)
@pytest.mark.parametrize("temp", ["71.3", "46", "212"])
def test_71_without_a_unit_is_fahrenheit_in_every_format(driver: str, format_: Any, temp: str) -> None:
    reading, _ = read(driver, format_, temp)
    assert (reading.temp, reading.temp_unit) == (temp, "F")


@pytest.mark.parametrize(("driver", "format_"), EVERY)
@pytest.mark.parametrize("temp", ["18.5", "4", "-0.5"])
def test_what_is_too_cold_for_fahrenheit_is_celsius_in_every_format(
    driver: str, format_: Any, temp: str
) -> None:
    reading, _ = read(driver, format_, temp)
    assert (reading.temp, reading.temp_unit) == (temp, "C")


@pytest.mark.parametrize(("driver", "format_"), EVERY)
@pytest.mark.parametrize("temp", ["34", "38.2", "44.9"])
def test_what_may_be_both_is_what_the_format_means(driver: str, format_: Any, temp: str) -> None:
    """A cold crash of a Tilt, a kveik in an iSpindel."""
    is_pytilt = isinstance(format_, list)
    reading, _ = read(driver, format_, temp)
    is_stream = isinstance(format_, dict) and format_.get("name") == "a"
    wanted = "F" if driver in FAHRENHEIT_BY_FORMAT and not is_pytilt and not is_stream else "C"
    assert (reading.temp, reading.temp_unit) == (temp, wanted)


@pytest.mark.parametrize(("driver", "format_"), EVERY)
def test_what_the_user_set_wins_in_every_format(driver: str, format_: Any) -> None:
    reading, device = read(driver, format_, "71.3")
    said = replace(device, settings=DeviceSettings(temp_unit="C"))
    reading, _ = read(driver, format_, "71.3", said)
    assert (reading.temp_unit, reading.celsius) == ("C", 71.3)


@pytest.mark.parametrize(("driver", "format_"), EVERY)
def test_a_sensor_that_has_not_converted_yet_is_no_fahrenheit(driver: str, format_: Any) -> None:
    reading, _ = read(driver, format_, "85")
    if driver in FAHRENHEIT_BY_FORMAT and reading.temp:
        assert reading.temp_unit == "F"  # a warm day, of a Tilt
    else:
        assert (reading.temp, "temp_sensor_fault" in (reading.flags or "")) == ("", True)


THERMOMETERS: dict[str, tuple[str, list[float], str]] = {
    "Celsius by its format, once in hot water": ("plaato", [20.5, 50.0, 36.0, 20.0], "C F C C"),
    "Celsius by its format, in hot water first": ("plaato", [50.0, 36.0, 20.0, 36.0], "F C C C"),
    "Fahrenheit where the format means Celsius": ("plaato", [68.5, 67.9, 41.2, 36.0], "F F F F"),
    "Fahrenheit by its format, cold crash": ("tilt_tools", [68, 41, 33, 28, 33], "F F F F F"),
    "Fahrenheit by its format, once frozen": ("tilt_tools", [68, 12, 41, 68], "F C F F"),
    "Celsius where the format means Fahrenheit": ("tilt_tools", [18.5, 19.5, 28.5, 33.0], "C C C C"),
}


@pytest.mark.parametrize("name", THERMOMETERS)
def test_one_odd_value_does_not_turn_a_device(name: str) -> None:
    driver, temps, units = THERMOMETERS[name]
    found: list[str] = []
    device = None
    for temp in temps:
        reading, device = read(driver, FORMATS[driver][0], str(temp), device)
        found.append(reading.temp_unit)
    assert " ".join(found) == units


GRAVITIES: dict[str, Any] = {
    "brewpiless": lambda value: {"id": "a", "beerTemp": 20, "gravity": value},
    "bricks": lambda value: BRICK | {"s_number_wort_0": value},
    "fermentrack": lambda value: {"gravity_sensors": [{"name": "a", "gravity": value, "temp": 20}]},
    "thingspeak": lambda value: {
        "version": "1.0",
        "field2": "a",
        "field3": "C",
        "field4": 20,
        "field7": value,
    },
    "tiltbridge": lambda value: {"color": "Red", "device": "b", "temp": 68, "gravity": value},
    "tiltbridge_junior": lambda value: {"tilts": [{"color": "Red", "raw_gravity": value, "raw_temp": 68}]},
}
"""Formats that mean one unit and cannot say it."""


@pytest.mark.parametrize("driver", GRAVITIES)
@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(12.5, "P", "12.5"), (1048.5, "G", "1.0485"), (3.25, "P", "3.25"), (-1.5, "P", "-1.5")],
)
def test_a_gravity_that_can_have_one_unit_only_has_it_in_every_format(
    driver: str, value: float, unit: str, text: str
) -> None:
    payload = Payload(json.dumps(GRAVITIES[driver](value)).encode(), ARRIVAL, "http /ingest", driver=driver)
    [report] = decode(payload).reports
    reading, _ = normalise(report, Device.first_seen(report, 0), payload)
    assert (reading.gravity, reading.gravity_unit) == (text, unit)
    assert reading.sg is not None


@pytest.mark.parametrize("driver", GRAVITIES)
def test_a_gravity_that_may_be_both_is_what_the_format_means(driver: str) -> None:
    payload = Payload(json.dumps(GRAVITIES[driver](1.048)).encode(), ARRIVAL, "http /ingest", driver=driver)
    [report] = decode(payload).reports
    reading, _ = normalise(report, Device.first_seen(report, 0), payload)
    assert reading.gravity_unit == ("P" if driver == "bricks" else "G")
