"""Formulas against the published vectors, and text conversions that keep their digits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain import units
from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.domain.report import GravityUnit, Report, TempUnit
from gateway.intake.normalise import gravity_of, normalise


def test_vectors() -> None:
    assert units.plato_to_sg(13.5) == 1.0547165537471586
    assert round(units.plato_to_sg(12), 5) == 1.04838
    assert round(units.sg_to_plato(units.plato_to_sg(12)), 4) == 12.0021
    assert round(units.sg_to_plato(1.0), 3) == -0.003
    assert units.serial_day(1_772_616_600) == "46085.39583333333"
    assert units.kelvin_text_to_celsius_text("293.71") == "20.56"
    assert units.scale_text("1045.6", 1000) == "1.0456"
    assert units.scale_text("10450", 10000) == "1.045"


@given(st.floats(min_value=-40, max_value=120))
def test_temperatures_round_trip(celsius: float) -> None:
    assert units.to_celsius(units.celsius_to_fahrenheit(celsius), "F") == pytest.approx(celsius, abs=1e-9)


@given(st.floats(min_value=0, max_value=30))
def test_plato_round_trips_within_the_fit(plato: float) -> None:
    assert units.sg_to_plato(units.plato_to_sg(plato)) == pytest.approx(plato, abs=0.02)


@pytest.mark.parametrize(
    ("text", "stated", "before", "result"),
    [
        ("1.0450", None, None, ("1.0450", "G")),
        ("12.5", None, None, ("12.5", "P")),
        ("-0.35", None, None, ("-0.35", "P")),
        ("1.04", None, "P", ("1.04", "P")),
        ("1.04", None, "G", ("1.04", "G")),
        ("1.04", "G", "P", ("1.04", "G")),
        ("1.04", "P", None, ("1.04", "P")),
        ("1045.6", None, None, ("1.0456", "G")),
        ("1045.6", "G", None, ("1.0456", "G")),
        ("10456", None, None, ("1.0456", "G")),
    ],
)
def test_unit_of_gravity(
    text: str, stated: GravityUnit | None, before: GravityUnit | None, result: tuple[str, str]
) -> None:
    report = Report("1", family="x", gravity=text, gravity_unit=stated)
    device = Device(1, "x:1", "x", "1", "", 0, gravity_unit=before)
    assert gravity_of(report, device)[:2] == result


def test_a_number_in_no_range_is_kept_with_a_flag() -> None:
    report = Report("1", family="x", gravity="700")
    found = gravity_of(report, Device.first_seen(report, 0))
    assert found[:5] == ("700", "G", None, "", "gravity_out_of_range")


@pytest.mark.parametrize(("temp", "unit"), [("1e308", "F"), ("999", "F"), ("-60", "C"), ("151", "C")])
def test_a_temperature_that_cannot_be_is_kept_as_text_with_a_flag(temp: str, unit: TempUnit) -> None:
    report = Report("1", family="x", gravity="1.045", gravity_unit="G", temp=temp, temp_unit=unit)
    reading, _ = normalise(report, Device.first_seen(report, 0), Payload(b"{}", 0.0, "http"))
    assert (reading.temp, reading.celsius, reading.sg) == (temp, None, 1.045)
    assert reading.flags is not None
    assert "temp_out_of_range" in reading.flags
