"""Read BeerXML 1.0 documents as recipes, and write recipes as BeerXML, as api-decisions section 11 requires.

Every program has its own dialect. An invalid part is repaired and reported. A part outside the standard is
kept and written again. A valid part is written with the same text.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gateway.errors import InvalidInput, TooLarge
from gateway.formats.beerxml import tree
from gateway.formats.beerxml.complete import CHANGES, Changes, completed
from gateway.formats.beerxml.elements import Element, XmlRecord, XmlValue
from gateway.formats.beerxml.schema import RECORDS, SETS
from gateway.formats.beerxml.text import clean
from gateway.formats.beerxml.tree import DEPTH, ELEMENTS, Node

__all__ = [
    "DEPTH",
    "ELEMENTS",
    "RECIPES",
    "ReadRecipe",
    "XmlRecord",
    "XmlValue",
    "document",
    "read",
    "write",
]

RECIPES = 1000
"""The most recipes of one document."""

_INDENT = " "
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class ReadRecipe:
    """A recipe as valid BeerXML, and a line for each change that made it valid."""

    record: XmlRecord
    changes: list[str]


def read(document: bytes, most_changes: int = CHANGES) -> list[ReadRecipe]:
    """Return the document's recipes. Reports about the whole document are with the first recipe."""
    top, mended = tree.parse(document)
    others: list[str] = []
    nodes = list(_recipes(top, others))
    if len(nodes) > RECIPES:
        raise TooLarge(f"the document has more than {RECIPES} recipes")
    if not nodes and not any(root.key == "RECIPES" for root in top.children):
        raise InvalidInput("the document has no RECIPE")
    first = mended + [f"Document: {name} is not a recipe; left out" for name in dict.fromkeys(others)]
    recipes = []
    for node in nodes:
        changes = Changes(most_changes)
        record = completed(_record_of(node, "RECIPE", "RECIPE", changes), changes)
        recipes.append(ReadRecipe(record, first + changes.lines))
        first = []
    return recipes


def write(record: XmlRecord) -> str:
    """Write one RECIPE element, indented as in a document. Fill in the required elements that it lacks."""
    return "\n".join(_element("RECIPE", completed(record, Changes()), "RECIPE", _INDENT))


def document(recipes: Iterable[str]) -> bytes:
    """Write a document of RECIPE elements as `write` makes them."""
    lines = ('<?xml version="1.0" encoding="UTF-8"?>', "<RECIPES>", *recipes, "</RECIPES>", "")
    return "\n".join(lines).encode()


def _recipes(node: Node, others: list[str]) -> Iterator[Node]:
    """Yield RECIPE elements under the node at any depth; names of other records go to `others`."""
    for child in node.children:
        if child.key == "RECIPE":
            if {"F_R_NAME", "INGREDIENTS"} <= {element.key for element in child.children}:
                raise InvalidInput("this is BeerSmith's own format; export the recipe as BeerXML instead")
            yield child
        elif child.key in RECORDS or (child.key in SETS and child.key != "RECIPES"):
            others.append(child.key)
        else:
            yield from _recipes(child, others)


def _record_of(node: Node, name: str, where: str, changes: Changes) -> XmlRecord:
    """Return the record: elements of the standard in their place, all other elements as they are."""
    record: XmlRecord = {}
    others: list[Node] = []
    for child in node.children:
        element = RECORDS[name].get(child.key)
        if element is None:
            others.append(child)
            continue
        if child.attributes:
            changes.add(where, f"attributes of {element.name} are left out")
        _add_known(record, element, child, where, changes)
    if node.text.strip():
        changes.add(where, "text between its elements is left out")
    return record | _others(others)


def _add_known(record: XmlRecord, element: Element, node: Node, where: str, changes: Changes) -> None:
    present = record.get(element.name)
    value: XmlValue
    if element.kind == "set":
        path = element.name if where == "RECIPE" else f"{where}/{element.name}"
        items: list[XmlRecord] = []
        for child in node.children:
            if child.key == element.record:
                place = f"{path}/{child.key} {len(items) + 1}"
                items.append(_record_of(child, element.record, place, changes))
            else:
                changes.add(path, f"{child.name} is no {element.record}; left out")
        if node.text.strip():
            changes.add(path, "text between its records is left out")
        value = (present if isinstance(present, list) else []) + items
    elif present:
        changes.add(where, f"{element.name} came again; the first one is kept")
        return
    elif element.kind == "record":
        value = _record_of(node, element.record, element.name, changes)
    elif node.children:
        value = node.full_text()
        changes.add(where, f"{element.name} has elements in its text; written as text alone")
    else:
        value = node.text
    record[element.name] = value


def _others(nodes: Iterable[Node]) -> XmlRecord:
    """Return elements that the standard does not have, by name: see `XmlRecord`."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.name, []).append(node)
    record: XmlRecord = {}
    for name, same in found.items():
        if len(same) > 1:
            record[name] = [_other(node) for node in same]
        elif same[0].children:
            record[name] = _other(same[0])
        else:
            record[name] = same[0].text
    return record


def _other(node: Node) -> XmlRecord:
    if not node.children:
        return {"": node.text}
    own = node.text.strip()
    return ({"": own} if own else {}) | _others(node.children)


def _element(key: str, value: XmlValue, name: str, indent: str) -> Iterator[str]:
    """Return the lines of one element; `name` is the standard's record in it, "" for none."""
    if isinstance(value, str):
        yield f"{indent}<{key}>{_escaped(value)}</{key}>"
        return
    if isinstance(value, list) and not name:
        for item in value:
            yield from _element(key, item, name, indent)
        return
    inner = indent + _INDENT
    if isinstance(value, list):
        lines = [line for item in value for line in _element(name, item, name, inner)]
        own = ""
    else:
        own = _escaped(str(value.get("", "")))
        known: Mapping[str, Element] = RECORDS.get(name, {})
        lines = [
            line
            for child, item in value.items()
            if child
            for line in _element(child, item, known[child].record if child in known else "", inner)
        ]
    if lines:
        yield f"{indent}<{key}>{own}"
        yield from lines
        yield f"{indent}</{key}>"
    else:
        yield f"{indent}<{key}>{own}</{key}>"


def _escaped(text: str) -> str:
    return clean(text).translate(_ESCAPES)
