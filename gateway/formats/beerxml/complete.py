"""Make a recipe of any program valid BeerXML 1.0: repair its values, fill in missing required elements.

Completing a complete recipe changes nothing, so a recipe that was written reads back the same.
"""

from gateway.formats import formulas as estimates
from gateway.formats import quantities as measures
from gateway.formats.beerxml.elements import Element, XmlRecord, XmlValue
from gateway.formats.beerxml.gravities import SG, repaired_gravity
from gateway.formats.beerxml.schema import BEERSMITH_PREFIXES, RECORDS, YIELDS
from gateway.formats.beerxml.text import clean
from gateway.formats.beerxml.values import SHOWN, repaired
from gateway.formats.recipe_figures import figures

CHANGES = 200
"""The most lines of report per recipe. One more line has the number of the others."""

ALL_CHANGES = 100_000
"""The most lines if the user asks for all: more than any honest recipe has."""

LINE_CHARACTERS = 300
"""The most characters of a line of report: names of elements may be of any length."""


class Changes:
    """The changes of a recipe, one line each, at most `most`; changed values come first."""

    def __init__(self, most: int = CHANGES) -> None:
        self._most = most
        self._others: list[str] = []
        self._lines: list[str] = []
        self._more = 0

    def add(self, where: str, what: str, *, another: bool = False) -> None:
        """Note a change of an element's value or of a record; `another` if the meaning changed."""
        if len(self._others) + len(self._lines) < self._most:
            lines = self._others if another else self._lines
            lines.append(clean(f"{where}: {what}"[:LINE_CHARACTERS]))
        else:
            self._more += 1

    @property
    def lines(self) -> list[str]:
        """Return the report."""
        more = [f"... and {self._more} changes more"] if self._more else []
        return [*self._others, *self._lines, *more]


def completed(record: XmlRecord, changes: Changes) -> XmlRecord:
    """Return the recipe as valid BeerXML: known elements in the standard's order, others in theirs."""
    recipe = _record("RECIPE", record, "RECIPE", changes)
    estimated = figures(recipe).missing_in(recipe)
    if not estimated:
        return recipe
    changes.add("RECIPE", f"{', '.join(estimated)} filled in from the rest of it")
    whole = {**recipe, **estimated}
    order = (*RECORDS["RECIPE"], *(key for key in whole if key not in RECORDS["RECIPE"]))
    return {key: whole[key] for key in order if key in whole}


def _record(name: str, source: XmlRecord, where: str, changes: Changes) -> XmlRecord:
    return _Completion(name, source, where, changes).run()


class _Completion:
    """A record in the making: `record` grows in order, `kept` has old values that mean more than the new."""

    def __init__(self, name: str, source: XmlRecord, where: str, changes: Changes) -> None:
        self.name = name
        self.source = source
        self.where = where
        self.changes = changes
        self.record: XmlRecord = {}
        self.kept: XmlRecord = {}

    def run(self) -> XmlRecord:
        elements = RECORDS[self.name]
        for element in elements.values():
            value = self.valid(element)
            if value is not None:
                self.record[element.name] = value
        others = {key: value for key, value in self.source.items() if key not in elements}
        return self.record | {key: value for key, value in self.kept.items() if key not in others} | others

    def valid(self, element: Element) -> XmlValue | None:
        """Return the element's value, or None to leave the element out."""
        value = self.source.get(element.name)
        if element.kind == "set":
            return self.items(element, value)
        if element.kind != "record":
            return self.text(element, value)
        if isinstance(value, dict):
            return _record(element.record, value, element.name, self.changes)
        if element.default is None:
            return None
        self.changes.add(self.where, f"{element.name} is missing; written with defaults")
        return _record(element.record, {}, element.name, Changes())

    def items(self, element: Element, value: XmlValue | None) -> list[XmlRecord]:
        path = element.name if self.name == "RECIPE" else f"{self.where}/{element.name}"
        if not isinstance(value, list):
            self.changes.add(self.where, f"{element.name} is missing; written empty")
            return []
        records = []
        for number, item in enumerate(value, 1):
            label = f"{path}/{element.record} {number}"
            if not item:
                self.changes.add(label, "is empty; left out")
                continue
            own_name = item.get("NAME")
            if isinstance(own_name, str) and own_name.strip():
                label += f" ({' '.join(own_name.split())[:SHOWN]})"
            records.append(_record(element.record, item, label, self.changes))
        return records

    def text(self, element: Element, source: XmlValue | None) -> str | None:
        user_element = f"USER_{self.name}_{element.name}"
        if isinstance(source, str):
            source = clean(source)
            if element.unit == SG:
                value, wrong, keep = repaired_gravity(element, source, self.source)
            else:
                value, wrong, keep = repaired(element, source)
        else:
            value, wrong, keep = None, "is missing", False
        if value is None:
            value = self.default(element)
            if value is None and not isinstance(source, str):
                return None
        if keep and isinstance(source, str):
            self.kept[user_element] = source.strip()
        if wrong:
            written = "left out" if value is None else f"written as {value or 'empty'}"
            also = f", kept as {user_element}" if keep else ""
            self.changes.add(self.where, f"{element.name} {wrong}; {written}{also}", another=keep)
        return value

    def default(self, element: Element) -> str | None:
        """Return the text of an element without a value; None if the element is optional."""
        if element.default is None or (element.only and self.record.get("TYPE") not in element.only):
            return None
        own = self.source.get(BEERSMITH_PREFIXES[self.name] + element.name)
        if element.kind == "text" and isinstance(own, str) and own.strip():
            return clean(own)
        if (self.name, element.name) == ("RECIPE", "BOIL_SIZE"):
            return str(self.record["BATCH_SIZE"])
        if element.name == "YIELD":
            return self.usual_yield()
        return element.default

    def usual_yield(self) -> str:
        """Return percent of weight by the potential SG of a pound in a gallon, else by TYPE."""
        potential = measures.value_of(self.source.get("POTENTIAL")) or 0.0
        if 1 < potential < 1 + 2 * estimates.SUCROSE_PPG / 1000:
            return measures.text_of((potential - 1) * 100_000 / estimates.SUCROSE_PPG, 2)
        return YIELDS[str(self.record["TYPE"])]
