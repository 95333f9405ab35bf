"""Gravities in SG, as BeerXML 1.0 has them, whatever unit a program wrote them in.

Programs that show degrees Plato or kg/m³ export the shown text: `12.5`, `12.5 °P`, `1050`, `1050 kg/m3`. A
named unit counts if the number makes sense in it, else the size of the number decides. Only a
final gravity leaves that open: 1.2 is a dry beer in Plato and a sweet one in SG, so there the original
gravity decides.
"""

from gateway.formats import quantities as measures
from gateway.formats.beerxml.elements import Element, XmlRecord
from gateway.formats.beerxml.values import Repair, repaired, shown

SG = "SG"
"""The unit of the elements that are gravities."""

SG_LEAST, SG_MOST = 0.9, 1.5
"""The range of an SG. Beyond it the number has another unit, or stands for nothing."""

PLATO_LEAST, PLATO_MOST = -3.0, 40.0
"""The range of a gravity in °P: a dry cider ends below 0, a strong mead begins near 40."""

KG_M3_PER_SG = 1000

SG_DECIMALS = 3
"""A final gravity with so many decimals, and more than its original gravity in Plato, is SG: 12.5, 1.012."""

ESTIMATE_DECIMALS = 4
"""Decimals of an estimate that was written in another unit; the estimate is text, for people."""


def is_sg(value: float) -> bool:
    """Return whether the value can be the SG of any beer, wine or mead."""
    return SG_LEAST < value < SG_MOST


def repaired_gravity(element: Element, text: str, record: XmlRecord) -> Repair:
    """Return the value of one of the record's gravities: SG, and for an estimate, free text with its unit."""
    parts = measures.split(text)
    if parts is None or not float(parts[0]):
        return repaired(element, text)
    number, unit = parts
    value = float(number)
    sg = measures.in_unit(value, unit, SG) if unit else None
    wrong = "is not in SG"
    if sg is None or not is_sg(sg):
        sg, wrong = _guessed(value, plato=_is_after_plato(element.name, number, record))
    if sg is None:
        return Repair(None, f"{shown(text)} {wrong}", keep=True)
    if sg == value:
        if element.kind == "text" or measures.is_plain(text.strip()):
            return repaired(element, text)
        return Repair(number, f"{shown(text)} is not a plain number")
    if element.kind == "text":
        return Repair(f"{measures.text_of(sg, ESTIMATE_DECIMALS)} {SG}", f"{shown(text)} {wrong}", keep=True)
    return Repair(measures.text_of(sg), f"{shown(text)} {wrong}", keep=True)


def _guessed(value: float, *, plato: bool) -> tuple[float | None, str]:
    """Return the SG of a number by its size, and its fault; `plato` if small numbers are °P, too."""
    if is_sg(value) and not plato:
        return value, ""
    if is_sg(value / KG_M3_PER_SG):
        return measures.in_unit(value, "kg/m3", SG), "is no SG; taken as kg/m3"
    if (PLATO_LEAST if plato else 0) < value <= PLATO_MOST:
        return measures.in_unit(value, "plato", SG), "is no SG; taken as Plato"
    return None, "is no gravity"


def _is_after_plato(name: str, number: str, record: XmlRecord) -> bool:
    """Return whether a final gravity belongs to an original gravity in Plato."""
    if "FG" not in name:
        return False
    names = (name.replace("FG", "OG"), "OG", "EST_OG")
    before = next((found for other in names if (found := record.get(other))), None)
    parts = measures.split(before) if isinstance(before, str) else None
    if parts is None or not SG_MOST <= float(parts[0]) <= PLATO_MOST:
        return False
    return _decimals(number) < SG_DECIMALS or _decimals(number) <= _decimals(parts[0])


def _decimals(number: str) -> int:
    return len(number.partition(".")[2])
