"""A recipe as a brewer reads it: record and ingredients as numbers, whatever program wrote them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway.domain.recipe import Ingredient, Recipe
from gateway.domain.units import PLAUSIBLE_SG
from gateway.formats import quantities

MASH, FIRST_WORT, BOIL, STAND, DRY = "mash", "first_wort", "boil", "stand", "dry"
"""The times at which hops are added, in the order of a brewing day."""

ORDER = (MASH, FIRST_WORT, BOIL, STAND, DRY)


@dataclass(frozen=True, slots=True)
class Vitals:
    """The figures of a recipe, None where it has none: SG, percent of alcohol, IBU, colour in SRM."""

    og: float | None
    fg: float | None
    abv: float | None
    ibu: float | None
    srm: float | None


@dataclass(frozen=True, slots=True)
class Malt:
    """A fermentable: its weight, its share of all in percent, its colour (SRM), and its kind as written."""

    name: str
    kg: float | None
    share: float | None
    srm: float | None
    kind: str


@dataclass(frozen=True, slots=True)
class Hop:
    """An addition of hops. `when` is one of `ORDER`; `time` is minutes, of dry hops days.

    `alpha` is percent, `use` and `form` are as written, `celsius` is the temperature of a hop stand.
    """

    name: str
    grams: float | None
    alpha: float | None
    when: str
    time: float | None
    use: str
    form: str
    ibu: float | None
    celsius: float | None


@dataclass(frozen=True, slots=True)
class Yeast:
    """A yeast: amount in grams or litres, attenuation in percent, and its range of temperatures (°C)."""

    name: str
    laboratory: str
    grams: float | None
    litres: float | None
    attenuation: float | None
    low_c: float | None
    high_c: float | None
    flocculation: str


@dataclass(frozen=True, slots=True)
class MashStep:
    """A step of the mash: kind and description as written, °C, minutes, and litres that are added."""

    kind: str
    description: str
    celsius: float | None
    minutes: float | None
    litres: float | None


@dataclass(frozen=True, slots=True)
class Other:
    """Anything else: amount in grams or litres, when it is used as written, and minutes."""

    name: str
    grams: float | None
    litres: float | None
    use: str
    minutes: float | None
    kind: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """A whole recipe. Volumes are litres; `is_us` means that its author measures in gallons and pounds."""

    vitals: Vitals
    method: str
    litres: float | None
    boil_litres: float | None
    boil_minutes: float | None
    efficiency: float | None
    is_us: bool
    malts: tuple[Malt, ...]
    hops: tuple[Hop, ...]
    yeasts: tuple[Yeast, ...]
    mash: tuple[MashStep, ...]
    others: tuple[Other, ...]


def vitals_of(record: Mapping[str, str | None]) -> Vitals:
    """Return the figures of a recipe's record."""
    scale = "plato" if record.get("sugar_scale") == "plato" else "SG"
    return Vitals(
        og=_gravity(record, "og", scale),
        fg=_gravity(record, "fg", scale),
        abv=_positive(record, "abv"),
        ibu=_number(record, "ibutinseth"),
        srm=_positive(record, "srmmorey"),
    )


def sheet_of(recipe: Recipe) -> Sheet:
    """Return the recipe as a brewer reads it."""
    record, ingredients = recipe.content.record, recipe.content.ingredients
    volume = record.get("batchsizeunit") or "l"
    return Sheet(
        vitals=vitals_of(record),
        method=_text(record, "brewmethod"),
        litres=_in(record, "batchsize", volume, "l"),
        boil_litres=_in(record, "boilsize", volume, "l"),
        boil_minutes=_positive(record, "boiltime"),
        efficiency=_positive(record, "efficiency"),
        is_us=record.get("displayunits") == "us",
        malts=_malts(ingredients.get("fermentables", ())),
        hops=tuple(sorted(map(_hop, ingredients.get("hops", ())), key=_hop_order)),
        yeasts=tuple(map(_yeast, ingredients.get("yeasts", ()))),
        mash=tuple(map(_step, ingredients.get("mashsteps", ()))),
        others=tuple(map(_other, ingredients.get("others", ()))),
    )


