"""The list of recipes, the import of recipe files, and the folders of recipes."""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from gateway.domain.folder import Folder
from gateway.domain.recipe import DOCUMENT_BYTES, Recipe
from gateway.domain.texts import NAME_CHARACTERS, NOT_TEXT, decimal_digits
from gateway.errors import NameTaken, NotFound, TooLarge
from gateway.formats.recipe_sheet import vitals_of
from gateway.services.recipe_files import ImportedFile
from gateway.store.queries import Order, RecipeSearch
from gateway.ui.forms import Filled, Form
from gateway.ui.pages import Answer, Moved, Page, Row, Visit
from gateway.ui.views.recipe_texts import VitalTexts, vital_texts

LISTED = 50
"""Recipes on one page of the list."""

FILES_BYTES = 5 * DOCUMENT_BYTES
"""Bytes of all files of one import."""

FILE_NAME_CHARACTERS = 255
"""Characters of a file's name that a report shows."""

SHOWN_CHANGES = 50
"""Mended things of one recipe that a report shows."""


class RecipeLine(NamedTuple):
    """A recipe in the list."""

    title: str
    url: str
    style: str
    folder: str
    vitals: VitalTexts
    brews: str


class Chip(NamedTuple):
    """A choice of the list: its words, its link, and whether it is the present one."""

    text: str
    url: str
    current: bool


class FolderLine(NamedTuple):
    """A folder, with the number of recipes in it."""

    id: int
    name: str
    filed: str


class MendedRecipe(NamedTuple):
    """An imported recipe: what was mended in it, a line each, in English."""

    title: str
    url: str
    changes: tuple[str, ...]
    summary: str
    more: str


class FileReport(NamedTuple):
    """A file of an import, with its recipes or its error."""

    filename: str
    error: str
    summary: str
    recipes: tuple[MendedRecipe, ...]


def _name(text: str) -> str:
    if len(text) > NAME_CHARACTERS or NOT_TEXT.search(text):
        raise ValueError("recipes.wrong.folder")
    return text


class FolderForm(Form):
    """The name of a folder."""

    name: Annotated[str, _name]


async def show(visit: Visit) -> Page:
    """List the recipes of the account by title, those of one folder, or those that have a word."""
    word, folder = visit.query.get("q", "").strip(), visit.query.get("folder", "")
    page = visit.query.get("page", "1")
    number = max(1, int(page)) if decimal_digits(page) else 1
    folder_id = int(folder) if decimal_digits(folder) else None
    search = RecipeSearch(
        account_id=visit.viewer.account_id,
        keyword=word,
        folder_id=folder_id,
        order=Order("title", descending=False),
        limit=LISTED,
        offset=(number - 1) * LISTED,
        whole=False,
    )
    count, found = await visit.store.recipes.search(search)
    folders = await folders_of(visit)
    chips = [Chip(visit.t("recipes.all"), visit.url("recipes", query={"q": word}), folder_id is None)]
    for each in folders:
        address = visit.url("recipes", query={"q": word, "folder": each.id})
        chips.append(Chip(f"{each.name} ({each.filed})", address, each.id == folder_id))

    def turn(step: int) -> str:
        asked = {"q": word, "folder": folder_id, "page": number + step}
        return visit.url("recipes", query=asked)

    values = {
        "recipes": [_line(visit, recipe) for recipe in found],
        "count": visit.t("recipes.count", n=count),
        "chips": chips if folders else [],
        "word": word,
        "folder": folder_id or "",
        "searches": bool(word or folder_id),
        "before": turn(-1) if number > 1 else "",
        "after": turn(1) if number * LISTED < count else "",
    }
    return Page("recipes.html", visit.t("recipes.title"), values, menu="recipes")


def _line(visit: Visit, recipe: Recipe) -> RecipeLine:
    return RecipeLine(
        title=recipe.content.title or visit.t("recipe.untitled"),
        url=visit.url("recipe", id=recipe.id),
        style=recipe.content.record.get("stylename") or "",
        folder=recipe.folder_name or "",
        vitals=vital_texts(visit.words, vitals_of(recipe.content.record)),
        brews=visit.t("recipes.brews", n=len(recipe.brew_sessions)) if recipe.brew_sessions else "",
    )


