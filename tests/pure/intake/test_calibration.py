"""Calibration: polynomials as users paste them, fits through points, and corrected readings."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain import units
from gateway.domain.calibration import Calibration
from gateway.domain.polynomial import (
    EXAMPLE,
    MAX_TEXT_CHARACTERS,
    evaluate,
    parse_polynomial,
    polynomial_text,
)
from gateway.errors import GatewayError, InvalidInput
from gateway.intake.calibration import OUT_OF_RANGE, Calibrated, calibrated, corrected_for_temperature, fit

COEFFICIENTS = st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=5)
ANGLES = st.floats(-10, 100) | st.none() | st.just(math.nan)


def reading(calibration: Calibration, **sent: Any) -> Calibrated:
    """Calibrated values of an iSpindel's reading in SG and Celsius, but for what is named."""
    usual: dict[str, Any] = {
        "gravity_text": "1.048",
        "gravity_unit": "G",
        "temp_text": "20.0",
        "temp_unit": "C",
        "angle": 45.0,
    }
    return calibrated(calibration, **(usual | sent))


@pytest.mark.parametrize(
    ("text", "curve"),
    [
        (
            "0.00438551*tilt^3 + 0.13647658*tilt^2 - 6.968821422*tilt + 133.0",
            (133.0, -6.968821422, 0.13647658, 0.00438551),
        ),
        ("-0.000001*tilt^3-0.0001*tilt*tilt", (0.0, 0.0, -0.0001, -0.000001)),
        ("0.00001140*tilt^3+-0.00161278*tilt^2+0.08+-0.5*tilt", (0.08, -0.5, -0.00161278, 0.0000114)),
        (
            "0.820176580024282 + 0.013694566538633851 *tilt-0.00029024921030887797 *tilt*tilt "
            "+ 0.000002287194855536953 *tilt*tilt*tilt",
            (0.820176580024282, 0.013694566538633851, -0.00029024921030887797, 0.000002287194855536953),
        ),
        ("1e-5*x**2 + 2.5E-3 * X + 1", (1.0, 2.5e-3, 1e-5)),
        ("  angle ^ 4*.5 - 3.", (-3.0, 0.0, 0.0, 0.0, 0.5)),
        ("tilt*-2 - -1", (1.0, -2.0)),
        ("0.9 + 0.002·tilt − 0.00001×tilt^2", (0.9, 0.002, -0.00001)),
        ("tilt + tilt + 1 + 1", (2.0, 2.0)),
        ("0.5*tilt^2*2*tilt^1", (0.0, 0.0, 0.0, 1.0)),
        (
            "(1.0000E-6*(tilt^3))+(-1.3137E-4*(tilt^2))+(6.9680E-3*tilt)+(9.0704E-1)",
            (0.90704, 0.006968, -0.00013137, 0.000001),
        ),
        ("0.0044 * (tilt)^2 - ((0.1365)*( tilt )) -(-6.97)", (6.97, -0.1365, 0.0044)),
        ("0.1*tilt² − 2*tilt³ + (x)⁴", (0.0, 0.0, 0.1, -2.0, 1.0)),
        ("2*(-3*tilt)", (0.0, -6.0)),
    ],
)
def test_polynomials_are_read_as_firmware_and_calibration_pages_write_them(
    text: str, curve: tuple[float, ...]
) -> None:
    assert parse_polynomial(text) == pytest.approx(curve, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("0,001*tilt+1", "a point instead of a comma"),
        ("2tilt+1", r"write \* between"),
        ("0.1*(tilt+1)", "brackets"),
        ("0.1*tilt^(2*tilt)", "brackets"),
        ("(2*tilt)^2", "brackets"),
        ("(-tilt)^2", "brackets"),
        ("2(3*tilt)", "brackets"),
        ("(2)3*tilt", "brackets"),
        ("1e-(3)*tilt", "brackets"),
        ("((tilt)", "brackets"),
        ("(0.1*tilt)+(0.2*temp)", "brackets"),
        ("(0.1*tilt)+0.2*temp", "leave temperature out"),
        ("tilt/2+1", "divide"),
        ("0.1*tilt+0.2*temp", "leave temperature out"),
        ("0.1*x3", "its only names"),
        ("__import__('os').system('ls')*tilt", "brackets"),
        ("gravity*2", "its only names"),
        ("y = 0.1*x + 1", "equals sign"),
        ("tilt^5", "degree is 5"),
        ("tilt^3*tilt^2", "degree is 5"),
        ("tilt^-1", "cannot be read"),
        ("tilt^2.5", "cannot be read"),
        ("tilt^tilt", "cannot be read"),
        ("1*", r"cannot be read from '1\*'"),
        ("tilt+", r"cannot be read from '\+'"),
        ("0.1 0.2*tilt", "operator is missing"),
        ("1.050", "no tilt in it"),
        ("0*tilt + 1", "no tilt in it"),
        ("1e400*tilt", "beyond"),
        ("tilt*" + "1" * MAX_TEXT_CHARACTERS, "longer than 200"),
    ],
)
def test_what_is_no_polynomial_is_refused_with_the_remedy_and_an_example(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        parse_polynomial(text)
    assert EXAMPLE in str(refused.value)


def test_the_example_of_the_message_is_a_likely_curve() -> None:
    curve = parse_polynomial(EXAMPLE)
    assert [round(evaluate(curve, angle), 3) for angle in (25, 45, 60)] == [1.005, 1.035, 1.057]


@given(COEFFICIENTS)
def test_a_curve_survives_being_written_and_read(coefficients: list[float]) -> None:
    while coefficients and not coefficients[-1]:
        coefficients.pop()
    if len(coefficients) > 1:
        text = polynomial_text(coefficients)
        assert len(text) <= MAX_TEXT_CHARACTERS
        assert parse_polynomial(text) == tuple(coefficients)


@given(st.text(alphabet="0123456789.eE+-*^ tilxange()/,\u2212²", max_size=60) | st.text(max_size=20))
def test_any_text_is_a_polynomial_or_refused(text: str) -> None:
    try:
        curve = parse_polynomial(text)
    except GatewayError:
        return
    assert 2 <= len(curve) <= 5
    assert math.isfinite(evaluate(curve, 89.9))


GRAVITYMON_POINTS = [
    (25, 1.0), (30, 1.01), (35, 1.02), (40, 1.03), (45, 1.04),
    (50, 1.05), (55, 1.06), (60, 1.07), (65, 1.08), (70, 1.1),
]  # fmt: skip
"""mp-se/gravitymon test/tests_calc.cpp, calc_createFormula2."""


def test_a_fit_gives_the_formula_that_gravitymon_creates() -> None:
    found = fit(GRAVITYMON_POINTS, 2)
    assert [f"{each:.8f}" for each in found.curve] == ["0.96445455", "0.00124545", "0.00000909"]
    assert found.residuals[0] == pytest.approx(1.0 - evaluate(found.curve, 25))
    assert found.rms == pytest.approx(0.001954, abs=1e-6)
    assert (found.valid_deg, found.warnings) == ((25, 70), ())


@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=5),
    st.lists(st.integers(100, 800), min_size=6, max_size=12, unique=True),
)
def test_a_fit_finds_the_curve_that_its_points_lie_on(shape: list[float], tenths: list[int]) -> None:
    true = tuple(each * 0.02 / 80**power for power, each in enumerate(shape))
    angles = [each / 10 for each in tenths]
    points = [(angle, 1.1 + evaluate(true, angle)) for angle in angles]
    found = fit(points, len(shape) - 1)
    assert max(abs(each) for each in found.residuals) < 1e-9
    assert found.rms < 1e-9


