import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain import units
from gateway.errors import GatewayError, InvalidInput, TooLarge
from gateway.formats import readings as formats
from gateway.formats.readings import ImportContext, parse_json

NOW = 1_772_616_600.75
CONTEXT = ImportContext(NOW, "198.51.100.7")
OID = "69a7fb98c0ffee0000000001"


def parse(document: Any) -> Any:
    return parse_json(document if isinstance(document, bytes) else json.dumps(document).encode(), CONTEXT)


def one(**members: Any) -> Any:
    (reading,) = parse([{"gravity": "1.041", **members}])
    return reading


def refusal(document: Any) -> str:
    with pytest.raises(InvalidInput) as refused:
        parse(document)
    return str(refused.value)


def test_empty_array_and_single_object() -> None:
    assert parse(b" [ ] ") == []
    assert parse({"comment": "pitched"})[0].comment == "pitched"


def test_defaults() -> None:
    reading = one()
    assert (reading.gravity_unit, reading.temp, reading.temp_unit) == ("G", "", "C")
    assert (reading.name, reading.beer, reading.comment, reading.source) == ("", "", "", "import")
    assert (reading.created_at, reading.received_at) == (1_772_616_600, 1_772_616_600_750)
    assert reading.interval == "46085.39583333333"
    assert reading.ip == "198.51.100.7"
    assert reading.oid.startswith("69a7fb98")
    assert (reading.sg, reading.celsius) == (1.041, None)
    assert (reading.facts, reading.flags, reading.extra) == (None, None, None)


def test_null_is_absent() -> None:
    names = (
        "_id",
        "temp",
        "gravity_unit",
        "temp_unit",
        "name",
        "beer",
        "comment",
        "interval",
        "source",
        "ip",
    )
    reading = one(**dict.fromkeys(names), created_at=None)
    assert (reading.source, reading.interval, reading.created_at) == ("import", "46085.39583333333", int(NOW))


@pytest.mark.parametrize(
    ("literal", "stored"),
    [
        ("18.5", "18.5"),
        ("18.50", "18.5"),
        ("1.0420000000000011", "1.0420000000000011"),
        ("1.06", "1.06"),
        ("13.0", "13"),
        ("13", "13"),
        ("-0.25", "-0.25"),
        ("2e1", "20"),
        ("1E-7", "0.0000001"),
        ("1e22", "10000000000000000000000"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ('" 65.41 "', "65.41"),
        ('"1.050"', "1.050"),
        ('"+1.05"', "+1.05"),
        ('".5"', ".5"),
        ('"1e1"', "1e1"),
        ('""', ""),
        ('"  "', ""),
        ("null", ""),
    ],
)
def test_number_is_text_in_shortest_form_and_text_is_as_sent(literal: str, stored: str) -> None:
    (reading,) = parse(f'[{{"comment":"x","gravity":{literal}}}]'.encode())
    assert reading.gravity == stored
    assert reading.sg == (float(stored) if stored else None)


@pytest.mark.parametrize(
    "literal",
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        '"NaN"',
        '"inf"',
        '"1e999"',
        '"1,05"',
        '"0x10"',
        '"1_0"',
        '"١"',
        '"1.0\\""',
        '"abc"',
        "true",
        "[]",
        "{}",
        "[1.05]",
        "9" * 5000,
        '"' + "9" * 401 + '"',
    ],
)
@pytest.mark.parametrize("member", ["gravity", "temp"])
def test_what_is_no_finite_number_is_refused_with_its_row(member: str, literal: str) -> None:
    body = f'[{{"gravity":1}},{{"temp":2}},{{"comment":"x","{member}":{literal}}}]'
    assert refusal(body.encode()) == f"row 3: {member} is not a number"


def test_units_in_any_case_are_stored_in_upper_case() -> None:
    reading = one(gravity=10.2, gravity_unit="p", temp=66.5, temp_unit=" f ")
    assert (reading.gravity_unit, reading.temp_unit) == ("P", "F")
    assert reading.sg == units.plato_to_sg(10.2)
    assert reading.celsius == units.fahrenheit_to_celsius(66.5)
    assert (one(gravity_unit="").gravity_unit, one(temp_unit="").temp_unit) == ("G", "C")


@pytest.mark.parametrize("unit", ["SG", "°P", "B", "F", 1, [], {}])
def test_other_gravity_units_are_refused(unit: Any) -> None:
    assert refusal({"gravity": 1, "gravity_unit": unit}) == "row 1: gravity_unit must be G or P"


