"""`photos`: pictures of recipes."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from gateway.cli.client import ask, get
from gateway.cli.lookup import no_recipe
from gateway.cli.options import Config, DataDir, Wide, json_option
from gateway.cli.output import DETAIL, Column, iso, table, unix, when
from gateway.cli.progress import each_file
from gateway.cli.recipe_view import one_line
from gateway.cli.recipes import Out, RecipeId, write_out
from gateway.domain.photo import CAPTION_CHARACTERS, FILENAME_CHARACTERS
from gateway.domain.progress import Progress
from gateway.errors import InvalidInput
from gateway.formats.image_header import PHOTO_BYTES, inspect

app = typer.Typer(help="Photos of recipes: add, list, export, delete.", no_args_is_help=True)

Uuid = Annotated[str, typer.Argument(metavar="UUID", help="As `photos list` shows it.")]


@app.command()
def add(
    recipe: RecipeId,
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="JPEG, PNG or GIF.")],
    data_dir: DataDir,
    config: Config = None,
    caption: Annotated[str, typer.Option(help="Any text, for all of them.")] = "",
) -> None:
    """Add photos to a recipe.

    Prints their uuids, one per line, and nothing else, on stdout. The files are kept as they are. A file that
    cannot be read is named on stderr; then the other files are taken, and the exit code is 1.

    Example: hydrometer-gateway photos add 3 glass.jpg label.png --caption "First batch"
    """

    def take(path: Path, data: bytes, progress: Progress) -> str:
        inspect(data)  # refuse here, because the gateway refuses a large body without these words
        if len(path.name) > FILENAME_CHARACTERS or len(caption) > CAPTION_CHARACTERS:
            raise InvalidInput(
                f"a file name has {FILENAME_CHARACTERS} characters at most, a caption {CAPTION_CHARACTERS}"
            )
        query = {"filename": path.name or None, "caption": caption or None}
        options: dict[str, Any] = {"data": data, "media": "", "query": query, "progress": progress}
        added = ask(
            data_dir, "POST", f"/manage/recipes/{recipe}/photos", missing=no_recipe(recipe), **options
        )
        return str(added["photos"][0]["uuid"])

    each_file(files, PHOTO_BYTES, take, lambda _, uuid: typer.echo(uuid))


@app.command("list")
def list_photos(
    recipe: RecipeId,
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_PHOTOS_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List a recipe's photos, the oldest first."""

    photos = get(data_dir, f"/v1/recipes/{recipe}/photos", missing=no_recipe(recipe))["photos"]
    if as_json:
        for photo in photos:
            typer.echo(json.dumps(_entry(photo), ensure_ascii=False))
        return
    rows = [
        (
            p["uuid"],
            one_line(p["filename"]),
            f"{p['width']}x{p['height']}",
            p["size"],
            when(unix(p["created_at"])),
            one_line(p["caption"]),
        )
        for p in photos
    ]
    columns = (
        *(Column("UUID"), Column("FILE", cut=True), Column("PIXELS", 4), Column("BYTES", DETAIL)),
        *(Column("ADDED", 3), Column("CAPTION", 2, cut=True)),
    )
    table(columns, rows, wide=wide)


def _entry(photo: dict[str, Any]) -> dict[str, object]:
    return {
        "uuid": photo["uuid"],
        "recipe_id": int(photo["recipe_id"]),
        "filename": photo["filename"],
        "mimetype": photo["mimetype"],
        "width": int(photo["width"]),
        "height": int(photo["height"]),
        "size": int(photo["size"]),
        "caption": photo["caption"],
        "created_at": iso(unix(photo["created_at"])),
    }


def _no_photo(data_dir: Path, recipe: int, uuid: str) -> str:
    """Return the message for a photo that a recipe lacks. Raise `NotFound` if there is no such recipe."""
    get(data_dir, f"/v1/recipes/{recipe}/photos", missing=no_recipe(recipe))
    return f"recipe {recipe} has no photo {uuid}; `photos list {recipe}` shows them"


@app.command()
def export(recipe: RecipeId, uuid: Uuid, data_dir: DataDir, config: Config = None, out: Out = None) -> None:
    """Write a photo's file, byte for byte as it was added.

    Example: hydrometer-gateway photos export 3 3f1d9c1e-7c55-4b0e-9d3a-5f0a6f0f2b11 --out glass.jpg
    """
    if out is None and sys.stdout.isatty():
        raise InvalidInput("a photo is nothing for a terminal; name a file with --out")

    missing, content = _no_photo(data_dir, recipe, uuid), bytearray()
    path = f"/v1/recipes/{recipe}/photo/{quote(uuid.lower(), safe='')}"
    get(data_dir, path, missing=missing, receive=content.extend)
    write_out(bytes(content), out)


@app.command()
def delete(recipe: RecipeId, uuid: Uuid, data_dir: DataDir, config: Config = None) -> None:
    """Delete a photo and its file."""
    missing = _no_photo(data_dir, recipe, uuid.lower()).partition(";")[0]
    path = f"/manage/recipes/{recipe}/photos/{quote(uuid.lower(), safe='')}"
    ask(data_dir, "DELETE", path, missing=missing)