@given(
    st.lists(
        st.tuples(st.integers(20, 80).map(float), st.integers(960, 1200).map(lambda n: n / 1000)),
        min_size=4,
        max_size=8,
        unique_by=lambda point: point[0],
    ),
    st.sampled_from([0.01, -0.01]),
)
def test_no_other_curve_lies_nearer_to_the_points(points: list[tuple[float, float]], push: float) -> None:
    found = fit(points, 2)
    best = sum(each**2 for each in found.residuals)
    for power in range(3):
        other = list(found.curve)
        other[power] += push / 80**power
        assert sum((sg - evaluate(other, angle)) ** 2 for angle, sg in points) >= best - 1e-12


def test_the_degree_follows_the_different_angles_and_two_measurements_of_one_are_averaged() -> None:
    assert len(fit([(25, 1.0), (60, 1.06)]).curve) == 2
    assert len(fit([(25, 1.0), (25, 1.002), (60, 1.06)]).curve) == 2
    assert len(fit(GRAVITYMON_POINTS).curve) == 4
    twice = fit([(25, 1.0), (25, 1.002), (60, 1.06)])
    assert evaluate(twice.curve, 25) == pytest.approx(1.001)
    assert twice.residuals == pytest.approx((-0.001, 0.001, 0.0), abs=1e-12)


