import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.forward.readback import Attempt, days, missing
from tests.system.forward.bench import row_of


def sent(*rows: dict[str, Any]) -> list[str]:
    return [json.dumps(row) for row in rows]


def anew(row: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The same reading under an id that the target gave it."""
    return {**row, "_id": {"$oid": "f" * 24}, **members}


def test_for_a_copy_what_is_there_by_id_is_not_missing_whatever_else_it_says() -> None:
    assert missing(sent(row_of(1), row_of(2)), [{"_id": {"$oid": f"{2:024X}"}}]) == [0]


@pytest.mark.parametrize(
    ("there", "settled"),
    [
        ({}, True),
        ({"gravity": 1.05, "temp": " 66.50", "name": "x", "created_at": "2020-01-01"}, True),
        ({"gravity": "1.051"}, False),
        ({"gravity_unit": "P"}, False),
        ({"temp": ""}, False),
        ({"temp_unit": "C"}, False),
        ({"gravity": {}}, False),
    ],
)
def test_an_id_that_is_found_settles_a_sent_reading_only_if_it_says_the_same(
    there: dict[str, Any], settled: bool
) -> None:
    attempt = Attempt(sent(row_of(1), row_of(2)))
    found = {**row_of(1), **there}
    assert attempt.concerns(found)
    assert attempt.missing([found]) == ([1] if settled else [0, 1])


@pytest.mark.parametrize("there", [row_of(1), anew(row_of(1))], ids=["its id", "another id"])
def test_what_was_delivered_before_proves_nothing(there: dict[str, Any]) -> None:
    alike = {**row_of(1), "_id": {"$oid": "a" * 24}}
    attempt = Attempt(sent(alike), earlier=[(json.dumps(row_of(1)), None)])
    assert attempt.missing([there]) == [0]
    assert attempt.missing([there, {**alike, "_id": {"$oid": "e" * 24}}]) == []


@pytest.mark.parametrize(
    "members",
    [
        {"gravity": 1.05},
        {"gravity": " 1.0500 "},
        {"gravity_unit": "g"},
        {"temp": 66.5},
        {"created_at": "2026-01-31T22:53:21Z"},
        {"created_at": "2026-01-31 22:53:21"},
        {"created_at": "2026-02-01T00:53:21.900+02:00"},
        {"name": " GREEN"},
    ],
)
def test_spelling_does_not_matter(members: dict[str, Any]) -> None:
    row = row_of(1)
    assert row["created_at"] == "2026-01-31T22:53:21+00:00"
    assert missing(sent(row), [anew(row, **members)]) == []


@pytest.mark.parametrize(
    "members",
    [
        {"gravity": "1.051"},
        {"gravity": ""},
        {"gravity_unit": "P"},
        {"temp_unit": "C"},
        {"temp": "nan"},
        {"created_at": "2026-01-31T22:53:22+00:00"},
        {"name": "BLUE"},
    ],
)
def test_another_value_is_another_reading(members: dict[str, Any]) -> None:
    assert missing(sent(row_of(1)), [anew(row_of(1), **members)]) == [0]


@pytest.mark.parametrize("nothing", ["", " ", None])
def test_nothing_equals_nothing(nothing: object) -> None:
    assert missing(sent(row_of(1, gravity="")), [anew(row_of(1), gravity=nothing, gravity_unit="P")]) == []


def test_two_equal_readings_stay_two() -> None:
    rows = sent(row_of(1, oid="a" * 24), row_of(1, oid="b" * 24))
    found = row_of(1, oid="c" * 24)
    assert missing(rows, [found]) == [1]
    assert missing(rows, [found, row_of(1, oid="d" * 24)]) == []


def test_a_record_that_is_listed_twice_is_one() -> None:
    rows = sent(row_of(1, oid="a" * 24), row_of(1, oid="b" * 24))
    assert missing(rows, [row_of(1, oid="c" * 24)] * 2) == [1]


def test_a_reading_settled_by_its_id_does_not_stand_for_its_twin() -> None:
    rows = sent(row_of(1, oid="a" * 24), row_of(1, oid="b" * 24))
    assert missing(rows, [row_of(1, oid="b" * 24)]) == [0]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
MEMBERS = st.sampled_from(["_id", "name", "gravity", "gravity_unit", "temp", "temp_unit", "created_at"])
LIKENESSES = st.tuples(st.integers(0, 2), st.sampled_from(["1.050", "1.05", "1.060", ""]))


@given(st.lists(st.dictionaries(MEMBERS, JSON | st.just({"$oid": 5}), max_size=7), max_size=5))
def test_malformed_members_are_passed_over(found: list[dict[str, Any]]) -> None:
    assert missing(sent(row_of(1)), found) == [0]
    assert missing(sent(row_of(1)), [*found, row_of(1)]) == []


@given(st.lists(LIKENESSES, max_size=8), st.lists(LIKENESSES, max_size=8), st.sets(st.integers(0, 7)))
def test_against_a_naive_model(
    batch: list[tuple[int, str]], others: list[tuple[int, str]], known: set[int]
) -> None:
    """Readings with an id that came back are there; the others are crossed off one by one."""
    rows = [row_of(number, gravity=text, oid=f"a{place:023x}") for place, (number, text) in enumerate(batch)]
    found = [rows[place] for place in known if place < len(rows)]
    found += [
        row_of(number, gravity=text, oid=f"b{place:023x}") for place, (number, text) in enumerate(others)
    ]

    def model(number: int, text: str) -> tuple[int, float | None]:
        return number, float(text) if text else None

    stock = Counter(model(*other) for other in others)
    expected = []
    for place, item in enumerate(batch):
        if place in known:
            continue
        if stock[model(*item)]:
            stock[model(*item)] -= 1
        else:
            expected.append(place)
    assert missing(sent(*rows), found) == expected


def test_the_days_to_ask_for_are_a_day_wider_than_the_batch() -> None:
    rows = sent(
        row_of(1, created_at="2026-03-04T23:30:00-02:00"), row_of(2, created_at="2026-03-01T00:00:00+00:00")
    )
    first, last = days([json.loads(row) for row in rows])
    assert (first.isoformat(), last.isoformat()) == ("2026-02-28", "2026-03-06")


def test_the_days_of_clocks_that_are_far_out() -> None:
    rows = sent(
        row_of(1, created_at="0001-01-01T00:00:00+00:00"), row_of(2, created_at="9999-12-31T23:59:59+00:00")
    )
    first, last = days([json.loads(row) for row in rows])
    assert (first.isoformat(), last.isoformat()) == ("0001-01-01", "9999-12-31")
    assert days([row_of(1, created_at="never")])[0].year == 1
