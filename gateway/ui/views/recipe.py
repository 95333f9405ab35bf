"""One recipe as a brewer reads it, with its photos and its brews."""

from typing import NamedTuple
from urllib.parse import quote

from aiohttp import hdrs, web

from gateway.domain.recipe import Recipe
from gateway.domain.texts import decimal_digits
from gateway.errors import NotFound
from gateway.formats.recipe_sheet import DRY, Hop, MashStep, Other, Sheet, Yeast, sheet_of
from gateway.ui.pages import Moved, Page, Row, Visit
from gateway.ui.views.recipe_texts import Amounts, Colour, VitalTexts, colour_of, day_text, vital_texts
from gateway.ui.views.recipes import folders_of
from gateway.ui.words import Quantity

BREWS = 20
"""Brews of a recipe that its page shows, the newest first."""

FILE_NAME_CHARACTERS = 60
"""Characters of a recipe's title in the name of its file."""


class MaltLine(NamedTuple):
    """A malt: share, weight, name, kind and colour."""

    share: Quantity
    weight: str
    name: str
    note: str
    colour: Colour | None


class HopLine(NamedTuple):
    """An addition of hops: when, how much, name, alpha acid and form, bitterness."""

    when: str
    weight: str
    name: str
    note: str
    ibu: str


class Line(NamedTuple):
    """Any other line: its main text, amounts or times beside it, and a note."""

    name: str
    facts: tuple[str, ...]
    note: str


class BrewLine(NamedTuple):
    """A brew that was made of the recipe."""

    label: str
    url: str
    day: str
    og: Quantity
    now: Quantity
    abv: Quantity


class RecipeSheet(NamedTuple):
    """The recipe as texts."""

    vitals: VitalTexts
    batch: tuple[tuple[str, str], ...]
    malts: tuple[MaltLine, ...]
    total: str
    hops: tuple[HopLine, ...]
    yeasts: tuple[Line, ...]
    mash: tuple[Line, ...]
    others: tuple[Line, ...]


async def show(visit: Visit) -> Page:
    """Show one recipe."""
    recipe = await own_recipe(visit)
    record = recipe.content.record
    folders = [("", visit.t("recipe.no_folder"))]
    folders += [(str(each.id), each.name) for each in await folders_of(visit)]
    parent = None
    if recipe.snapshot and recipe.parent_id:
        parent = await visit.store.recipes.get(recipe.parent_id)
    values = {
        "recipe_id": recipe.id,
        "sheet": _sheet(visit, sheet_of(recipe)),
        "style": " ".join(filter(None, (record.get("styleid"), record.get("stylename")))),
        "author": record.get("author") or "",
        "notes": record.get("notes") or "",
        "folder": recipe.folder_id or "",
        "folders": folders,
        "is_copy": recipe.snapshot,
        "parent": "" if parent is None else visit.url("recipe", id=parent.id),
        "photos": await visit.include("recipe.photos", id=recipe.id),
        "brews": await _brews(visit, recipe),
        "brew_it": visit.url("brews.new", query={"recipe": recipe.id}) if visit.has("brews.new") else "",
    }
    return Page("recipe.html", title_of(visit, recipe), values, menu="recipes")


async def own_recipe(visit: Visit) -> Recipe:
    """Return the recipe of the path; `NotFound` if the account has none with that id."""
    number = visit.path_id("id")
    recipe = await visit.store.recipes.get(number)
    if recipe is None or recipe.account_id != visit.viewer.account_id:
        raise NotFound(visit.t("recipe.not_found", number=str(number)))
    return recipe


def title_of(visit: Visit, recipe: Recipe) -> str:
    """Return the recipe's title, or words for one that has none."""
    return recipe.content.title or visit.t("recipe.untitled")