@pytest.mark.parametrize(
    ("points", "degree", "says"),
    [
        ([], None, "at least two"),
        ([(25, 1.0)], None, "at least two"),
        ([(25, 1.0), (25, 1.01)], None, "at least two"),
        ([(25, 1.0), (30, 1.01), (30, 1.02)], 2, "at least 3 points of different angles, here are 2"),
        (GRAVITYMON_POINTS, 5, "1 to 4, not 5"),
        (GRAVITYMON_POINTS, 0, "1 to 4, not 0"),
        ([(91, 1.0), (30, 1.01)], None, "between 0 and 90 degrees, not 91"),
        ([(math.nan, 1.0), (30, 1.01)], None, "not nan"),
        ([(1.05, 45), (30, 1.01)], None, "between 0.95 and 1.25 SG, not 45"),
        ([(20 + n / 10, 1.0) for n in range(101)], None, "at most 100"),
    ],
)
def test_points_that_make_no_curve_are_refused(
    points: list[tuple[float, float]], degree: int | None, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says):
        fit(points, degree)


def test_a_curve_that_turns_back_or_falls_or_fits_everything_is_warned_of() -> None:
    turning = fit([(25, 1.0), (35, 1.05), (45, 1.06), (55, 1.02)], 2)
    falling = fit([(25, 1.06), (45, 1.03), (65, 1.0)], 1)
    exact = fit([(25, 1.0), (45, 1.03), (65, 1.07)])
    assert [("turns back within 25 to 55" in each) for each in turning.warnings] == [True]
    assert [("falls with the tilt over 25 to 65" in each) for each in falling.warnings] == [True]
    assert [("residuals say nothing" in each) for each in exact.warnings] == [True]


@pytest.mark.parametrize(
    ("sg", "celsius", "calibrated_at_c", "corrected"),
    [
        (1.02, 45.0, 20.0, 1.0281),  # GravityMon's own test expects 1.03
        (1.050, 20.0, 20.0, 1.0500),
        (1.040, 30.0, 20.0, 1.0426),
        (1.040, 20.0, 15.5556, 1.0408),
        (1.010, 4.0, 20.0, 1.0082),  # water: 0.99820 at 20 °C, 0.99997 at 4 °C
    ],
)
def test_gravity_is_corrected_for_temperature(
    sg: float, celsius: float, calibrated_at_c: float, corrected: float
) -> None:
    assert round(corrected_for_temperature(sg, celsius, calibrated_at_c), 4) == corrected


