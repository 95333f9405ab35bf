"""Forms: the texts of a request to a model, with an error for each field."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Generic, TypeVar

from multidict import MultiMapping
from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.domain.units import PLAUSIBLE_SG, plato_to_sg

NUMBER_CHARACTERS = 32
"""Characters of a typed number at most."""

_NUMBER = re.compile(r"[+\-\u2212]?[0-9]*[.,]?[0-9]+")
_WHOLE_SG = re.compile(r"[01][0-9]{3}")

PLATO = (-10.0, 60.0)
"""Degrees Plato that a person may type."""


class Form(BaseModel):
    """A form. Values are texts as typed; a validator raises `ValueError` with the key of a sentence."""

    model_config = ConfigDict(frozen=True, extra="ignore", str_strip_whitespace=True, defer_build=True)


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
    present = {
        name: value.strip() for name, value in given.items() if name in model.model_fields and value.strip()
    }
    try:
        return Filled(given, model.model_validate(present))
    except ValidationError as error:
        errors: dict[str, str] = {}
        for found in error.errors(include_url=False, include_input=False):
            name = str(found["loc"][0]) if found["loc"] else ""
            reason = str(found.get("ctx", {}).get("error", ""))
            missing = "form.missing" if found["type"] == "missing" else "form.wrong"
            errors.setdefault(name, reason if found["type"] == "value_error" else missing)
        return Filled(given, None, errors)


def decimal(text: str) -> float:
    """Return a number that was typed with a point or a comma; `ValueError` for other text."""
    text = text.strip()
    if len(text) > NUMBER_CHARACTERS or not _NUMBER.fullmatch(text):
        raise ValueError("form.not_a_number")
    return float(text.replace(",", ".").replace("\u2212", "-"))


@dataclass(frozen=True, slots=True)
class TypedGravity:
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
