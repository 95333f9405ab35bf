"""An element of BeerXML, and the choices of some elements, with other programs' words for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Union

XmlValue = Union[str, "XmlRecord", list["XmlRecord"]]
XmlRecord = dict[str, XmlValue]
"""A record by element: text, a nested record, or the records of a record set.

Outside the standard, a list is an element that occurs more than once, and the key "" is the text of an
element beside its children, or of an element that occurs more than once.
"""

Kind = Literal["text", "number", "integer", "boolean", "choice", "record", "set"]

UNKNOWN = "Unknown"
"""The name of a nameless record."""

VERSION = "1"
"""VERSION of every record of BeerXML 1.0."""


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a record.

    `default` is None if the element is optional; `only` are the values of TYPE that alone make it required.
    `unit` is a key of `quantities.FACTORS`, or "" for a plain number; `record` is the record inside.
    `synonyms` go from lower-case letters and digits to a choice.
    """

    name: str
    kind: Kind = "text"
    default: str | None = None
    unit: str = ""
    only: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    synonyms: Mapping[str, str] | None = None
    record: str = ""


def texts(names: str) -> tuple[Element, ...]:
    """Make optional elements of free text; blanks separate names, here and below."""
    return tuple(Element(name) for name in names.split())


def numbers(names: str, unit: str = "", default: str | None = None) -> tuple[Element, ...]:
    """Make elements of decimal numbers in one unit, required if there is a default."""
    return tuple(Element(name, "number", default, unit) for name in names.split())


def integers(names: str) -> tuple[Element, ...]:
    """Make optional elements of whole numbers."""
    return tuple(Element(name, "integer") for name in names.split())


def booleans(names: str) -> tuple[Element, ...]:
    """Make optional elements of TRUE or FALSE."""
    return tuple(Element(name, "boolean") for name in names.split())


def _choice(name: str, choices: str, synonyms: str, default: str | None = None) -> Element:
    """Make an element of choices. "|" separates choices and groups of synonyms: `Choice = word word`."""
    meanings: dict[str, str] = {}
    for group in filter(None, synonyms.split("|")):
        choice, _, words = group.partition("=")
        meanings |= dict.fromkeys(words.split(), choice.strip())
    allowed = tuple(choices.split("|"))
    return Element(name, "choice", default, choices=allowed, synonyms=meanings)


def record(name: str, *rows: Element | tuple[Element, ...]) -> dict[str, Element]:
    """Make a record's elements by name, in order, NAME and VERSION first; `name` is for a nameless record."""
    elements = [Element("NAME", default=name), Element("VERSION", "integer", VERSION)]
    for row in rows:
        elements += [row] if isinstance(row, Element) else row
    return {element.name: element for element in elements}


HOP_USE = _choice(
    "USE",
    "Boil|Dry Hop|Mash|First Wort|Aroma",
    "Aroma = whirlpool hopstand steep steeping flameout knockout aromasteep hopback 0min"
    "|First Wort = fwh firstworthop firstworthopping"
    "|Dry Hop = dryhopping fermentation fermenter primary secondary keg bottling package packaging"
    "|Boil = kettle bittering flavor flavour|Mash = mashhop mashhopping mashing",
    "Boil",
)
HOP_TYPE = _choice("TYPE", "Bittering|Aroma|Both", "Both = dual dualpurpose aromabittering bitteringaroma")
HOP_FORM = _choice(
    "FORM", "Pellet|Plug|Leaf", "Leaf = whole wholeleaf leafwhole leafwet wet cone fresh|Pellet = t90 t45"
)
FERMENTABLE_TYPE = _choice(
    "TYPE",
    "Grain|Sugar|Extract|Dry Extract|Adjunct",
    "Grain = malt basemalt mash|Sugar = honey syrup|Adjunct = fruit juice other flaked"
    "|Extract = liquidextract lme liquidmaltextract|Dry Extract = dme drymaltextract spraymalt",
    "Grain",
)
YEAST_TYPE = _choice(
    "TYPE",
    "Ale|Lager|Wheat|Wine|Champagne",
    "Wheat = hefeweizen|Ale = brett kveik bacteria lacto pedio mixedculture spontaneous belgian other saison",
    "Ale",
)
YEAST_FORM = _choice("FORM", "Liquid|Dry|Slant|Culture", "Culture = dregs slurry|Dry = powder", "Liquid")
YEAST_FLOCCULATION = _choice(
    "FLOCCULATION",
    "Low|Medium|High|Very High",
    "Low = verylow|Medium = mediumlow lowmedium med average|High = mediumhigh highmedium",
)
MISC_TYPE = _choice(
    "TYPE", "Spice|Fining|Water Agent|Herb|Flavor|Other", "Flavor = flavour|Other = wood nutrient", "Other"
)
MISC_USE = _choice(
    "USE",
    "Boil|Mash|Primary|Secondary|Bottling",
    "Boil = flameout whirlpool kettle aroma|Mash = sparge water strike"
    "|Primary = fermentation fermenter|Bottling = package packaging keg kegging",
    "Boil",
)
STYLE_TYPE = _choice(
    "TYPE", "Lager|Ale|Mead|Wheat|Mixed|Cider", "Ale = beer|Mixed = hybrid other|Mead = wine", "Ale"
)
MASH_STEP_TYPE = _choice(
    "TYPE",
    "Infusion|Temperature|Decoction",
    "Infusion = strike sparge flysparge batchsparge steep steeping mashin souringmash souringwort"
    "|Temperature = rest ramp directheat vorlauf mashout drainmashtun direct",
    "Infusion",
)
RECIPE_TYPE = _choice(
    "TYPE", "Extract|Partial Mash|All Grain", "All Grain = biab|Partial Mash = partial minimash", "All Grain"
)
RECIPE_IBU_METHOD = _choice("IBU_METHOD", "Rager|Tinseth|Garetz", "")