def test_the_correction_is_that_of_another_implementation() -> None:
    # drodil/rustybeer src/calculators/sg_correction.rs: 5.0 read at 22 °F, true at 23 °F
    there = corrected_for_temperature(5.0, units.fahrenheit_to_celsius(22), units.fahrenheit_to_celsius(23))
    assert there == pytest.approx(5.0002323479056585, abs=1e-12)


def test_a_temperature_of_no_liquid_corrects_nothing() -> None:
    assert corrected_for_temperature(1.05, -127.0, 20.0) == 1.05


def test_no_calibration_leaves_the_text_alone() -> None:
    assert reading(Calibration(points=((25, 1.0),))) == Calibrated(None, "G", 1.048, None, 20.0)
    plato = reading(Calibration(), gravity_text="12.30", gravity_unit="P", temp_text="68", temp_unit="F")
    assert plato == Calibrated(None, "P", units.plato_to_sg(12.3), None, 20.0)
    empty = reading(Calibration(gravity_offset=0.1, temp_offset=1), gravity_text="", temp_text=None)
    assert empty == Calibrated(None, "G", None, None, None)


def test_a_curve_replaces_what_was_sent_where_there_is_an_angle() -> None:
    line = Calibration(curve=(0.95, 0.002))
    assert (reading(line).gravity, reading(line).sg) == ("1.0400", 1.04)
    assert reading(line, gravity_text=None).gravity == "1.0400"
    for none in (None, 0.0, 90.0, math.nan):
        assert reading(line, angle=none) == Calibrated(None, "G", 1.048, None, 20.0)


def test_the_result_stays_in_the_unit_of_the_reading() -> None:
    plato_curve = Calibration(curve=(-15, 0.6), curve_unit="P")
    sg_curve = Calibration(curve=(0.95, 0.002))
    assert reading(plato_curve).gravity == f"{units.plato_to_sg(12):.4f}"
    assert reading(plato_curve, gravity_unit="P").gravity == "12.00"
    assert reading(sg_curve, gravity_unit="P").gravity == f"{units.sg_to_plato(1.04):.2f}"
    nothing_sent = reading(plato_curve, gravity_text=None, gravity_unit=None)
    assert (nothing_sent.gravity, nothing_sent.gravity_unit) == ("12.00", "P")


def test_offsets_are_added_and_temperature_keeps_its_decimals() -> None:
    offsets = Calibration(gravity_offset=-0.002, temp_offset=-0.5)
    assert (reading(offsets).gravity, reading(offsets).temp) == ("1.0460", "19.5")
    assert reading(offsets, temp_text="20.25").temp == "19.75"
    assert reading(offsets, temp_text="20.3125").temp == "19.81"
    fahrenheit = reading(offsets, temp_text="68", temp_unit="F")
    assert fahrenheit.temp == "67.1"
    assert fahrenheit.celsius == pytest.approx(19.5)
    assert reading(offsets, temp_text="0.5").temp == "0.0"
    assert reading(Calibration(temp_offset=-0.52), temp_text="0.5").temp == "0.0"
    assert reading(Calibration(temp_offset=1)).gravity is None


def test_plato_that_nothing_moves_keeps_its_value() -> None:
    at_its_own = Calibration(corrected_at_c=20.0)
    for hundredths in range(-200, 3000, 7):
        text = f"{hundredths / 100:.2f}"
        assert reading(at_its_own, gravity_text=text, gravity_unit="P").gravity == text.replace(
            "-0.00", "0.00"
        )


def test_curve_then_offset_then_the_correction_for_the_calibrated_temperature() -> None:
    all_of_it = Calibration(curve=(0.95, 0.002), gravity_offset=0.001, temp_offset=5, corrected_at_c=20.0)
    given_back = reading(all_of_it, temp_text="25.0")
    assert given_back.temp == "30.0"
    assert given_back.gravity == f"{corrected_for_temperature(1.041, 30.0, 20.0):.4f}"
    assert reading(Calibration(corrected_at_c=20.0), temp_text="").gravity is None


