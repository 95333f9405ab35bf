"""Query parameters: which texts are taken, which are refused and in what words."""

from datetime import date
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from gateway.domain.texts import decimal_digits
from gateway.http.parameters import (
    NO_RECORD,
    Count,
    Day,
    Flag,
    Id,
    Number,
    Percent,
    Pixels,
    RecipeOrder,
    SessionOrder,
)
from gateway.store.queries import Order


def read(kind: Any, text: Any) -> Any:
    return TypeAdapter(kind).validate_python(text)


def complaint(kind: Any, text: str) -> str:
    with pytest.raises(ValidationError) as caught:
        read(kind, text)
    return caught.value.errors()[0]["msg"].removeprefix("Value error, ")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Count, "0", 0),
        (Count, "007", 7),
        (Count, "9" * 15, 10**15 - 1),
        (Number, "12", 12),
        (Pixels, "1", 1),
        (Pixels, "4096", 4096),
        (Percent, "0", 0.0),
        (Percent, "100", 100.0),
        (Percent, "100.0", 100.0),
        (Percent, "12.5", 12.5),
        (Percent, "1e1", 10.0),
        (Id, "7301", 7301),
        (Id, " 7301 ", 7301),
        (Id, "", NO_RECORD),
        (Id, "x", NO_RECORD),
        (Id, "-1", NO_RECORD),
        (Id, "1.0", NO_RECORD),
        (Id, "9" * 16, NO_RECORD),
        (Id, "٣", NO_RECORD),
        *((Flag, word, True) for word in ("true", "True", "TRUE", "1", "yes", "YES")),
        *((Flag, word, False) for word in ("false", "False", "0", "no", "No", "")),
        (Day, "2026-03-04", date(2026, 3, 4)),
        (Day, "2024-02-29", date(2024, 2, 29)),
        (Day, "0001-01-01", date(1, 1, 1)),
        (Day, "9999-12-31", date(9999, 12, 31)),
        (RecipeOrder, "title", Order("title", descending=False)),
        (RecipeOrder, "title:", Order("title", descending=False)),
        (RecipeOrder, "title:1", Order("title", descending=False)),
        (RecipeOrder, "updated_at:-1", Order("updated_at", descending=True)),
        (RecipeOrder, "created_at:0", Order("created_at", descending=True)),
        (RecipeOrder, "created_at:x:1", Order("created_at", descending=True)),
        (RecipeOrder, "created_at:01", Order("created_at", descending=True)),
        (SessionOrder, "batchcode:1", Order("batchcode", descending=False)),
    ],
)
def test_what_is_taken(kind: Any, text: str, value: Any) -> None:
    found = read(kind, text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "texts", "words"),
    [
        (
            Count,
            ["", "x", "-1", "+1", "1.5", "1e3", " 1", "1_0", "٣", "9" * 16],
            "must be a whole number, 0 or more",
        ),
        (Number, ["", "x", "-1", "9" * 16], "must be a whole number, 0 or more"),
        (Pixels, ["", "0", "00", "-1", "1.5", "x", "9" * 16], "must be a whole number of pixels, 1 or more"),
        (
            Percent,
            ["", "-1", "100.01", "101", "1e3", "nan", "inf", ".5", "5.", "٣"],
            "must be a number from 0 to 100",
        ),
        (Flag, ["2", "x", "on", "t", " true", "nope", "null"], "must be true or false"),
        (
            Day,
            ["", "x", "2026-3-4", "20260304", "2026-W10-3", " 2026-03-04", "٢026-03-04"],
            "must be a day, YYYY-MM-DD",
        ),
        (Day, ["2026-02-30", "2026-13-01", "0000-01-01"], "is no day of the calendar"),
        (
            RecipeOrder,
            ["", ":1", "Title", "batchcode:1", "title :1", "-title"],
            "must be one of created_at, updated_at, title, then :1 or :-1",
        ),
        (
            SessionOrder,
            ["title", "phase:1"],
            "must be one of created_at, updated_at, batchcode, then :1 or :-1",
        ),
    ],
)
def test_what_is_refused(kind: Any, texts: list[str], words: str) -> None:
    assert {text: complaint(kind, text) for text in texts} == dict.fromkeys(texts, words)


def test_digits() -> None:
    assert all(map(decimal_digits, ["0", "007", "9" * 15]))
    assert not any(map(decimal_digits, ["", "-1", "1.0", "٣", "²", "9" * 16, "1\n", " 1"]))
