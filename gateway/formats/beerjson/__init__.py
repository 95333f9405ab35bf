"""Read BeerJSON 1.0 documents as recipes of BeerXML. The report lists losses.

Units are converted to BeerXML's units. Numbers that have such a unit already keep their digits.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.errors import InvalidInput, TooLarge
from gateway.formats import quantities as measures
from gateway.formats.beerjson import fields, strict_json
from gateway.formats.beerxml import RECIPES, ReadRecipe
from gateway.formats.beerxml.complete import CHANGES, Changes, completed
from gateway.formats.beerxml.elements import VERSION, Element, XmlRecord
from gateway.formats.beerxml.schema import RECORDS
from gateway.formats.beerxml.text import clean
from gateway.formats.beerxml.values import SHOWN, repaired, shown
from gateway.formats.readings.rows import NumberLiteral, shortest

DOCUMENT_BYTES = 4 * 1024 * 1024
"""The largest document: 100 large recipes."""

VERSIONS = {"1", "2", "2.01", "2.06"}
"""Versions that programs write into documents of BeerJSON 1.0."""

NO_PLACE = "has no place in BeerXML; left out"

Members = Mapping[str, Any]


def read(body: bytes, most_changes: int = CHANGES) -> list[ReadRecipe]:
    """Return the document's recipes. Reports about the whole document are with the first recipe."""
    if len(body) > DOCUMENT_BYTES:
        raise TooLarge(f"the document is larger than {DOCUMENT_BYTES} bytes")
    document = strict_json.loads(body)
    top = document.get("beerjson") if isinstance(document, dict) else None
    if not isinstance(top, dict):
        raise InvalidInput("the document has no member beerjson")
    recipes = top.get("recipes")
    if not isinstance(recipes, list):
        raise InvalidInput("the document has no recipes")
    if len(recipes) > RECIPES:
        raise TooLarge(f"the document has more than {RECIPES} recipes")
    first = [f"Document: {shown(name)} {NO_PLACE}" for name in top if name not in {"version", "recipes"}]
    if str(top.get("version")).removesuffix(".0") not in VERSIONS:
        first.append(f"Document: version {shown(str(top.get('version')))} is read as 1.0")
    found = []
    for number, recipe in enumerate(recipes, 1):
        if not isinstance(recipe, dict):
            raise InvalidInput(f"recipe {number} is not an object")
        changes = Changes(most_changes)
        record = completed(_recipe(recipe, changes), changes)
        found.append(ReadRecipe(record, first + changes.lines))
        first = []
    return found


def _recipe(recipe: Members, changes: Changes) -> XmlRecord:
    nested = {"ingredients", "style", "mash", "fermentation"}
    plain = {name: value for name, value in recipe.items() if name not in nested}
    record = _record("RECIPE", plain, "RECIPE", changes)
    record |= {set_name: [] for set_name, _ in fields.ADDITIONS.values()}
    ingredients = _object(recipe, "ingredients", "RECIPE", changes)
    for name, value in ingredients.items():
        if name not in fields.ADDITIONS:
            changes.add("RECIPE", f"ingredients.{name} {NO_PLACE}")
            continue
        set_name, item_name = fields.ADDITIONS[name]
        record[set_name] = _list(value, item_name, set_name, changes)
    style = _object(recipe, "style", "RECIPE", changes)
    if style:
        record["STYLE"] = _record("STYLE", style, "STYLE", changes)
    mash = _object(recipe, "mash", "RECIPE", changes)
    if mash:
        plain = {name: value for name, value in mash.items() if name != "mash_steps"}
        steps = _list(mash.get("mash_steps", []), "MASH_STEP", "MASH/MASH_STEPS", changes)
        record["MASH"] = _record("MASH", plain, "MASH", changes) | {"MASH_STEPS": steps}
    _stages(_object(recipe, "fermentation", "RECIPE", changes), record, changes)
    return record


def _object(parent: Members, name: str, where: str, changes: Changes) -> Members:
    value = parent.get(name)
    if value is not None and not isinstance(value, dict):
        changes.add(where, f"{name} is not an object; left out")
    return value if isinstance(value, dict) else {}


def _list(value: Any, name: str, path: str, changes: Changes) -> list[XmlRecord]:
    records = []
    for number, item in enumerate(value if isinstance(value, list) else [value], 1):
        where = f"{path}/{name} {number}"
        if not isinstance(item, dict):
            changes.add(where, "is not an object; left out")
            continue
        if isinstance(item.get("name"), str):
            where += f" ({' '.join(item['name'].split())[:SHOWN]})"
        records.append(_record(name, item, where, changes))
    return records


def _leaves(value: Members, path: str = "") -> Iterator[tuple[str, Any]]:
    """Return members by their path, objects taken apart down to measures, which have a unit and a value."""
    for name, member in value.items():
        if isinstance(member, dict) and not {"unit", "value"} <= member.keys():
            yield from _leaves(member, f"{path}{name}.")
        elif member not in (None, ""):
            yield path + name, member