def _sheet(visit: Visit, sheet: Sheet) -> RecipeSheet:
    words, amounts = visit.words, Amounts(visit.words, is_us=sheet.is_us)
    batch = [
        (visit.t("recipe.batch"), amounts.volume(sheet.litres)),
        (visit.t("recipe.boil"), amounts.volume(sheet.boil_litres)),
        (visit.t("recipe.boil_time"), amounts.minutes(sheet.boil_minutes)),
        (visit.t("recipe.efficiency"), str(words.percent(sheet.efficiency))),
        (visit.t("recipe.method"), _known(visit, "recipe.method", sheet.method)),
    ]
    weights = [malt.kg for malt in sheet.malts if malt.kg is not None]
    return RecipeSheet(
        vitals=vital_texts(words, sheet.vitals),
        batch=tuple((label, text) for label, text in batch if text),
        malts=tuple(
            MaltLine(
                share=words.percent(malt.share),
                weight=amounts.weight(malt.kg),
                name=malt.name,
                note="" if malt.kind == "Grain" else _known(visit, "recipe.malt", malt.kind),
                colour=colour_of(words, malt.srm),
            )
            for malt in sheet.malts
        ),
        total=amounts.weight(sum(weights)) if len(weights) > 1 else "",
        hops=tuple(_hop(visit, amounts, hop) for hop in sheet.hops),
        yeasts=tuple(_yeast(visit, amounts, yeast) for yeast in sheet.yeasts),
        mash=tuple(_step(visit, amounts, step) for step in sheet.mash),
        others=tuple(_other(visit, amounts, other) for other in sheet.others),
    )


def _known(visit: Visit, place: str, word: str) -> str:
    """Return a word of a recipe in the viewer's language where the catalogue has it, else as written."""
    key = f"{place}.{word.casefold().replace(' ', '_')}"
    return visit.t(key) if visit.words.has(key) else word


def _hop(visit: Visit, amounts: Amounts, hop: Hop) -> HopLine:
    time = "" if not hop.time else amounts.minutes(hop.time * (1440 if hop.when == DRY else 1))
    temp = "" if hop.celsius is None else str(visit.words.temp(hop.celsius))
    alpha = (
        "" if hop.alpha is None else visit.t("recipe.alpha", percent=str(visit.words.percent(hop.alpha, 1)))
    )
    return HopLine(
        when=" ".join(filter(None, (visit.t(f"recipe.hop.{hop.when}"), time, temp))),
        weight=amounts.grams(hop.grams),
        name=hop.name,
        note=", ".join(filter(None, (alpha, _known(visit, "recipe.form", hop.form)))),
        ibu="" if hop.ibu is None else visit.words.number(hop.ibu, 1),
    )


def _yeast(visit: Visit, amounts: Amounts, yeast: Yeast) -> Line:
    words = visit.words
    facts = (
        [] if yeast.grams is None and yeast.litres is None else [amounts.either(yeast.grams, yeast.litres)]
    )
    if yeast.attenuation is not None:
        facts.append(visit.t("recipe.attenuation", percent=str(words.percent(yeast.attenuation))))
    if yeast.low_c is not None and yeast.high_c is not None:
        low, high = words.temp(yeast.low_c).number, str(words.temp(yeast.high_c))
        facts.append(visit.t("recipe.range", low=low, high=high))
    return Line(yeast.name, tuple(facts), yeast.laboratory)


def _step(visit: Visit, amounts: Amounts, step: MashStep) -> Line:
    facts = [str(visit.words.temp(step.celsius))] if step.celsius is not None else []
    if step.minutes:
        facts.append(amounts.minutes(step.minutes))
    if step.litres is not None:
        facts.append(visit.t("recipe.added", volume=amounts.volume(step.litres)))
    kind = _known(visit, "recipe.step", step.kind)
    return Line(step.description or kind, tuple(facts), kind if step.description else "")


def _other(visit: Visit, amounts: Amounts, other: Other) -> Line:
    facts = (
        [] if other.grams is None and other.litres is None else [amounts.either(other.grams, other.litres)]
    )
    use = _known(visit, "recipe.use", other.use)
    time = amounts.minutes(other.minutes)
    if use or time:
        facts.append(" ".join(filter(None, (use, time))))
    return Line(other.name, tuple(facts), _known(visit, "recipe.other", other.kind))