async def folders_of(visit: Visit) -> list[Folder]:
    """Return the account's folders of recipes."""
    return [f for f in await visit.store.folders.all(visit.viewer.account_id) if f.kind == "recipe"]


async def choose_files(visit: Visit) -> Page:
    """Show the form that imports files."""
    return await _files_page(visit)


async def _files_page(visit: Visit, error: str = "") -> Page:
    folders = [("", visit.t("recipe.no_folder"))]
    folders += [(str(each.id), each.name) for each in await folders_of(visit)]
    filled: Filled[FolderForm] = Filled(errors={"files": error} if error else {})
    values = {"filled": filled, "folders": folders, "most": visit.words.count(DOCUMENT_BYTES >> 20)}
    title = visit.t("recipes.import.title")
    return Page("recipes_import.html", title, values, menu="recipes", status=422 if error else 200)


async def import_files(visit: Visit) -> Answer:
    """Import the recipes of each file for itself, and report what was mended and what was wrong."""
    service, account_id = visit.services.recipe_files, visit.viewer.account_id
    folder_id: int | None = None
    done: list[ImportedFile] = []
    try:
        async for part in visit.uploads():
            if part.name == "folder":
                given = await part.text()
                folder_id = await _own_folder_id(visit, given) if given else None
            elif part.filename:
                filename = part.filename[:FILE_NAME_CHARACTERS]
                document = await part.read_up_to(DOCUMENT_BYTES)
                if document is None:
                    too_large = visit.t("recipes.import.too_large", most=DOCUMENT_BYTES >> 20)
                    done.append(ImportedFile(filename, (), too_large))
                else:
                    done.append(await service.import_file(account_id, filename, document, folder_id))
    except TooLarge:
        too_much = visit.t("recipes.import.too_much", most=FILES_BYTES >> 20)
        done.append(ImportedFile(visit.t("recipes.import.rest"), (), too_much))
    if not done:
        return await _files_page(visit, "recipes.wrong.no_file")
    found = [recipe for file in done for recipe in file.recipes]
    notice = visit.t("recipes.import.done", n=len(found)) if found else ""
    if len(found) == 1 and len(done) == 1 and not found[0].changes:
        return Moved(visit.url("recipe", id=found[0].id), notice)
    return Moved(visit.url("recipes.report", number=service.remember(account_id, done)), notice)


async def _own_folder_id(visit: Visit, given: str) -> int:
    if not decimal_digits(given):
        raise NotFound
    folder = await visit.services.library.own_folder(visit.viewer.account_id, int(given), "recipe")
    return folder.id


async def report(visit: Visit) -> Page:
    """Show the report of an import."""
    files = visit.services.recipe_files.report(visit.viewer.account_id, visit.path_id("number"))
    if files is None:
        raise NotFound(visit.t("recipes.report.gone"))
    values = {"files": [_file(visit, file) for file in files]}
    return Page("recipes_report.html", visit.t("recipes.report.title"), values, menu="recipes")


def _file(visit: Visit, file: ImportedFile) -> FileReport:
    return FileReport(
        filename=file.filename,
        error=file.error,
        summary=visit.t("recipes.import.done", n=len(file.recipes)),
        recipes=tuple(
            MendedRecipe(
                title=recipe.title or visit.t("recipe.untitled"),
                url=visit.url("recipe", id=recipe.id),
                changes=tuple(recipe.changes[:SHOWN_CHANGES]),
                summary=visit.t("recipes.report.mended", n=len(recipe.changes)),
                more=_more(visit, recipe.changes),
            )
            for recipe in file.recipes
        ),
    )


def _more(visit: Visit, changes: Sequence[str]) -> str:
    left = len(changes) - SHOWN_CHANGES
    return visit.t("recipes.report.more", n=left) if left > 0 else ""


