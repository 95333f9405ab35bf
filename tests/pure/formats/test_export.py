"""Exports, and that an import takes them back bit for bit."""

import csv
import io
import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.reading import EXTRA_MEMBERS, Reading
from gateway.errors import InvalidInput
from gateway.formats.readings import ImportContext, parse_csv
from gateway.formats.readings.csv_layout import HEADER, guarded, unguarded
from gateway.formats.readings.export import HEADER_LINE, line_of
from gateway.formats.readings.rows import LAST_SECOND
from gateway.network import written_address
from tests.cases import examples

CONTEXT = ImportContext(1_772_616_600.0, "")
FORMULA_BEGINNINGS = ("=", "+", "-", "@", "\t", "\r")
TEXT_COLUMNS = ("name", "comment", "beer", "interval", "source")


def reading(oid: str = "69a7fb98c0ffee0000000001", **members: Any) -> Reading:
    plain = Reading(
        oid=oid, created_at=1_772_616_600, received_at=0, name="GREEN", gravity="1.0410", gravity_unit="G",
        temp="66.5", temp_unit="F", comment="", beer="Porter", interval="46085.5", source="tilt", ip="",
        sg=None, celsius=None,
    )  # fmt: skip
    return plain._replace(**members)


ODD = st.text(alphabet="'=+-@\t\r\n\"\\, ;a\u00a0\u2028\ufeff\x01é\U0001f37a", max_size=6)
TEXT = ODD | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
NUMERALS = st.from_regex(
    r"[+-]?([0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9})([eE][+-]?[0-9]{1,2})?", fullmatch=True
)
LITERALS = st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,9})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
EXTRAS = st.dictionaries(
    st.sampled_from(EXTRA_MEMBERS),
    LITERALS
    | TEXT.map(lambda text: json.dumps(text, ensure_ascii=False))
    | st.sampled_from(["true", "false", "null"]),
    min_size=1,
).map(lambda said: ",".join(f'"{name}":{said[name]}' for name in EXTRA_MEMBERS if name in said))

READINGS = st.builds(
    Reading,
    oid=st.binary(min_size=12, max_size=12).map(bytes.hex),
    created_at=st.integers(0, LAST_SECOND),
    received_at=st.just(0),
    name=TEXT,
    gravity=NUMERALS | st.just(""),
    gravity_unit=st.sampled_from("GP"),
    temp=NUMERALS | st.just(""),
    temp_unit=st.sampled_from("CF"),
    comment=TEXT,
    beer=TEXT,
    interval=TEXT.filter(lambda text: bool(text) and not text.isspace()),
    source=TEXT,
    ip=st.just("") | st.ip_addresses().map(str).map(written_address),
    sg=st.none(),
    celsius=st.none(),
    facts=st.none(),
    flags=st.none(),
    extra=st.none() | EXTRAS.map(lambda said: f"{{{said}}}"),
    shown_gravity=st.none(),
    shown_temp=st.none(),
)
"""Whatever the store may hold: no import leaves an interval blank, nor does any device."""


@settings(max_examples=examples(1.5))
@given(reading=READINGS)
def test_the_line_of_a_reading_says_all_that_it_holds(reading: Reading) -> None:
    (again,) = parse_csv(HEADER_LINE + line_of(reading), CONTEXT)
    assert again._replace(received_at=0, sg=None, celsius=None) == reading


@settings(max_examples=examples(1.5))
@given(reading=READINGS)
def test_no_text_that_we_write_is_a_formula_to_a_spreadsheet(reading: Reading) -> None:
    _, cells = csv.reader(io.StringIO((HEADER_LINE + line_of(reading)).decode(), newline=""))
    texts = [cells[HEADER.index(name)] for name in TEXT_COLUMNS]
    assert not [text for text in texts if text.startswith(FORMULA_BEGINNINGS)]


def test_guarding_is_undone_exactly_and_only_where_it_must_be() -> None:
    for length in range(1, 5):
        for characters in product("'=-\t\r\n a", repeat=length):
            text = "".join(characters)
            cell = guarded(text)
            assert unguarded(cell) == text
            assert cell in {text, "'" + text}
    plain = ("", "Porter", "O'Hara", "'n", "a=1", " a", "≠", "½")
    assert [guarded(text) for text in plain] == list(plain)
    formulas = ("=1", "'", "''-1", "@x", " =1", "\u00a0=2", "\n+1", "＝1", "＠x", " －3", "﹢1", "' =1")
    assert [guarded(text) for text in formulas] == ["'" + text for text in formulas]
    assert [unguarded("'" + text) for text in formulas] == list(formulas)


def extra_in(cell: str, header: str = "_extra", more: str = "") -> str | None:
    quoted = cell.replace('"', '""')
    (found,) = parse_csv(f'temp,{header}\n1,"{quoted}"{more}\n'.encode(), CONTEXT)
    return found.extra


def test_the_extra_column_keeps_types_and_digits() -> None:
    assert extra_in('{"og":" 1","ph":4.40,"bpm":1E2,"heat_state":true,"psi":null}') == (
        '{"ph":4.40,"bpm":1E2,"psi":null,"heat_state":true,"og":" 1"}'
    )
    assert extra_in('{"ph":4.40,"gravity":7,"unknown":[]}', "_EXTRA") == '{"ph":4.40}'
    assert extra_in('{"unknown":1}') is None
    assert extra_in('{"ph":4.40,"bpm":1}', "_extra,ph", ",5") == '{"ph":"5","bpm":1}'


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("x", "_extra is not a JSON object: the body is neither a JSON array nor a JSON object"),
        ("[]", "_extra is not a JSON object"),
        ('[{"ph":1},{"ph":2}]', "_extra is not a JSON object"),
        ('{"ph":1,"ph":2}', "_extra is not a JSON object: A member comes twice in one object."),
        ('{"ph":NaN}', "_extra is not a JSON object: NaN is not JSON"),
        ('{"ph":"\\ud800"}', "_extra is not a JSON object: half a surrogate pair is no text"),
        ('{"ph":[1]}', "ph is neither text nor a number"),
        ('{"ph":1e999}', "ph is not a number"),
    ],
)
def test_what_is_wrong_with_the_extra_column_is_said_with_the_row(cell: str, told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        extra_in(cell)
    assert str(refused.value) == f"row 1: {told}"
