"""Lenient reading: repairs, numbers as text, and nothing but `DriverError` for whatever bytes come."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.device import Device
from gateway.domain.payload import Payload
from gateway.drivers import DRIVERS, decode, wire
from gateway.errors import DriverError
from gateway.normalise import normalise


def fields_of(body: bytes) -> wire.Fields:
    return wire.fields(Payload(body, 0.0, "test"))


@pytest.mark.parametrize(
    "body",
    [
        b'\xef\xbb\xbf{"a":1.50}',
        b'{"a":1.50}\x00',
        b'{"a":1.50}\r\n\r\n',
        b'{"a":1.50, }',
        b'{"a":1.50,"b":nan}',
        b'{"a":1.50,"b": -inf ,}',
        b'{"a":"1.50"}',
        b'{"a":"1,50"}',
        b"a=1.50&b",
        b"a=1%2E50",
    ],
)
def test_repairs(body: bytes) -> None:
    assert wire.numeral(fields_of(body), "a") == "1.50"


def test_repair_leaves_text_in_quotes_alone() -> None:
    fields = fields_of(b'{"name":"a, } nan,","x":"12","b":nan,}')
    assert (fields["name"], fields["x"], fields["b"]) == ("a, } nan,", "12", None)


@pytest.mark.parametrize(
    "text", ["", "null", "NaN", "1e999", "abc", "1.2.3", "--1", "٣", "9" * 40, "0x10", "1_0"]
)
def test_no_number(text: str) -> None:
    assert wire.numeral({"a": text}, "a") is None


@pytest.mark.parametrize("body", [b'{"a":1e999}', b'{"a":%s}' % (b"9" * 5000), b'{"a":true}', b'{"a":[1]}'])
def test_no_number_in_json(body: bytes) -> None:
    assert wire.numeral(fields_of(body), "a") is None


def test_ampersand_separates_only_in_front_of_a_known_key() -> None:
    assert wire.form("Beer=Malt%20&%20Hops&Color=RED&Comment", ("Beer", "Color", "Comment")) == {
        "Beer": "Malt & Hops",
        "Color": "RED",
        "Comment": "",
    }


BODIES = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")),
    st.dictionaries(
        st.sampled_from(
            [
                "name",
                "ID",
                "gravity",
                "temperature",
                "angle",
                "tilt",
                "SG",
                "Temp",
                "Color",
                "Timepoint",
                "interval",
            ]
        ),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(max_size=20),
            st.lists(st.integers()),
        ),
    ).map(lambda value: json.dumps(value).encode()),
)


@given(
    body=BODIES,
    driver=st.sampled_from([None, *(driver.name for driver in DRIVERS)]),
    query=st.text(max_size=30),
)
def test_any_bytes_give_reports_or_a_driver_error(body: bytes, driver: str | None, query: str) -> None:
    payload = Payload(body, 1_770_000_000.0, "test", driver, query=query)
    try:
        reports = decode(payload).reports
    except DriverError:
        return
    for report in reports:
        reading, _ = normalise(report, Device.first_seen(report, 0), payload)
        for text in (reading.gravity, reading.temp):
            assert text == "" or math.isfinite(float(text))
            assert json.loads(f'"{text}"') == text  # it is put between quotes by SQL
        assert reading.gravity_unit in "GP"
        assert reading.temp_unit in "CF"
        (reading.name + reading.comment + reading.beer).encode()
        json.loads(reading.facts or "{}")