def _record(name: str, source: Members, where: str, changes: Changes) -> XmlRecord:
    record: XmlRecord = {"VERSION": VERSION}
    timing: dict[str, Any] = {}
    for path, value in _leaves(source):
        field = fields.FIELDS[name].get(path)
        if path.startswith("timing."):
            timing[path.removeprefix("timing.")] = value
        elif field is None:
            changes.add(where, f"{path} {shown(_plain(value))} {NO_PLACE}")
        else:
            _put(record, name, field, value, where, changes)
    _timing(timing, record, name, where, changes)
    return record


def _plain(value: Any) -> str:
    """Return a member as text without units."""
    if isinstance(value, dict):
        return f"{_plain(value.get('value'))} {_plain(value.get('unit'))}"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, NumberLiteral):
        return shortest(value, "number")
    return clean(value) if isinstance(value, str) else "..."


def _put(record: XmlRecord, name: str, field: str, value: Any, where: str, changes: Changes) -> None:
    element = RECORDS[name][field]
    if isinstance(value, list):
        changes.add(where, f"{field} is a list; left out")
        return
    text = _plain(value)
    if isinstance(value, dict) and element.kind == "number":
        _put_measure(record, name, element, value, where, changes)
        return
    if type(value) is str and text != value:
        changes.add(where, f"{field}: characters that XML forbids are left out")
    if element.kind == "choice":
        choice, _, another = repaired(element, text)
        text = text if choice is None or another else choice
    record[field] = text


def _put_measure(
    record: XmlRecord, name: str, element: Element, value: Members, where: str, changes: Changes
) -> None:
    """Put a number with its unit into the record. Keep a unit that BeerXML lacks for display, too."""
    unit = _plain(value["unit"])
    number: str | None = None
    if isinstance(value["value"], NumberLiteral):
        sent = shortest(value["value"], element.name)
        converted = measures.in_unit(float(sent), unit, element.unit)
        if converted is not None:
            number = sent if converted == float(sent) else measures.text_of(converted)
    display = f"DISPLAY_{element.name}"
    if display in RECORDS[name] and number != _plain(value["value"]):
        record[display] = _plain(value)
    if number is None:
        wanted = element.unit or "a number"
        changes.add(where, f"{element.name} {shown(_plain(value))} cannot be converted to {wanted}; left out")
        return
    record[element.name] = number
    if element.unit == "kg or l":
        weight = measures.in_unit(1.0, unit, "kg") is not None
        record["AMOUNT_IS_WEIGHT"] = "TRUE" if weight else "FALSE"


def _timing(timing: dict[str, Any], record: XmlRecord, name: str, where: str, changes: Changes) -> None:
    """Put USE and TIME into the record: TIME is BeerJSON's duration, else the time of the addition."""
    use = timing.pop("use", None)
    if name in fields.USES and isinstance(use, str):
        record.setdefault("USE", fields.USES[name].get(use, use))
        if record["USE"] == "Primary" and timing.get("step") == "2":
            record["USE"] = "Secondary"
            timing.pop("step")
    elif name == "FERMENTABLE" and use in {"add_to_fermentation", "add_to_package"}:
        record["ADD_AFTER_BOIL"] = "TRUE"
    elif name == "YEAST" and timing.get("step") == "2":
        record["ADD_TO_SECONDARY"] = "TRUE"
        timing.pop("step")
    if "TIME" in RECORDS[name]:
        length = timing.pop("duration", None) or timing.pop("time", None)
        if length is not None:
            _put(record, name, "TIME", length, where, changes)
    for member, value in timing.items():
        changes.add(where, f"timing.{member} {shown(_plain(value))} {NO_PLACE}")


def _stages(fermentation: Members, record: XmlRecord, changes: Changes) -> None:
    """Put the first fermentation steps into the record: their lengths and the temperature at their start."""
    steps = fermentation.get("fermentation_steps")
    steps = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    for stage, step in zip(fields.STAGES, steps, strict=False):
        for member, ending in (("step_time", "AGE"), ("start_temperature", "TEMP")):
            if step.get(member) is not None:
                _put(record, "RECIPE", f"{stage}_{ending}", step[member], "RECIPE", changes)
    for number, step in enumerate(steps, 1):
        for path, value in _leaves(step):
            if number > len(fields.STAGES) or path not in {"step_time", "start_temperature"}:
                changes.add(f"fermentation step {number}", f"{path} {shown(_plain(value))} {NO_PLACE}")
    for name in fermentation:
        if name != "fermentation_steps":
            changes.add("RECIPE", f"fermentation.{name} {NO_PLACE}")
    if steps:
        record["FERMENTATION_STAGES"] = str(min(len(steps), len(fields.STAGES)))
