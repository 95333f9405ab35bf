"""The JSON body of an import, for the API's description. `formats.readings` reads the body."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, RootModel
from pydantic.config import JsonDict

from gateway.http.endpoint import LATER, AnswerModel

NUMERAL = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"

Numeric = float | Annotated[str, Field(pattern=NUMERAL)]

SOMETHING: JsonDict = {"anyOf": [{"required": [name]} for name in ("gravity", "temp", "comment")]}


class GivenId(AnswerModel):
    """The identifier that the reading had before."""

    oid: str = Field(alias="$oid", pattern="^[0-9a-f]{24}$")


class ImportItem(AnswerModel):
    """A reading: a gravity, a temperature or a comment, and the other members as far as they are known.

    Further members (`ph`, `battery`, `RSSI` ...) are kept with the reading.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=SOMETHING)
    __pydantic_extra__: dict[str, str | float | bool | None]

    gravity: Numeric = Field(default="", description="A number, or one as text.")
    gravity_unit: Literal["G", "P", "g", "p", "", None] = Field(default=None, description="G without it.")
    temp: Numeric = Field(default="", description="A number, or one as text.")
    temp_unit: Literal["C", "F", "c", "f", "", None] = Field(default=None, description="C without it.")
    created_at: str | None = Field(
        default=None,
        description="ISO 8601, UTC where no zone is given; now without it.",
        json_schema_extra={"format": "date-time"},
    )
    comment: str = Field(default="", min_length=1)
    name: str | float | None = None
    beer: str | float | None = None
    interval: str | float | None = Field(default=None, description="From created_at without it.")
    source: str | float | None = Field(default=None, description="`import` without it.")
    ip: str | None = Field(default=None, description="The caller's where it is no address.")
    id: GivenId | None = Field(
        default=None, alias="_id", description="Replaces the session's reading that has it."
    )


class ImportBody(RootModel[list[ImportItem] | ImportItem]):
    """Readings, or a single reading."""

    model_config = LATER