@pytest.mark.parametrize("unit", ["°F", "K", "G", False])
def test_other_temperature_units_are_refused(unit: Any) -> None:
    assert refusal({"gravity": 1, "temp_unit": unit}) == "row 1: temp_unit must be C or F"


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        ("2026-03-04T09:30:00+00:00", 1_772_616_600),
        ("2026-03-04T09:30:00Z", 1_772_616_600),
        ("2026-03-04T20:30:00.999999+11:00", 1_772_616_600),
        ("2026-03-04 09:30:00", 1_772_616_600),
        ("2026-03-04T09:30:00", 1_772_616_600),
        (" 2026-03-04T09:30:00 ", 1_772_616_600),
        ("2026-03-04", 1_772_582_400),
        ("1970-01-01", 0),
        ("9999-12-31T23:59:59Z", 253_402_300_799),
        ("", int(NOW)),
    ],
)
def test_created_at_forms(sent: str, seconds: int) -> None:
    assert one(created_at=sent).created_at == seconds


@pytest.mark.parametrize("sent", ["yesterday", "2026-02-30", "04.03.2026", 1_772_616_600, 20260304, {}, True])
def test_other_times_are_refused(sent: Any) -> None:
    assert refusal([{"temp": 1}, {"temp": 1, "created_at": sent}]) == "row 2: created_at is not a time"


@pytest.mark.parametrize(
    "sent", ["1969-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"]
)
def test_times_beyond_four_digit_years_since_1970_are_refused(sent: str) -> None:
    assert refusal({"temp": 1, "created_at": sent}).startswith("row 1: created_at must lie")


def test_ids() -> None:
    assert one(_id={"$oid": OID}).oid == OID
    assert one(_id=OID).oid == OID
    malformed: Any
    for malformed in ({"$oid": "zz"}, {}, "", 7, [], {"$oid": 7}):
        reading = one(_id=malformed, created_at="2026-03-04T09:45:00Z")
        assert reading.oid.startswith("69a7ff1c")


def test_address_is_kept_where_it_is_one() -> None:
    assert one(ip="192.0.2.10").ip == "192.0.2.10"
    assert one(ip="2001:db8::1").ip == "2001:db8::1"
    assert one(ip="2001:DB8:0::1").ip == "2001:db8::1"
    assert one(ip="::ffff:127.0.0.1").ip == one(ip="::FFFF:7f00:1").ip == "127.0.0.1"
    other: Any
    for other in ("", "localhost", "192.0.2.300", 7, {}):
        assert one(ip=other).ip == "198.51.100.7"


def test_text_is_as_sent_and_numbers_become_text() -> None:
    reading = one(name=" =cmd\u202e\n", beer=7, comment="4\u20ac", interval=46085.50, source="")
    assert (reading.name, reading.beer, reading.comment) == (" =cmd\u202e\n", "7", "4\u20ac")
    assert (reading.interval, reading.source) == ("46085.5", "")
    assert one(interval="46085.50").interval == "46085.50"
    assert one(interval=" ").interval == "46085.39583333333"


@pytest.mark.parametrize("member", ["name", "beer", "comment", "interval", "source"])
@pytest.mark.parametrize("value", [[], {}, True])
def test_text_of_another_type_is_refused(member: str, value: Any) -> None:
    assert refusal({"gravity": 1, member: value}) == f"row 1: {member} is not text"


def test_something_must_be_said() -> None:
    told = "row 2: one of gravity, temp and comment is needed"
    assert refusal([{"temp": 1}, {"gravity": "", "temp": " ", "comment": " \t", "name": "x"}]) == told


def test_a_reading_that_has_its_id_may_say_nothing() -> None:
    (reading,) = parse([{"_id": {"$oid": OID}, "name": "x"}])
    assert (reading.oid, reading.gravity, reading.temp, reading.comment) == (OID, "", "", "")
    for other in ("69a7", {"$oid": 7}, None):
        assert "is needed" in refusal([{"_id": other, "name": "x"}])


def test_extras_are_kept_as_sent() -> None:
    reading = parse(
        b'{"temp":1,"ph":4.40,"angle":"","RSSI":-60,"bpm":null,"og":" 1.05","heat_state":true,"x":1}'
    )
    assert reading[0].extra == '{"ph":4.40,"RSSI":-60,"angle":"","bpm":null,"heat_state":true,"og":" 1.05"}'


@pytest.mark.parametrize("literal", ["1e999", "NaN", "-Infinity"])
def test_extras_are_finite(literal: str) -> None:
    assert refusal(f'{{"temp":1,"ph":{literal}}}'.encode()) == "row 1: ph is not a number"


def test_extras_are_text_or_numbers() -> None:
    assert refusal({"temp": 1, "ph": [4]}) == "row 1: ph is neither text nor a number"


