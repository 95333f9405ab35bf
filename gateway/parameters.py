"""Query parameters as types: one place says what text is taken, and the API's document says the same."""

import re
from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from gateway.store.queries import Order

MAX_DIGITS = 15
"""Digits in a number of a request: enough for anything, small enough for SQLite's 64 bits."""

NO_RECORD = -1
"""An id that no record has, for one that is no number."""

TRUE_WORDS = frozenset({"true", "1", "yes"})
FALSE_WORDS = frozenset({"false", "0", "no", ""})

HUNDRED = 100.0
"""Percent."""

_NUMBER = re.compile(r"[0-9]{1,10}(\.[0-9]{1,10})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def decimal_digits(text: str) -> bool:
    """Whether the text is a whole number that fits."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        if not decimal_digits(value):
            raise ValueError("must be a whole number, 0 or more")
        return int(value)
    return value


def _pixels(value: Any) -> Any:
    if isinstance(value, str) and (not decimal_digits(value) or int(value) == 0):
        raise ValueError("must be a whole number of pixels, 1 or more")
    return int(value)


def _percent(value: Any) -> Any:
    if isinstance(value, str) and (_NUMBER.fullmatch(value) is None or not 0 <= float(value) <= HUNDRED):
        raise ValueError("must be a number from 0 to 100")
    return float(value)


def _id(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip()
        return int(text) if decimal_digits(text) else NO_RECORD
    return value


def _flag(value: Any) -> Any:
    if isinstance(value, str):
        word = value.lower()
        if word not in TRUE_WORDS | FALSE_WORDS:
            raise ValueError("must be true or false")
        return word in TRUE_WORDS
    return value


def _day(value: Any) -> Any:
    if isinstance(value, str):
        if _DAY.fullmatch(value) is None:
            raise ValueError("must be a day, YYYY-MM-DD")
        try:
            return date.fromisoformat(value)
        except ValueError as error:
            raise ValueError("is no day of the calendar") from error
    return value


def sort_by(*fields: str) -> BeforeValidator:
    """Reads `field:direction`: 1 or nothing is ascending, anything else descending, as clients expect."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        field, _, direction = value.partition(":")
        if field not in fields:
            raise ValueError(f"must be one of {', '.join(fields)}, then :1 or :-1")
        return Order(field, descending=direction not in {"", "1"})  # type: ignore[arg-type]

    return BeforeValidator(read)


Count = Annotated[int, BeforeValidator(_whole), WithJsonSchema({"type": "integer", "minimum": 0})]
"""How many of something."""

Number = Annotated[int, BeforeValidator(_whole), WithJsonSchema({"type": "integer", "minimum": 0})]
"""The id of something, where only a number will do."""

Pixels = Annotated[int, BeforeValidator(_pixels), WithJsonSchema({"type": "integer", "minimum": 1})]
"""A side of a picture."""

Percent = Annotated[
    float, BeforeValidator(_percent), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 100})
]
"""A share."""

Id = Annotated[int, BeforeValidator(_id), WithJsonSchema({"type": ["string", "integer"]})]
"""The id of a record; what is no number is the id of none."""

Flag = Annotated[
    bool, BeforeValidator(_flag), WithJsonSchema({"enum": ["true", "false", "1", "0", "yes", "no"]})
]
"""Yes or no, in any case."""

Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
"""A UTC day of the calendar."""

RecipeOrder = Annotated[
    Order,
    sort_by("created_at", "updated_at", "title"),
    WithJsonSchema({"type": "string", "pattern": "^(created_at|updated_at|title)(:-?[0-9]+)?$"}),
]
SessionOrder = Annotated[
    Order,
    sort_by("created_at", "updated_at", "batchcode"),
    WithJsonSchema({"type": "string", "pattern": "^(created_at|updated_at|batchcode)(:-?[0-9]+)?$"}),
]
