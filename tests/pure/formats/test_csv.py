import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import GatewayError, InvalidInput, TooLarge
from gateway.formats import readings as formats
from gateway.formats.readings import BODY_BYTES, ImportContext, parse_csv, readings_in

CONTEXT = ImportContext(1_772_616_600.0, "198.51.100.7")
OID = "69a7fb98c0ffee0000000001"
FULL_HEADER = (
    "_id,login_id,api_key,brewevent_id,recipe_id,ip,name,gravity,gravity_unit,temp,temp_unit,"
    "comment,beer,interval,created_at,source"
)


def parse(text: str) -> Any:
    return parse_csv(text.encode(), CONTEXT)


def refusal(text: str) -> str:
    with pytest.raises(InvalidInput) as refused:
        parse(text)
    return str(refused.value)


def test_full_layout() -> None:
    cells = f'{OID},99,secret,1,2,192.0.2.10,GREEN,1.0410,G,66.5,F,"a, ""b""\nc",Porter,46085.5'
    row = f"{cells},2026-03-04 09:30:00,meter"
    (reading,) = parse(f"{FULL_HEADER}\r\n{row}\r\n")
    assert (reading.oid, reading.ip, reading.name) == (OID, "192.0.2.10", "GREEN")
    assert (reading.gravity, reading.gravity_unit, reading.temp, reading.temp_unit) == (
        "1.0410",
        "G",
        "66.5",
        "F",
    )
    assert (reading.comment, reading.beer, reading.interval) == ('a, "b"\nc', "Porter", "46085.5")
    assert (reading.created_at, reading.source) == (1_772_616_600, "meter")


def test_any_order_any_case_unknown_columns_ignored_byte_order_mark_dropped() -> None:
    (reading,) = parse("\ufeffTEMP, Gravity ,weather,NAME\n20,1.05,rain,Cellar\n")
    assert (reading.temp, reading.temp_unit, reading.gravity, reading.name) == ("20", "C", "1.05", "Cellar")


def test_blank_cells_are_absent_members() -> None:
    (reading,) = parse(f"{FULL_HEADER},ph\n,,,,,,,1.05,,,,,,,,,\n")
    assert (reading.gravity_unit, reading.temp_unit, reading.source) == ("G", "C", "import")
    assert (reading.created_at, reading.ip, reading.extra) == (1_772_616_600, "198.51.100.7", None)


def test_blank_lines_are_skipped_and_not_counted() -> None:
    assert len(parse("\n\ngravity,temp\n\n1.05,\r\n   \r\n\n1.04,20")) == 2
    assert refusal("gravity\n\n1.05\n\n\nx\n") == "row 2: gravity is not a number"


@pytest.mark.parametrize("text", ["gravity", "gravity\n", "\ufeffgravity\r\n\r\n"])
def test_header_alone_is_an_empty_import(text: str) -> None:
    assert parse(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "there is no header row that names the columns; "),
        ("\n\n", "there is no header row that names the columns; "),
        ("GREEN,66.5,F\n", "the header row names no column of a reading: it has 'GREEN', '66.5', 'F'; "),
        ("Zeit,Wert\n1,2\n", "the header row names no column of a reading: it has 'Zeit', 'Wert'; "),
        ('[{"gravity":1}]', "the header row names no column of a reading: it has '[{\"gravity\":1}]'; "),
        (",".join("abcdefghij"), "it has 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' ...; "),
    ],
)
def test_a_header_without_a_known_column_is_named_beside_those_that_are(text: str, found: str) -> None:
    said = refusal(text)
    assert found in said
    assert said.endswith(
        "; known are created_at, gravity, gravity_unit, temp, temp_unit, name, beer, comment, SG, Color, "
        "Timepoint, Timestamp, Temp"
    )


def test_semicolons_and_decimal_commas_are_called_by_their_name() -> None:
    remedy = "`readings import --decimal-comma` takes semicolons and decimal commas"
    assert refusal("created_at;gravity\n2026-03-01;1,05\n").startswith(
        "the columns are separated by semicolons; "
    )
    assert remedy in refusal("a;b\n1;2\n")
    assert refusal("a\tb\n1\t2\n") == "the columns are separated by tabs; write commas between them"
    said = refusal('gravity,temp\n1.050,20\n"1,048",20\n')
    assert said.startswith("row 2: gravity '1,048' has a decimal comma; ")
    assert remedy in said
    assert parse('gravity,comment\n1.05,"1,5 g of hops"\n')[0].comment == "1,5 g of hops"


@pytest.mark.parametrize("sign", [";", "\t"])
def test_decimal_commas_are_taken_where_they_are_said(sign: str) -> None:
    lines = (
        "created_at;gravity;temp;comment;ph",
        "2026-03-01 18:00;1,050;-18,5;1,5 g;4,40",
        "2026-03-02;1.040;20;;",
    )
    body = "\n".join(lines).replace(";", sign).encode()
    first, second = readings_in(body, "csv", CONTEXT, decimal_comma=True)
    assert (first.gravity, first.temp, first.comment, first.extra) == (
        "1.050",
        "-18.5",
        "1,5 g",
        '{"ph":"4.40"}',
    )
    assert (second.gravity, second.temp) == ("1.040", "20")
    (quoted,) = readings_in(b'gravity,temp\n"1,050","18,5"\n', "csv", CONTEXT, decimal_comma=True)
    assert (quoted.gravity, quoted.temp) == ("1.050", "18.5")


