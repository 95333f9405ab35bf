"""Check members of a record as any service may send them, and return text; `InvalidInput` names the fault."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from gateway.domain.texts import NAME_CHARACTERS, decimal_digits
from gateway.errors import InvalidInput
from gateway.formats.readings.rows import LAST_SECOND

TEXT_CHARACTERS = 100_000
"""Characters of one text in a record at most."""

RECORD_CHARACTERS = 1_000_000
"""Characters of all texts in a record, and number of its values, at most."""


Record = Mapping[str, Any]


def checked(value: object) -> Record:
    """Return the record; it must be an object within bounds, without NUL and half surrogate pairs."""
    if not isinstance(value, dict):
        raise InvalidInput("not an object")
    total, pending = 0, [value]
    while pending:
        item: Any = pending.pop()
        total += 1
        if isinstance(item, str):
            total += len(item)
            if len(item) > TEXT_CHARACTERS:
                raise InvalidInput(f"a text of more than {TEXT_CHARACTERS} characters")
            if "\0" in item:
                raise InvalidInput("NUL is no text")
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise InvalidInput("half a surrogate pair is no text") from error
        elif isinstance(item, dict):
            pending += [*item, *item.values()]
        elif isinstance(item, list):
            pending += item
        if total > RECORD_CHARACTERS:
            raise InvalidInput(f"more than {RECORD_CHARACTERS} characters")
    return value


def record_id(value: object, name: str = "id") -> str | None:
    """Return a record's number as text; None for null, an empty text and 0."""
    text = text_of({name: value}, name)
    if text is None or not text.strip():
        return None
    if not decimal_digits(text.strip()):
        raise InvalidInput(f"{name} is no number")
    return str(int(text)) if int(text) else None


def text_of(record: Record, name: str) -> str | None:
    """Return a member that is text, a number or missing, as text."""
    value = record.get(name)
    if isinstance(value, dict | list):
        raise InvalidInput(f"{name} is not text")
    return plain(value)


def plain(value: object) -> str | None:
    """Return any value as records have it: text, or None."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, str):
        return str(value)  # also of a `NumberLiteral`, whose digits stay as they were sent
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def seconds(value: object) -> int | None:
    """Return Unix seconds of a time in UTC; None if it is missing or no time (`0000-00-00 00:00:00`)."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        whole = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None
    return whole if 0 <= whole <= LAST_SECOND else None


def folder_of(record: Record) -> str | None:
    """Return the name of the folder that a record is filed in; None without a folder."""
    name = (text_of(record, "folder_name") or "").strip()
    if len(name) > NAME_CHARACTERS:
        raise InvalidInput(f"folder_name has more than {NAME_CHARACTERS} characters")
    return name or None


def day_or(text: str | None, created_at: int) -> str:
    """Return the brewing day; without one, the day on which the brew session was made."""
    try:
        return date.fromisoformat((text or "").strip()).isoformat()
    except ValueError:
        return datetime.fromtimestamp(created_at, UTC).date().isoformat()
