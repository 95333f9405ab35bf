import math
from datetime import UTC, datetime, timedelta, timezone

import pytest

from sample_devices.wire.numbers import arduino_json, ds18b20, fixed
from sample_devices.wire.tilt_pi import encode_uri, timepoint


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (52.33711, "52.33711"),
        (1.032741, "1.032741"),
        (19.8125, "19.8125"),
        (3.961264, "3.961264"),
        (-0.35, "-0.35"),
        (0.1, "0.1"),
        (-127.0, "-127"),
        (85.0, "85"),
        (0.0, "0"),
        (-0.0, "0"),
        (900, "900"),
        (9.9999999, "10"),
        (1234567.8, "1234568"),
        (1e7, "1e7"),
        (1.5e-7, "1.5e-7"),
        (math.nan, "null"),
        (math.inf, "null"),
        (-math.inf, "null"),
    ],
)
def test_arduino_json_numbers(value: float, text: str) -> None:
    assert arduino_json(value) == text


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (20.5625, 2, "20.56"),
        (1.045, 4, "1.0450"),
        (45.123, 3, "45.123"),
        (-2.1, 1, "-2.1"),
        (0.0, 1, "0.0"),
        (0.125, 2, "0.13"),  # dtostrf rounds halves away from zero, Python's own format to even
        (-273.0, 2, "-273.00"),
        (1e-9, 4, "0.0000"),
        (math.nan, 1, "nan"),
        (math.inf, 1, "inf"),
    ],
)
def test_fixed_decimals(value: float, decimals: int, text: str) -> None:
    assert fixed(value, decimals) == text


def test_probe_steps_are_sixteenths() -> None:
    assert ds18b20(19.80) == 19.8125
    assert ds18b20(-0.02) == 0


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("Malt & Hops", "Malt%20&%20Hops"),
        ("a+b#c;d,e/f?g:h@i=j$k", "a+b#c;d,e/f?g:h@i=j$k"),
        ("-_.!~*'()", "-_.!~*'()"),
        ('"<>[]^`{|}%\\', "%22%3C%3E%5B%5D%5E%60%7B%7C%7D%25%5C"),
        ("Kölsch 5€ 😀", "K%C3%B6lsch%205%E2%82%AC%20%F0%9F%98%80"),
    ],
)
def test_encode_uri_as_javascript_does(text: str, encoded: str) -> None:
    assert encode_uri(text) == encoded


@pytest.mark.parametrize(
    ("milliseconds", "offset_minutes", "serial"),
    # Computed with Node: ms / 1000 / 60 / 60 / 24 + 25569 - getTimezoneOffset() / 24 / 60
    [
        (1741977000000, 60, 45730.81249999999),
        (1741977000123, -480, 45730.43750142361),
        (1700000000999, 330, 45245.15510415509),
        (0, 0, 25569),
        (1720000000001, 120, 45476.49074075232),
    ],
)
def test_timepoint_is_the_local_spreadsheet_serial(
    milliseconds: int, offset_minutes: int, serial: float
) -> None:
    zone = timezone(timedelta(minutes=offset_minutes))
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    assert timepoint(moment.astimezone(zone)) == serial


def test_timepoint_is_refused_without_zone() -> None:
    with pytest.raises(ValueError, match="zone"):
        timepoint(datetime(2025, 3, 14))  # noqa: DTZ001 - the mistake under test