@pytest.mark.parametrize("header", ["gravity,GRAVITY", "SG,sg", "Comment,comment", "Temp,Temp"])
def test_header_names_each_column_once(header: str) -> None:
    assert refusal(f"{header}\n1,1\n").endswith(" twice")


def test_wrong_column_count_names_the_row() -> None:
    assert refusal("gravity,temp\n1.05,20\n1.05\n") == "row 2: 1 columns, the header has 2"
    assert refusal("gravity,temp\n1,05,20\n") == (
        "row 1: 3 columns, the header has 2; "
        "a comma in a text needs quotation marks around the text, and numbers have points"
    )


@pytest.mark.parametrize("text", ['gravity\n"1.05\n', 'gravity\n"1.05"x\n'])
def test_broken_quoting_names_the_row(text: str) -> None:
    assert refusal(text).startswith("row 1: not CSV")


def test_a_cell_may_be_as_long_as_the_comment_of_a_json_body() -> None:
    assert parse("comment\n" + "x" * 200_000)[0].comment == "x" * 200_000
    assert refusal("comment\n" + "x" * (BODY_BYTES + 1)).startswith("row 1: not CSV: a cell of more than ")


def test_device_columns() -> None:
    (reading,) = parse(
        "Timestamp,Timepoint,SG,Temp,Color,Beer,Comment\n2026-03-04T09:30:00Z,46085.0,1.041,66.5,GREEN,Porter,hi\n"
    )
    assert (reading.gravity, reading.gravity_unit, reading.temp, reading.temp_unit) == (
        "1.041",
        "G",
        "66.5",
        "F",
    )
    assert (reading.name, reading.beer, reading.comment) == ("GREEN", "Porter", "hi")
    assert (reading.created_at, reading.interval) == (1_772_616_600, "46085.0")


def test_timepoint_alone_is_the_time_in_utc() -> None:
    (reading,) = parse("Timepoint,SG\n46085.39583333333,1.041\n")
    assert (reading.created_at, reading.interval) == (1_772_616_600, "46085.39583333333")


@pytest.mark.parametrize("timepoint", ["x", "1e999", "1", "1e300", "nan"])
def test_timepoint_that_must_be_a_time_but_is_none(timepoint: str) -> None:
    told = "row 1: Timepoint is not a day number of 1970 to 9999"
    assert refusal(f"Timepoint,SG\n{timepoint},1.041\n") == told
    assert parse(f"Timepoint,SG,created_at\n{timepoint},1.041,2026-03-04\n")[0].interval == timepoint


def test_own_columns_win_over_device_columns() -> None:
    header = "SG,Temp,Color,gravity,gravity_unit,temp,temp_unit,name"
    filled, blank = parse(f"{header}\n1.041,66.5,GREEN,10.2,P,19.2,C,Cellar\n1.041,66.5,GREEN,,P,,,\n")
    assert (filled.gravity, filled.gravity_unit, filled.temp, filled.temp_unit) == ("10.2", "P", "19.2", "C")
    assert filled.name == "Cellar"
    assert (blank.gravity, blank.gravity_unit, blank.temp, blank.temp_unit) == ("1.041", "G", "66.5", "F")
    assert blank.name == "GREEN"


def test_device_temperature_may_say_its_unit() -> None:
    assert parse("Temp,temp_unit\n20,C\n")[0].temp_unit == "C"


def test_extras_are_text() -> None:
    (reading,) = parse("temp,ph,rssi\n20,4.40,-60\n")
    assert reading.extra == '{"ph":"4.40","RSSI":"-60"}'


def test_one_apostrophe_in_front_of_a_formula_is_taken_off() -> None:
    (reading,) = parse("name,comment,beer,interval,source\n'=1+1,''-x,'n Bier,'+1,'\n")
    assert (reading.name, reading.comment, reading.beer) == ("=1+1", "'-x", "'n Bier")
    assert (reading.interval, reading.source) == ("+1", "")


def test_bad_characters() -> None:
    assert refusal("comment\nx\na\0b\n") == "row 2: NUL is no text"
    with pytest.raises(InvalidInput, match="UTF-8"):
        parse_csv(b"comment\n\xff\n", CONTEXT)


def test_too_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "ROWS", 3)
    assert len(parse("temp\n1\n2\n3\n")) == 3
    with pytest.raises(TooLarge):
        parse("temp\n1\n2\n3\n4\n")


@given(st.text(alphabet='temp,SGgravityTimepoint\n\r" 1.0\0\ufeff'))
def test_any_text_gives_readings_or_an_error_of_ours(text: str) -> None:
    for body in (text, f"SG,Temp,Timepoint\n{text}"):
        with contextlib.suppress(GatewayError):
            assert isinstance(parse(body), list)
