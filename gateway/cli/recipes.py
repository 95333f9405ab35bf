"""`recipes`: import, list, export, file and delete recipes; the files are BeerXML."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.accounts import AccountName
from gateway.cli.client import ask, get
from gateway.cli.lookup import no_recipe
from gateway.cli.options import NUMBER_MAX, Config, DataDir, Wide, json_option
from gateway.cli.output import Column, table
from gateway.cli.progress import each_file
from gateway.cli.recipe_view import one_line, recipe_entry, recipe_row
from gateway.domain.progress import Progress
from gateway.domain.recipe import DOCUMENT_BYTES
from gateway.errors import InvalidInput, TooLarge, in_words

PATH = "/manage/recipes"

app = typer.Typer(help="Recipes: import, list, export, file in folders, delete.", no_args_is_help=True)

PAGE = 500
"""Recipes in one answer while recipes are listed."""

REPORTED = 20
"""Recipes of a document whose changes are reported, without --all-changes."""

CHANGES_SHOWN = 10
"""Changes reported of a recipe, without --all-changes: an error is mostly repeated everywhere in a recipe."""

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
    """Import recipes from files.

    Prints their ids, one per line, and nothing else, on stdout. Changes that made a recipe valid BeerXML are
    reported on stderr, of many changes only the first; --all-changes reports all. A file that cannot be read
    is named there, and none of its recipes is taken; the other files are, and the exit code is 1.

    Example: hydrometer-gateway recipes import ~/beersmith/*.xml
    """

    def take(_: Path, document: bytes, progress: Progress) -> list[dict[str, Any]]:
        if len(document) > DOCUMENT_BYTES:
            raise TooLarge(f"the document is larger than {DOCUMENT_BYTES} bytes")
        imported: list[dict[str, Any]] = ask(
            data_dir,
            "POST",
            PATH,
            data=document,
            media="",
            query={"folder_id": folder, "all_changes": all_changes},
            account=account,
            progress=progress,
            missing=f"no folder {folder}{' for that' if account else ''}; `folders list` shows them",
        )["recipes"]
        return imported

    def show(path: Path, imported: list[dict[str, Any]]) -> None:
        for recipe in imported:
            typer.echo(recipe["id"])
        if not imported:
            typer.echo(f"{path}: there is no recipe in it", err=True)
        elif not quiet:
            changed = [recipe for recipe in imported if recipe["changes"]]
            _report(path, changed, all_changes=all_changes)

    each_file(files, DOCUMENT_BYTES, take, show)


def _report(path: Path, changed: list[dict[str, Any]], *, all_changes: bool) -> None:
    """Report each recipe's changes on stderr."""
    recipes, lines = (None, None) if all_changes else (REPORTED, CHANGES_SHOWN)
    for recipe in changed[:recipes]:
        typer.echo(f"{path}: recipe {recipe['id']}, {one_line(recipe['title'])}, was changed:", err=True)
        shown = recipe["changes"][:lines]
        for change in shown:
            typer.echo(f"  {one_line(change)}", err=True)
        if len(recipe["changes"]) > len(shown):
            typer.echo(f"  and {len(recipe['changes']) - len(shown)} changes more", err=True)
    if recipes is not None and len(changed) > recipes:
        typer.echo(f"{path}: {len(changed) - recipes} recipes more were changed", err=True)


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

    rows = []
    for recipe in _found(data_dir, {"keyword": keyword or None, "snapshots": snapshots}, account):
        if as_json:
            typer.echo(json.dumps(recipe_entry(recipe), ensure_ascii=False))
        else:
            rows.append(recipe_row(recipe, snapshots))
    if not as_json:
        columns = (
            *(Column("ID"), Column("TITLE", cut=True), Column("STYLE", 3, cut=True), Column("OG", 2)),
            *(Column("ABV", 2), Column("BATCH", 4, cut=True), Column("FOLDER", 4, cut=True)),
            *(Column("BREWED", 3), *([Column("COPY OF")] if snapshots else [])),
        )
        table(columns, rows, wide=wide)


def _found(data_dir: Path, query: dict[str, object], account: str | None) -> Iterator[dict[str, Any]]:
    offset, count = 0, 1
    while offset < count:
        page = get(data_dir, PATH, query={**query, "offset": offset, "limit": PAGE}, account=account)
        yield from page["recipes"]
        count, offset = int(page["count"]), offset + max(1, len(page["recipes"]))


@app.command()
def export(recipes: RecipeIds, data_dir: DataDir, config: Config = None, out: Out = None) -> None:
    """Write recipes as one BeerXML document.

    Example: hydrometer-gateway recipes export 3 7 --out porters.xml
    """

    document = bytearray()
    query = {"ids": ",".join(map(str, recipes))}
    get(data_dir, f"{PATH}.xml", query=query, receive=document.extend)
    write_out(bytes(document), out)


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
    missing = f"no folder {folder} for that; `folders list` shows them"
    ask(data_dir, "PATCH", PATH, body={"recipe_ids": recipes, "folder_id": folder}, missing=missing)


@app.command()
def delete(recipe: RecipeId, data_dir: DataDir, config: Config = None) -> None:
    """Delete a recipe. Brew sessions keep the copies that they took."""
    title = ask(data_dir, "DELETE", f"{PATH}/{recipe}", missing=no_recipe(recipe))["title"]
    typer.echo(f"Recipe {recipe} ({one_line(title)}) is deleted; brew sessions keep their copies.", err=True)


def write_out(data: bytes, out: Path | None) -> None:
    """Write bytes to a file, or to stdout if no file is named."""
    if out is None:
        typer.echo(data, nl=False)
        return
    try:
        out.write_bytes(data)
    except OSError as error:
        raise InvalidInput(f"cannot write {out}: {in_words(error)}") from error
