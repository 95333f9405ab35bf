"""A service's members become ours; what is hostile is named, what is merely odd is taken."""

from typing import Any

import pytest

from gateway.domain.recipe import INGREDIENT_KINDS
from gateway.errors import InvalidInput
from gateway.formats.readings.rows import NumberLiteral
from gateway.mirror.records import ENTRIES, reading_of, recipe_of, session_of
from gateway.mirror.validate import RECORD_CHARACTERS, TEXT_CHARACTERS
from tests.system.mirror.fake import recipe, row, session

NOW = 1_772_700_000
HUGE = "x" * (TEXT_CHARACTERS + 1)


def test_a_recipe_is_what_its_record_says() -> None:
    read = recipe_of(
        recipe(7, title="Porter", og=NumberLiteral("1.050"), viewcount=NumberLiteral("12"), public=True,
               ca2=None, odd=[1, {"a": "b"}], folder_name=" Dark ", group_id="g", copy_parent_id="3",
               hops=[{"name": "Saaz", "amount": NumberLiteral("30"), "form": None, "extra": {"a": 1}}]),
        55, NOW,
    )  # fmt: skip
    assert (read.id, read.parent_id, read.folder, read.deleted) == ("7", "3", "Dark", False)
    assert read.version == "2026-02-27 19:30:00"
    got = read.recipe
    assert (got.id, got.account_id, got.token, got.group_id) == (7, 55, "0000000000007", "g")
    assert (got.created_at, got.updated_at, got.snapshot) == (1_771_574_400, 1_772_220_600, False)
    record = got.content.record
    assert {name: record[name] for name in ("title", "og", "viewcount", "public", "ca2", "odd")} == {
        "title": "Porter", "og": "1.050", "viewcount": "12", "public": "1", "ca2": None,
        "odd": '[1,{"a":"b"}]',
    }  # fmt: skip
    assert not record.keys() & {"id", "copy_parent_id", "folder_name", "created_at", "hops", "recipetoken"}
    assert set(got.content.ingredients) == set(INGREDIENT_KINDS)
    assert got.content.ingredients["hops"] == [
        {"name": "Saaz", "amount": "30", "form": None, "extra": '{"a":1}'}
    ]


def test_a_session_is_what_its_record_says_and_goes_back_to_where_it_came_from() -> None:
    read = session_of(
        session(4101, recipeid="7302", totalwater=NumberLiteral("31.50"), source_ca=None, meter_active="1",
                device_reading='{"last_reading":{}}', device_id="901", session_notes="a\nb", folder_name="C"),
        "https://brew.example", 55, NOW,
    )  # fmt: skip
    got = read.session
    assert (read.id, read.recipe_id, read.folder) == ("4101", "7302", "C")
    assert (got.id, got.account_id, got.upstream, got.upstream_id) == (4101, 55, "https://brew.example", 4101)
    assert (got.batchcode, got.phase, got.userdate, got.notes) == (
        "B4101",
        "Conditioning",
        "2026-03-01",
        "a\nb",
    )
    assert got.details == {
        "totalwater": "31.50",
        "meter_active": "1",
        "device_reading": '{"last_reading":{}}',
        "device_id": "901",
    }


def test_a_reading_keeps_its_text() -> None:
    got = reading_of(row(5, gravity="1.0420000000000011", interval="", ph=NumberLiteral("4.40"), ip=""), NOW)
    assert (got.gravity, got.sg, got.interval, got.ip) == ("1.0420000000000011", 1.0420000000000011, "", "")
    assert (got.oid, got.extra, got.source) == (f"{5:024x}", '{"ph":4.40}', "meter")


def test_a_reading_without_any_value_is_kept_as_well() -> None:
    got = reading_of(row(5, gravity="", temp=None, comment=" "), NOW)
    assert (got.gravity, got.temp, got.comment) == ("", "", " ")