def test_a_result_that_no_beer_has_is_given_with_a_flag() -> None:
    wild = Calibration(curve=(0.0, 0.03))
    assert reading(wild) == Calibrated("1.3500", "G", 1.35, None, 20.0, (OUT_OF_RANGE,))
    assert reading(Calibration(curve=(0, 1e6))).gravity == "2.0000"
    assert reading(Calibration(curve=(0, 1e6), curve_unit="P")).gravity == "1.5860"
    assert reading(Calibration(curve=(0.95, 0.002))).flags == ()


@given(
    COEFFICIENTS,
    st.sampled_from("GP"),
    st.floats(-0.1, 0.1),
    st.floats(-20, 20),
    st.none() | st.floats(0, 50),
    st.none() | st.sampled_from("GP"),
    st.none() | st.floats(-1e6, 1e6).map(repr) | st.sampled_from(["", "nan", "294.01", "1e300"]),
    st.none() | st.floats(-1e6, 1e6).map(repr) | st.sampled_from(["", "inf", "-0"]),
    ANGLES,
)
def test_whatever_was_sent_gives_finite_texts_whose_numbers_stand_beside_them(
    curve: list[float],
    curve_unit: Any,
    gravity_offset: float,
    temp_offset: float,
    corrected_at_c: float | None,
    unit: Any,
    gravity: str | None,
    temp: str | None,
    angle: float | None,
) -> None:
    calibration = Calibration(tuple(curve), curve_unit, (), gravity_offset, temp_offset, corrected_at_c)
    given_back = reading(calibration, gravity_text=gravity, gravity_unit=unit, temp_text=temp, angle=angle)
    if given_back.gravity is not None:
        assert given_back.gravity_unit is not None
        assert given_back.gravity_unit == (unit or curve_unit)
        number = float(given_back.gravity)
        assert math.isfinite(number)
        if abs(number) <= 100:
            assert given_back.sg == units.to_sg(number, given_back.gravity_unit)
        assert (OUT_OF_RANGE in given_back.flags) == (not 0.9 <= (given_back.sg or 0) <= 1.3)
    if given_back.temp is not None:
        assert given_back.celsius == float(given_back.temp)


def test_a_calibration_survives_json_and_members_of_a_later_version() -> None:
    everything = Calibration((1.0, 0.002), "P", ((25.0, 1.0), (60.0, 1.06)), -0.002, 0.5, 20.0)
    members = json.loads(json.dumps(everything.to_dict()))
    assert Calibration.from_dict(members | {"curve_by_ai": 7}) == everything
    assert (Calibration().to_dict(), Calibration.from_dict({})) == ({}, Calibration())
    assert Calibration.from_dict({"corrected_at_c": 0}) == Calibration(corrected_at_c=0.0)
    assert not Calibration(corrected_at_c=0.0).is_identity
    assert Calibration(points=((25.0, 1.0),)).is_identity


@pytest.mark.parametrize(
    "members",
    [{"curve": 7}, {"curve": ["a"]}, {"points": [[1]]}, {"gravity_offset": "nan"}, {"temp_offset": True}],
)
def test_junk_is_no_calibration(members: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="set it again"):
        Calibration.from_dict(members)


@pytest.mark.parametrize(
    ("calibration", "says"),
    [
        (Calibration(gravity_offset=-2), r"between -0.1 and 0.1 SG, not -2"),
        (Calibration(temp_offset=68), r"between -20 and 20 °C, not 68"),
        (Calibration(corrected_at_c=68), r"between 0 and 50 °C, not 68"),
        (Calibration(gravity_offset=math.nan), "not nan"),
    ],
)
def test_mistyped_corrections_are_refused(calibration: Calibration, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        calibration.checked()
    usual = Calibration(gravity_offset=-0.002, temp_offset=0.5, corrected_at_c=15.56)
    assert usual.checked() is usual
