"""Lenient reading: repairs, and numbers as text."""

import pytest

from gateway.domain.payload import Payload
from gateway.drivers import wire


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