def _malts(rows: Iterable[Ingredient]) -> tuple[Malt, ...]:
    weights = [(row, _in(row, "amount", _text(row, "unit") or "kg", "kg")) for row in rows]
    total = sum(kg for _, kg in weights if kg is not None and kg > 0)
    malts = [
        Malt(
            name=_text(row, "name"),
            kg=kg,
            share=100 * kg / total if total and kg is not None and kg >= 0 else None,
            srm=_positive(row, "lovibond"),
            kind=_text(row, "type"),
        )
        for row, kg in weights
    ]
    return tuple(sorted(malts, key=lambda malt: -(malt.kg or 0)))


def _hop(row: Ingredient) -> Hop:
    use = _text(row, "hopuse")
    kilograms = _in(row, "amount", _text(row, "unit") or "g", "kg")
    return Hop(
        name=_text(row, "name"),
        grams=None if kilograms is None else kilograms * 1000,
        alpha=_positive(row, "aa"),
        when=_when(use),
        time=_number(row, "hoptime"),
        use=use,
        form=_text(row, "form"),
        ibu=_positive(row, "ibu"),
        celsius=_number(row, "hopstand_temp"),
    )


def _when(use: str) -> str:
    """Return the time of an addition by its use, which brewing programs write in many ways."""
    words = use.casefold()
    if "dry" in words or "ferment" in words:
        return DRY
    if "mash" in words:
        return MASH
    if "first" in words or "fwh" in words:
        return FIRST_WORT
    if any(word in words for word in ("aroma", "whirl", "stand", "steep", "flame", "hopback")):
        return STAND
    return BOIL


def _hop_order(hop: Hop) -> tuple[int, float, str]:
    return ORDER.index(hop.when), -(hop.time or 0.0), hop.name


def _yeast(row: Ingredient) -> Yeast:
    grams, litres = _amount(row)
    return Yeast(
        name=_text(row, "name"),
        laboratory=_text(row, "laboratory"),
        grams=grams,
        litres=litres,
        attenuation=_positive(row, "attenuation"),
        low_c=_number(row, "templo"),
        high_c=_number(row, "temphi"),
        flocculation=_text(row, "flocculation"),
    )


def _step(row: Ingredient) -> MashStep:
    minutes = _number(row, "mashtime")
    celsius = _number(row, "temp")
    return MashStep(
        kind=_text(row, "mashtype"),
        description=_text(row, "description"),
        celsius=_number(row, "steptemp") if celsius is None else celsius,
        minutes=_number(row, "steptime") if minutes is None else minutes,
        litres=_positive(row, "amount"),
    )


def _other(row: Ingredient) -> Other:
    grams, litres = _amount(row)
    return Other(
        name=_text(row, "name"),
        grams=grams,
        litres=litres,
        use=_text(row, "otheruse"),
        minutes=_positive(row, "othertime"),
        kind=_text(row, "othertype"),
    )


def _amount(row: Ingredient) -> tuple[float | None, float | None]:
    """Return an amount in grams or in litres; the other is None."""
    number, unit = _positive(row, "amount"), _text(row, "unit") or "g"
    if number is None:
        return None, None
    kilograms, litres = quantities.in_unit(number, unit, "kg"), quantities.in_unit(number, unit, "l")
    return None if kilograms is None else kilograms * 1000, litres


def _text(row: Mapping[str, str | None], name: str) -> str:
    return " ".join((row.get(name) or "").split())


def _number(row: Mapping[str, str | None], name: str) -> float | None:
    return quantities.value_of(row.get(name))


def _positive(row: Mapping[str, str | None], name: str) -> float | None:
    """Return a number above 0: many programs write 0 for a value that they do not have."""
    number = _number(row, name)
    return number if number is not None and number > 0 else None


def _in(row: Mapping[str, str | None], name: str, unit: str, wanted: str) -> float | None:
    number = _positive(row, name)
    return None if number is None else quantities.in_unit(number, unit, wanted)


def _gravity(record: Mapping[str, str | None], name: str, scale: str) -> float | None:
    number = _positive(record, name)
    sg = None if number is None else quantities.in_unit(number, scale, "SG")
    return sg if sg is not None and PLAUSIBLE_SG[0] < sg < PLAUSIBLE_SG[1] else None
