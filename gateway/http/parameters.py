"""Types of query parameters and body members: the check of each, and its description in OpenAPI."""

import re
from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from gateway.domain.texts import MAX_DIGITS, MAX_NUMBER, NAME_CHARACTERS, decimal_digits
from gateway.store.queries import Order

NO_NUL = r"^[^\u0000]*$"
NOT_BLANK = r"^[^\u0000]*[^\s\u0000][^\u0000]*$"

OBJECT_ID = r"^[0-9a-f]{24}$"

PATTERN_SAYS = {
    NO_NUL: "has a NUL in it",
    NOT_BLANK: "is blank, or has a NUL in it",
    OBJECT_ID: "is no _id of a reading: 24 digits from 0 to f",
}
"""The mistake of a text that does not match, by pattern."""

NEEDED = "x-needed"
"""Mark of a query parameter that a handler requires, because its own refusal says more than ours."""

NO_RECORD = -1
"""An id that no record has, instead of a text that is no number."""

TRUE_WORDS = frozenset({"true", "1", "yes"})
FALSE_WORDS = frozenset({"false", "0", "no", ""})

NEWEST_FIRST = {"created_at": False, "created_at:1": False, "created_at:+1": False, "created_at:-1": True}
"""The orders of readings."""

HUNDRED = 100.0
"""The highest share in percent."""

_PATH_PARAMETER = re.compile(r"\{(\w+)(?::([^}]*))?\}")
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def path_template(path: str) -> str:
    """Return a route's path without the patterns that only the router needs."""
    return _PATH_PARAMETER.sub(r"{\1}", path)


def path_parameters(path: str) -> list[dict[str, Any]]:
    """Return the OpenAPI description of the parameters in a route's path."""
    return [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(name, pattern)}
        for name, pattern in _PATH_PARAMETER.findall(path)
    ]


def _path_schema(name: str, pattern: str) -> dict[str, Any]:
    if pattern:
        return {"type": "string", "pattern": f"^{pattern}$"}
    if name.endswith("_id"):
        return {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER}
    return {"type": "string", "format": "uuid"} if name == "uuid" else {"type": "string"}


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        if not decimal_digits(value):
            raise ValueError("must be a whole number, 0 or more")
        return int(value)
    return value


def _record_number(value: Any) -> Any:
    """Read a whole number from text or from a number. Refuse a bool, although Python counts it as 0 or 1."""
    if isinstance(value, str):
        return _whole(value.strip())
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or not 0 <= value <= MAX_NUMBER:
        raise ValueError("must be a whole number, 0 or more, as a number or as text")
    return int(value)


def no_nul(text: str) -> str:
    """Refuse a NUL in a long text: with a pattern instead, programs need seconds to make up an example."""
    if "\0" in text:
        raise ValueError("has a NUL in it")
    return text


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
    if not isinstance(value, date):
        raise ValueError("must be a day, YYYY-MM-DD")  # noqa: TRY004 - pydantic passes a TypeError on
    return value


def _moment(value: Any) -> Any:
    """Convert an ISO time to Unix seconds; a time without a zone is UTC."""
    if not isinstance(value, str):
        raise ValueError("must be a time, such as 2026-03-01T18:30:00+01:00")  # noqa: TRY004 - as in `_day`
    try:
        moment = datetime.fromisoformat(value.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise ValueError("must be a time, such as 2026-03-01T18:30:00+01:00") from error


def _newest_first(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return NEWEST_FIRST[value.replace(" ", "+")]  # a plus sign in a query means a blank
        except KeyError:
            raise ValueError("must be created_at:1 or created_at:-1") from None
    return value


def sort_by(*fields: str) -> BeforeValidator:
    """Make a reader of `field:direction`: 1 or nothing ascends, anything else descends, as clients expect."""

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        field, _, direction = value.partition(":")
        if field not in fields:
            raise ValueError(f"must be one of {', '.join(fields)}, then :1 or :-1")
        return Order(field, descending=direction not in {"", "1"})  # type: ignore[arg-type]

    return BeforeValidator(read)


WHOLE = WithJsonSchema({"type": "integer", "minimum": 0, "maximum": MAX_NUMBER})

Count = Annotated[int, BeforeValidator(_whole), WHOLE]
"""A count: a whole number, 0 or more."""

Number = Count
"""A record id that must be a number."""

RecordNumber = Annotated[
    int,
    BeforeValidator(_record_number),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER},
                {"type": "string", "pattern": f"^[0-9]{{1,{MAX_DIGITS}}}$"},
            ]
        }
    ),
]
"""The id of a record in a body: a number, or text as the API itself gives it."""

Text = Annotated[str, Field(pattern=NO_NUL)]
"""Text without NUL; its length is bounded where it is used."""

Words = Annotated[str, Field(min_length=1, pattern=NOT_BLANK)]
"""Text that has no NUL and is not blank."""

Name = Annotated[Words, Field(max_length=NAME_CHARACTERS)]
"""A name that a person has given."""

ReadingId = Annotated[str, Field(pattern=OBJECT_ID)]
"""The `_id` of a reading."""

Pixels = Annotated[int, BeforeValidator(_pixels), WithJsonSchema({"type": "integer", "minimum": 1})]
"""The length of a side of a picture."""

Percent = Annotated[
    float, BeforeValidator(_percent), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 100})
]
"""A share in percent."""

Id = Annotated[int, BeforeValidator(_id), WithJsonSchema({"type": ["string", "integer"]})]
"""A record id. Text that is no number matches no record."""

Flag = Annotated[
    bool, BeforeValidator(_flag), WithJsonSchema({"enum": ["true", "false", "1", "0", "yes", "no"]})
]
"""True or false, as a word in upper or lower case."""

NewestFirst = Annotated[
    bool,
    BeforeValidator(_newest_first),
    WithJsonSchema({"enum": ["created_at:1", "created_at:-1"], "default": "created_at:1"}),
]
"""Whether the newest readings come first, from an order of readings."""

Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]
"""A UTC day of the calendar."""

Moment = Annotated[float, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time in ISO 8601; its value is in Unix seconds."""

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