async def show_folders(visit: Visit) -> Page:
    """Show the folders, each with a form for another name."""
    return await _folders_page(visit, Filled())


async def _folders_page(visit: Visit, filled: Filled[FolderForm], renamed: int = 0) -> Page:
    lines = [
        FolderLine(each.id, each.name, visit.t("recipes.folder.filed", n=each.filed))
        for each in await folders_of(visit)
    ]
    values = {"folders": lines, "filled": filled, "renamed": renamed}
    title = visit.t("recipes.folders.title")
    return Page("recipes_folders.html", title, values, menu="recipes", status=422 if filled.errors else 200)


async def add_folder(visit: Visit) -> Answer:
    """Make a folder."""
    filled = visit.read(FolderForm)
    if filled.value is None:
        return await _folders_page(visit, filled)
    try:
        await visit.services.library.add_folder(visit.viewer.account_id, "recipe", filled.value.name)
    except NameTaken:
        filled.wrong("name", "recipes.wrong.folder_taken")
        return await _folders_page(visit, filled)
    return Moved(visit.url("recipes.folders"), visit.t("recipes.folder.made", name=filled.value.name))


async def rename_folder(visit: Visit) -> Answer:
    """Give a folder another name."""
    folder, filled = await _own_folder(visit), visit.read(FolderForm)
    if filled.value is None:
        return await _folders_page(visit, filled, folder.id)
    try:
        await visit.services.library.rename_folder(folder, filled.value.name)
    except NameTaken:
        filled.wrong("name", "recipes.wrong.folder_taken")
        return await _folders_page(visit, filled, folder.id)
    return Moved(visit.url("recipes.folders"), visit.t("recipes.folder.renamed", name=filled.value.name))


async def ask_delete_folder(visit: Visit) -> Page:
    """Ask whether a folder is to be deleted."""
    folder = await _own_folder(visit)
    values = {
        "question": visit.t("recipes.folder.ask", name=folder.name),
        "explain": visit.t("recipes.folder.explain"),
        "action": visit.url("recipes.folder.delete", id=folder.id),
        "button": visit.t("recipes.folder.delete"),
        "back": visit.url("recipes.folders"),
    }
    return Page("confirm.html", visit.t("recipes.folder.delete"), values, menu="recipes")


async def delete_folder(visit: Visit) -> Moved:
    """Delete a folder; its recipes stay."""
    folder = await _own_folder(visit)
    await visit.services.library.delete_folder(folder)
    return Moved(visit.url("recipes.folders"), visit.t("recipes.folder.gone", name=folder.name))


async def _own_folder(visit: Visit) -> Folder:
    return await visit.services.library.own_folder(visit.viewer.account_id, visit.path_id("id"), "recipe")


ROWS = (
    Row("GET", "/recipes", show, "recipes", "The recipes, by title, folder or word"),
    Row("GET", "/recipes/import", choose_files, "recipes.import", "The form for files", scope="admin"),
    Row(
        "POST",
        "/recipes/import",
        import_files,
        "recipes.take",
        "Import recipe files",
        scope="admin",
        upload_bytes=FILES_BYTES,
    ),
    Row(
        "GET", "/recipes/imports/{number}", report, "recipes.report", "The report of an import", scope="admin"
    ),
    Row("GET", "/recipes/folders", show_folders, "recipes.folders", "The folders of recipes", scope="admin"),
    Row("POST", "/recipes/folders", add_folder, "recipes.folder.add", "Make a folder", scope="admin"),
    Row("POST", "/recipes/folders/{id}", rename_folder, "recipes.folder", "Rename a folder", scope="admin"),
    Row(
        "GET",
        "/recipes/folders/{id}/delete",
        ask_delete_folder,
        "recipes.folder.ask",
        "Ask before a folder is deleted",
        scope="admin",
    ),
    Row(
        "POST",
        "/recipes/folders/{id}/delete",
        delete_folder,
        "recipes.folder.delete",
        "Delete a folder",
        scope="admin",
    ),
)