async def _brews(visit: Visit, recipe: Recipe) -> list[BrewLine]:
    """Return the newest brews of the recipe, with their figures."""
    newest = sorted(recipe.brew_sessions, reverse=True)[:BREWS]
    found = [await visit.store.sessions.get(number) for number, _ in newest]
    sessions = [each for each in found if each is not None and each.account_id == visit.viewer.account_id]
    figures = await visit.services.figures.of_all(sessions, visit.viewer.zone)
    words, lines = visit.words, []
    for session in sessions:
        its = figures[session.id]
        lines.append(
            BrewLine(
                label=session.batchcode,
                url=visit.url("brew", id=session.id) if visit.has("brew") else "",
                day=day_text(words, session.userdate),
                og=words.gravity(its.original.sg if its.original else None),
                now=words.gravity(its.gravity.value if its.gravity else None),
                abv=words.percent(its.abv, 1),
            )
        )
    return lines


async def download(visit: Visit) -> web.Response:
    """Give the recipe as a BeerXML document."""
    from gateway.formats import beerxml  # here, because it costs memory that most pages need not pay

    recipe = await own_recipe(visit)
    title = "".join(char if char.isalnum() or char in " -_" else " " for char in title_of(visit, recipe))
    name = " ".join(title.split())[:FILE_NAME_CHARACTERS].strip() or "recipe"
    plain = name.encode("ascii", "ignore").decode().strip() or "recipe"
    files = f"filename=\"{plain}.xml\"; filename*=UTF-8''{quote(name, safe='')}.xml"
    return web.Response(
        body=beerxml.document([recipe.content.beerxml]),
        headers={
            hdrs.CONTENT_TYPE: "application/xml; charset=UTF-8",
            hdrs.CONTENT_DISPOSITION: f"attachment; {files}",
            hdrs.CACHE_CONTROL: "private, no-cache",
        },
    )


async def file(visit: Visit) -> Moved:
    """Put a recipe into a folder, or into none."""
    recipe, given = await own_recipe(visit), visit.fields.get("folder", "")
    if given and not decimal_digits(given):
        raise NotFound
    filed = await visit.services.library.file(recipe, int(given) if given else None)
    stored = await visit.store.recipes.get(filed.id)
    name = "" if stored is None else stored.folder_name or ""
    notice = visit.t("recipe.filed", name=name) if name else visit.t("recipe.unfiled")
    return Moved(visit.url("recipe", id=recipe.id), notice)


async def ask_delete(visit: Visit) -> Page:
    """Ask whether a recipe is to be deleted."""
    recipe = await own_recipe(visit)
    values = {
        "question": visit.t("recipe.delete.ask", title=title_of(visit, recipe)),
        "explain": visit.t("recipe.delete.explain"),
        "action": visit.url("recipe.delete", id=recipe.id),
        "button": visit.t("recipe.delete"),
        "back": visit.url("recipe", id=recipe.id),
    }
    return Page("confirm.html", visit.t("recipe.delete"), values, menu="recipes")


async def delete(visit: Visit) -> Moved:
    """Delete a recipe; brews keep the copies that they took."""
    recipe = await own_recipe(visit)
    await visit.services.library.delete(recipe)
    return Moved(visit.url("recipes"), visit.t("recipe.deleted", title=title_of(visit, recipe)))


ROWS = (
    Row("GET", "/recipes/{id}", show, "recipe", "One recipe as a brewer reads it"),
    Row("GET", "/recipes/{id}/beerxml", download, "recipe.beerxml", "A recipe as BeerXML"),
    Row("POST", "/recipes/{id}/folder", file, "recipe.file", "Put a recipe into a folder", scope="admin"),
    Row("GET", "/recipes/{id}/delete", ask_delete, "recipe.ask_delete", "Ask before deleting", scope="admin"),
    Row("POST", "/recipes/{id}/delete", delete, "recipe.delete", "Delete a recipe", scope="admin"),
)
