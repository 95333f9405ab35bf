"""The sample recipes as BeerXML documents, from `recipes.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from gateway.formats import beerxml
from gateway.formats.beerxml.elements import VERSION, XmlRecord, XmlValue

PhotoKind = Literal["glass", "fermenter", "hops"]
"""The motif of a photo."""


@dataclass(frozen=True, slots=True)
class SampleRecipe:
    """A recipe, its age, its folder, and the kinds of its photos."""

    record: XmlRecord
    made_days_ago: float
    photos: tuple[PhotoKind, ...]
    folder: str | None = None

    @property
    def title(self) -> str:
        """Return the recipe's name."""
        return str(self.record["NAME"])

    @property
    def colour_srm(self) -> float:
        """Return the colour of the beer."""
        return float(str(self.record["EST_COLOR"]).split()[0])

    def document(self) -> bytes:
        """Return the recipe as a BeerXML document of its own."""
        return beerxml.document([beerxml.write(self.record)])


def sample_recipes() -> list[SampleRecipe]:
    """Read all sample recipes, in the order of the file."""
    text = (resources.files("gateway.samples") / "recipes.toml").read_text("utf-8")
    data = tomllib.loads(text, parse_float=str)  # 1.050 stays 1.050
    return [_recipe(row, data) for row in data["RECIPE"]]


def _recipe(row: Mapping[str, Any], data: Mapping[str, Any]) -> SampleRecipe:
    said = {name: value for name, value in row.items() if name.isupper()}
    shared = {
        "EQUIPMENT": data["EQUIPMENT"][said["EQUIPMENT"]],
        "WATERS": [data["WATER"][name] for name in said["WATERS"]],
    }
    return SampleRecipe(
        record=_record({**said, **shared, **_figures(said)}),
        made_days_ago=row["made_days_ago"],
        photos=tuple(row["photos"]),
        folder=row.get("folder"),
    )


def _figures(said: Mapping[str, Any]) -> dict[str, str]:
    """Return a recipe's figures as BeerXML's elements for display have them."""
    return {
        "EST_OG": f"{said['OG']} SG",
        "EST_FG": f"{said['FG']} SG",
        "EST_ABV": str(said["ABV"]),
        "EST_COLOR": f"{said['EST_COLOR']} SRM",
        "IBU_METHOD": "Tinseth",
    }


def _record(said: Mapping[str, Any]) -> XmlRecord:
    return {"VERSION": VERSION, **{name: _value(value) for name, value in said.items()}}


def _value(value: Any) -> XmlValue:
    if isinstance(value, dict):
        return _record(value)
    if isinstance(value, list):
        return [_record(item) for item in value]
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(value)
