"""Forms: the texts of a request to a model, with an error for each field."""

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from multidict import MultiMapping

from gateway.domain.texts import decimal_digits
from gateway.domain.units import PLAUSIBLE_SG, plato_to_sg

NUMBER_CHARACTERS = 32
"""Characters of a typed number at most."""

_NUMBER = re.compile(r"[+\-\u2212]?[0-9]*[.,]?[0-9]+")
_WHOLE_SG = re.compile(r"[01][0-9]{3}")

PLATO = (-10.0, 60.0)
"""Degrees Plato that a person may type."""


class Form:
    """A form: a member for each field, with a default unless the field must be filled in.

    A member is the text as typed, or what the function in its annotation makes of it, as in
    `days: Annotated[int, whole] = 0`. The function raises `ValueError` with the key of a sentence.
    """

    # Not a pydantic model, because pydantic costs 6 MB, and the page is all that a small gateway has of it.

    checks: ClassVar[Mapping[str, Callable[[str], Any]]] = {}
    """The fields by their names, each with the function that makes its value of a text."""

    def __init_subclass__(cls) -> None:
        """Take the fields from the annotations."""
        cls.checks = {
            **cls.checks,
            **{name: getattr(hint, "__metadata__", (str,))[0] for name, hint in cls.__annotations__.items()},
        }

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


F = TypeVar("F", bound=Form)


@dataclass(slots=True)
class Filled(Generic[F]):
    """A form that was sent: the texts as typed, the model if they are right, the errors by field if not.

    An error is the key of a sentence in the catalogues.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    value: F | None = None
    errors: dict[str, str] = field(default_factory=dict)

    def wrong(self, name: str, key: str) -> None:
        """Note an error of a field that only the view could find."""
        self.errors[name] = key
        self.value = None


def read_form(model: type[F], fields: MultiMapping[str]) -> Filled[F]:
    """Check the fields of a request; a field that is blank counts as left out."""
    given = {name: fields[name] for name in dict.fromkeys(fields)}
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, check in model.checks.items():
        text = given.get(name, "").strip()
        try:
            if text:
                values[name] = check(text)
            elif not hasattr(model, name):
                errors[name] = "form.missing"
        except ValueError as error:
            errors[name] = str(error)
    return Filled(given, None, errors) if errors else Filled(given, model(**values), errors)


def among(allowed: Container[str]) -> Callable[[str], str]:
    """Return a check that lets these texts through."""

    def check(text: str) -> str:
        if text not in allowed:
            raise ValueError("form.wrong")
        return text

    return check


def at_most(characters: int) -> Callable[[str], str]:
    """Return a check that refuses a longer text."""

    def check(text: str) -> str:
        if len(text) > characters:
            raise ValueError("form.long")
        return text

    return check


def whole(text: str) -> int:
    """Return a number of decimal digits; `ValueError` for other text."""
    if not decimal_digits(text):
        raise ValueError("form.wrong")
    return int(text)


def decimal(text: str) -> float:
    """Return a number that was typed with a point or a comma; `ValueError` for other text."""
    text = text.strip()
    if len(text) > NUMBER_CHARACTERS or not _NUMBER.fullmatch(text):
        raise ValueError("form.not_a_number")
    return float(text.replace(",", ".").replace("\u2212", "-"))


class TypedGravity(NamedTuple):
    """A gravity: its text with a point, its unit `G` (SG) or `P` (Plato), and its specific gravity."""

    text: str
    unit: str
    sg: float


def gravity(text: str, unit: str) -> TypedGravity:
    """Read a typed gravity; `unit` is `SG` or `P`. As SG, `1,050`, `1.050` and `1050` are the same."""
    value = decimal(text)
    shown = text.strip().replace(",", ".").lstrip("+").replace("\u2212", "-")
    if unit == "P":
        if not PLATO[0] <= value <= PLATO[1]:
            raise ValueError("form.not_a_plato")
        return TypedGravity(shown, "P", plato_to_sg(value))
    if _WHOLE_SG.fullmatch(shown):
        value, shown = value / 1000, f"{shown[0]}.{shown[1:]}"
    low, high = PLAUSIBLE_SG
    if not low < value < high:
        raise ValueError("form.not_an_sg")
    return TypedGravity(shown, "G", value)


def moment(text: str, zone: tzinfo) -> int:
    """Return the Unix seconds of a local time, as a browser writes it: `2026-11-03T14:15`, or a day."""
    try:
        return int(datetime.fromisoformat(text.strip()).replace(tzinfo=zone).timestamp())
    except (ValueError, OverflowError):
        raise ValueError("form.not_a_time") from None


def local_input(at: float, zone: tzinfo) -> str:
    """Return the text of a `datetime-local` field for Unix seconds."""
    return f"{datetime.fromtimestamp(at, zone):%Y-%m-%dT%H:%M}"
