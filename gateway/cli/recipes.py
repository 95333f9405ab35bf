"""`recipes`: into the gateway and out of it as BeerXML."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.accounts import AccountName, account_id
from gateway.cli.options import NUMBER_MAX, Config, DataDir, Wide, json_option
from gateway.cli.output import table
from gateway.cli.progress import each_file
from gateway.cli.recipe_view import one_line, recipe_entry, recipe_row
from gateway.commands.base import as_text
from gateway.commands.recipes import no_recipe
from gateway.control import opened_read_only, run_command
from gateway.domain.progress import Progress
from gateway.domain.recipe import DOCUMENT_BYTES, Recipe
from gateway.errors import InvalidInput, in_words
from gateway.store.protocol import Store
from gateway.store.queries import Order, RecipeSearch

app = typer.Typer(help="Recipes: import, list, export, file in folders, delete.", no_args_is_help=True)

PAGE = 500
"""Recipes in memory at once while they are listed: each comes with its BeerXML."""

REPORTED = 20
"""Recipes of a document whose changes are told, unless all are; of each, `CHANGES_SENT` lines at most."""

RecipeId = Annotated[
    int, typer.Argument(metavar="RECIPE", help="Id, as `recipes list` shows it.", min=1, max=NUMBER_MAX)
]
RecipeIds = Annotated[
    list[int], typer.Argument(metavar="ID", help="As `recipes list` shows it.", min=1, max=NUMBER_MAX)
]
Owner = Annotated[
    str | None,
    typer.Option(
        "--account", help="Whose they are: an account's name. [default: the folder's, else the owner's]"
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="A file, which is overwritten. [default: stdout]", show_default=False, dir_okay=False),
]


@app.command("import")
def import_recipes(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="BeerXML or BeerJSON 1.0.")],
    data_dir: DataDir,
    config: Config = None,
    folder: Annotated[
        int | None,
        typer.Option(help="File them there; an id of `folders list`.", min=1, max=NUMBER_MAX),
    ] = None,
    account: Owner = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not tell what was changed.")] = False,
    all_changes: Annotated[
        bool,
        typer.Option("--all-changes", help="Tell every change of every recipe. [default: the first ten]"),
    ] = False,
) -> None:
    """Import recipes and print their ids, one per line, and nothing else, on stdout.

    What had to be changed in a recipe so that it is valid BeerXML is told on stderr, where much had to be
    only the beginning of it; --all-changes tells all. A file that cannot be
    read is named there and none of its recipes is taken; the other files are, and the exit code is 1.

    Example: hydrometer-gateway recipes import ~/beersmith/*.xml
    """

    def take(_: Path, document: bytes, progress: Progress) -> list[dict[str, Any]]:
        arguments = {"document": as_text(document), "folder_id": folder, "account": account}
        arguments |= {"all_changes": all_changes}
        imported = asyncio.run(run_command(data_dir, "recipes.import", progress, **arguments))
        assert isinstance(imported, list)  # noqa: S101  (as the command gives it)
        return imported

    def show(path: Path, imported: list[dict[str, Any]]) -> None:
        for recipe in imported:
            typer.echo(recipe["id"])
        if not imported:
            typer.echo(f"{path}: there is no recipe in it", err=True)
        elif not quiet:
            changed = [recipe for recipe in imported if recipe["changed"]]
            _report(path, changed, len(changed) if all_changes else REPORTED)

    each_file(files, DOCUMENT_BYTES, take, show)


def _report(path: Path, changed: list[dict[str, Any]], most: int) -> None:
    """What was changed, on stderr, in so many recipes."""
    for recipe in changed[:most]:
        typer.echo(f"{path}: recipe {recipe['id']}, {one_line(recipe['title'])}, was changed:", err=True)
        for change in recipe["changes"]:
            typer.echo(f"  {one_line(change)}", err=True)
        if recipe["changed"] > len(recipe["changes"]):
            typer.echo(f"  and {recipe['changed'] - len(recipe['changes'])} changes more", err=True)
    if len(changed) > most:
        typer.echo(f"{path}: {len(changed) - most} recipes more were changed", err=True)


@app.command("list")
def list_recipes(
    data_dir: DataDir,
    config: Config = None,
    keyword: Annotated[
        str, typer.Option(help="Part of the title, an ingredient, the notes or the style, in any case.")
    ] = "",
    account: AccountName = None,
    snapshots: Annotated[
        bool, typer.Option("--snapshots", help="Also the copies that brew sessions took.")
    ] = False,
    as_json: Annotated[bool, json_option("GATEWAY_RECIPES_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List an account's recipes, the newest last.

    Example: hydrometer-gateway recipes list --keyword "east kent"
    """

    async def show() -> None:
        rows = []
        async with opened_read_only(data_dir) as store:
            owner = await account_id(store, account)
            async for recipe in _found(store, owner, keyword, snapshots):
                if as_json:
                    typer.echo(json.dumps(recipe_entry(recipe), ensure_ascii=False))
                else:
                    rows.append(recipe_row(recipe, snapshots))
        if not as_json:
            headings = ("ID", "TITLE", "STYLE", "OG", "ABV", "BATCH", "FOLDER", "BREWED")
            shown = (*headings, "COPY OF") if snapshots else headings
            table(shown, rows, wide=wide, cut=("TITLE", "STYLE", "BATCH", "FOLDER"))

    asyncio.run(show())


async def _found(store: Store, owner: int, keyword: str, snapshots: bool) -> AsyncIterator[Recipe]:
    offset, count = 0, 1
    while offset < count:
        count, page = await store.recipes.search(
            RecipeSearch(
                account_id=owner,
                keyword=keyword,
                snapshots=snapshots,
                order=Order(descending=False),
                limit=PAGE,
                offset=offset,
            )
        )
        for recipe in page:
            yield recipe
        offset += PAGE


@app.command()
def export(recipes: RecipeIds, data_dir: DataDir, config: Config = None, out: Out = None) -> None:
    """Write recipes as one BeerXML document.

    Example: hydrometer-gateway recipes export 3 7 --out porters.xml
    """

    async def found() -> list[Recipe]:
        async with opened_read_only(data_dir) as store:
            return [await recipe_in(store, recipe_id) for recipe_id in recipes]

    from gateway.formats import beerxml  # here: `serve` has this module in its memory, too

    write_out(beerxml.document([recipe.content.beerxml for recipe in asyncio.run(found())]), out)


@app.command("file")
def file_recipes(
    recipes: RecipeIds,
    data_dir: DataDir,
    folder: Annotated[int, typer.Option(help="An id of `folders list`; 0 is none.", min=0, max=NUMBER_MAX)],
    config: Config = None,
) -> None:
    """Put recipes into a folder, or with --folder 0 into none.

    Example: hydrometer-gateway recipes file 3 7 --folder 2
    """
    asyncio.run(run_command(data_dir, "recipes.file", recipe_ids=recipes, folder_id=folder))


@app.command()
def delete(recipe: RecipeId, data_dir: DataDir, config: Config = None) -> None:
    """Delete a recipe. Brew sessions keep the copies that they took."""
    title = asyncio.run(run_command(data_dir, "recipes.delete", recipe_id=recipe))
    typer.echo(f"Recipe {recipe} ({one_line(title)}) is deleted; brew sessions keep their copies.", err=True)


async def recipe_in(store: Store, recipe_id: int) -> Recipe:
    """The recipe with this id, of whatever account."""
    recipe = await store.recipes.get(recipe_id)
    if recipe is None:
        raise no_recipe(recipe_id)
    return recipe


def write_out(data: bytes, out: Path | None) -> None:
    """Bytes to a file, or to stdout where none is named."""
    if out is None:
        typer.echo(data, nl=False)
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise InvalidInput(f"cannot write {out}: {in_words(error)}") from error