def test_constants_are_no_json_even_where_they_are_ignored() -> None:
    assert refusal(b'[{"temp":1},{"temp":1,"unknown":NaN}]') == "row 2: NaN is not JSON"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"  ", b"7", b'"x"', b"null", b"true", b"gravity,temp", b"[", b"[1]", b"[[]]", b"[null]", b"[{}",
        b'[{"temp":1},]', b'[{"temp":1} {"temp":2}]', b'[{"temp":1}]]', b'{"temp":1}{"temp":1}',
        b'[{"temp":1',
        b"[,]", b'{"temp":01}', b"{'temp':1}", b'[{"temp":1}]\0', '[{"temp":1}]'.encode("utf-16"),
        '[{"temp":1}]'.encode("utf-16-le"), b'\xff[{"temp":1}]', b'{"name":"\xed\xa0\x80","temp":1}',
        b'{"name":"\xc3","temp":1}', b'{"name":"a\tb","temp":1}', b"[" * 200_000, b'{"temp":' * 200_000,
        b'[{"temp":1,"x":' + b"[" * 200_000, b"\xef\xbb\xbf\xef\xbb\xbf[]",
    ],
)  # fmt: skip
def test_what_is_not_the_json_we_take_is_refused(body: bytes) -> None:
    assert refusal(body)


def test_syntax_error_names_the_row() -> None:
    assert refusal(b'[{"temp":1},{"temp":}]').startswith("row 2: not JSON")
    assert refusal(b'[{"temp":1},{"temp":1').startswith("row 2: not JSON")
    assert refusal(b'[{"temp":1},7]') == "row 2: not an object"


@pytest.mark.parametrize("member", ["name", "comment", "ph", "unknown"])
@pytest.mark.parametrize("escape", ["\\ud83c", "\\uDF7A", "\\ud83c\\ud83c", "a\\u0000b"])
def test_half_characters_and_nul_are_refused(member: str, escape: str) -> None:
    assert refusal(f'[{{"temp":1}},{{"temp":1,"{member}":"{escape}"}}]'.encode()).startswith("row 2: ")
    assert refusal(f'[{{"temp":1}},{{"temp":1,"x":[{{"{escape}":1}}]}}]'.encode()).startswith("row 2: ")


def test_whole_pairs_and_escaped_backslashes_are_text() -> None:
    (reading,) = parse(b'{"temp":1,"name":"\\ud83c\\udf7a","beer":"\\\\u0000"}')
    assert (reading.name, reading.beer) == ("\U0001f37a", "\\u0000")


def test_byte_order_mark_is_dropped() -> None:
    (reading,) = parse(b'\xef\xbb\xbf{"gravity":1.050}')
    assert reading.gravity == "1.05"


def test_a_member_that_comes_twice_is_refused() -> None:
    assert refusal(b'[{"gravity":1.050,"gravity":1.040}]') == "row 1: A member comes twice in one object."


def test_ten_megabyte_number_is_refused_quickly() -> None:
    started = time.process_time()
    assert refusal(b'[{"gravity":' + b"1" * 10_000_000 + b"}]") == "row 1: gravity is not a number"
    assert time.process_time() - started < 2


def test_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "ROWS", 3)
    assert len(parse([{"temp": 1}] * 3)) == 3
    with pytest.raises(TooLarge):
        parse([{"temp": 1}] * 4)


def test_the_bounds_are_those_of_the_decisions() -> None:
    assert (formats.BODY_BYTES, formats.ROWS) == (10 * 1024 * 1024, 50_000)


def test_numbers_for_queries_are_never_infinite() -> None:
    pole = 258.6 * 258.2 / 227.1
    near = [pole, math.nextafter(pole, 0), math.nextafter(pole, 999), 1.7e308, -1.7e308]
    for plato in near:
        sg = one(gravity=plato, gravity_unit="P").sg
        assert sg is None or math.isfinite(sg)
    assert one(temp=1.7e308, temp_unit="F").celsius is None


@given(st.binary(max_size=200) | st.text(alphabet='[]{}",:0123456789.eE-+ntfaul\\ \n\ufeff').map(str.encode))
def test_any_bytes_give_readings_or_an_error_of_ours(body: bytes) -> None:
    try:
        readings = parse_json(body, CONTEXT)
    except GatewayError:
        return
    assert isinstance(readings, list)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
MEMBERS = (
    "_id",
    "ip",
    "name",
    "gravity",
    "gravity_unit",
    "temp",
    "temp_unit",
    "created_at",
    "interval",
    "ph",
)


@given(st.lists(st.dictionaries(st.sampled_from(MEMBERS), JSON_VALUES), max_size=3))
def test_any_json_gives_readings_or_an_error_that_names_the_row(items: list[dict[str, Any]]) -> None:
    try:
        readings = parse(items)
    except InvalidInput as error:
        told = str(error)
    else:
        told = f"row {len(readings)}"
        assert len(readings) == len(items)
    assert told.startswith("row ")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_shortest_form_means_the_same_number(value: float) -> None:
    reading = one(temp=value)
    assert float(reading.temp) == value
    assert "e" not in reading.temp.lower()