@pytest.mark.parametrize(
    ("stamps", "created_at", "updated_at"),
    [
        ({"created_at": None}, 1_772_220_600, 1_772_220_600),
        ({"updated_at": "0000-00-00 00:00:00"}, 1_771_574_400, 1_771_574_400),
        ({"created_at": "", "updated_at": "soon"}, NOW, NOW),
        ({"updated_at": "2026-02-27T20:30:00+01:00"}, 1_771_574_400, 1_772_220_600),
        ({"updated_at": "99999-01-01 00:00:00"}, 1_771_574_400, 1_771_574_400),
        ({"updated_at": "1869-01-01 00:00:00"}, 1_771_574_400, 1_771_574_400),
    ],
)
def test_times_that_are_none(stamps: dict[str, Any], created_at: int, updated_at: int) -> None:
    read = recipe_of(recipe(1, **stamps), 1, NOW)
    assert (read.recipe.created_at, read.recipe.updated_at) == (created_at, updated_at)
    assert read.version


def test_without_a_time_of_change_any_change_is_one() -> None:
    first, same, other = (
        recipe_of(recipe(1, updated_at=None, notes=notes), 1, NOW).version for notes in ("a", "a", "b")
    )
    assert first == same != other


HOSTILE: list[dict[str, Any]] = [
    {"id": None}, {"id": ""}, {"id": "0"}, {"id": "-1"}, {"id": "1.5"}, {"id": "../1"}, {"id": "9" * 16},
    {"id": ["1"]}, {"id": {}}, {"id": "1\x00"}, {"id": "١"}, {"folder_name": "x" * 201},
    {"folder_name": ["a"]}, {"created_at": {"a": 1}}, {"updated_at": [1]}, {"group_id": []},
    {"deleted": {}}, {"odd": "a\x00b"}, {"odd": "\ud800"}, {"odd": {"deep": ["a\x00b"]}}, {"od\x00d": ""},
    {"odd": HUGE}, {HUGE: "odd"}, {"odd": ["x"] * RECORD_CHARACTERS},
]  # fmt: skip


@pytest.mark.parametrize("odd", HOSTILE, ids=lambda odd: str(odd)[:30])
def test_hostile_records_are_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        recipe_of(recipe(1, **odd), 1, NOW)
    with pytest.raises(InvalidInput):
        session_of(session(1, **odd), "http://h", 1, NOW)


@pytest.mark.parametrize("value", [None, 1, "text", [], True, [recipe(1)]])
def test_what_is_no_object_is_refused(value: object) -> None:
    for read in (lambda: recipe_of(value, 1, NOW), lambda: session_of(value, "", 1, NOW)):
        with pytest.raises(InvalidInput, match="not an object"):
            read()
    with pytest.raises(InvalidInput, match="not an object"):
        reading_of(value, NOW)


@pytest.mark.parametrize(
    "odd",
    [
        {"title": ["a"]}, {"notes": {}}, {"copy_parent_id": "x"}, {"snapshot": {}}, {"hops": {}},
        {"hops": "Saaz"}, {"hops": ["Saaz"]}, {"hops": [None]}, {"hops": [{}] * (ENTRIES + 1)},
    ],
    ids=lambda odd: str(odd)[:30],
)  # fmt: skip
def test_hostile_recipes_are_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        recipe_of(recipe(1, **odd), 1, NOW)


@pytest.mark.parametrize(
    "odd",
    [
        {"batchcode": []},
        {"phase": {}},
        {"recipeid": "x"},
        {"userdate": []},
        {"session_notes": {}},
        {"source_ca": []},
    ],
    ids=str,
)
def test_hostile_sessions_are_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        session_of(session(1, **odd), "http://h", 1, NOW)


@pytest.mark.parametrize(
    "odd",
    [
        {"created_at": None}, {"created_at": " "}, {"created_at": "soon"}, {"created_at": ["a"]},
        {"created_at": NumberLiteral("1")}, {"gravity": "abc"}, {"gravity": "NaN"}, {"gravity": []},
        {"gravity": True}, {"gravity_unit": "Brix"}, {"temp_unit": "K"}, {"name": {}}, {"comment": []},
        {"comment": "\x00"}, {"beer": "\ud800"}, {"ph": [4]}, {"gravity": "9" * 500}, {"name": HUGE},
    ],
    ids=lambda odd: str(odd)[:30],
)  # fmt: skip
def test_hostile_readings_are_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        reading_of(row(1, **odd), NOW)


@pytest.mark.parametrize("oid", [None, "", "x" * 24, "12", [], {"$oid": 7}, {"$oid": "g" * 24}, {}])
def test_a_reading_without_a_proper_id_gets_one(oid: object) -> None:
    assert len(bytes.fromhex(reading_of(row(1, _id=oid), NOW).oid)) == 12
