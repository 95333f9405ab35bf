"""`photos`: pictures of recipes."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.options import Config, DataDir, Wide, json_option
from gateway.cli.output import iso, table, to_the_minute
from gateway.cli.progress import each_file
from gateway.cli.recipe_view import one_line
from gateway.cli.recipes import Out, RecipeId, recipe_in, write_out
from gateway.commands.base import as_text
from gateway.control import opened_read_only, run_command
from gateway.domain.photo import Photo
from gateway.domain.progress import Progress
from gateway.errors import InvalidInput, NotFound
from gateway.formats.image_header import PHOTO_BYTES
from gateway.store.files import PHOTO_DIRECTORY, PhotoFiles

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
    """Add photos to a recipe and print their uuids, one per line, and nothing else, on stdout.

    The files are kept as they are. One that cannot be read is named on stderr; the others are taken, and the
    exit code is 1.

    Example: hydrometer-gateway photos add 3 glass.jpg label.png --caption "First batch"
    """

    def take(path: Path, data: bytes, progress: Progress) -> str:
        arguments = {"recipe_id": recipe, "filename": path.name, "caption": caption, "data": as_text(data)}
        return str(asyncio.run(run_command(data_dir, "photos.add", progress, **arguments)))

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

    async def show() -> None:
        async with opened_read_only(data_dir) as store:
            photos = await store.photos.of_recipe((await recipe_in(store, recipe)).id)
        if as_json:
            for photo in photos:
                typer.echo(json.dumps(_entry(photo), ensure_ascii=False))
            return
        rows = [
            (
                p.uuid,
                one_line(p.filename),
                f"{p.width}x{p.height}",
                p.size,
                to_the_minute(p.created_at),
                one_line(p.caption),
            )
            for p in photos
        ]
        headings = ("UUID", "FILE", "PIXELS", "BYTES", "ADDED", "CAPTION")
        table(headings, rows, wide=wide, cut=("FILE", "CAPTION"), spare=("ADDED", "BYTES"))

    asyncio.run(show())


def _entry(photo: Photo) -> dict[str, object]:
    return {
        "uuid": photo.uuid,
        "recipe_id": photo.recipe_id,
        "filename": photo.filename,
        "mimetype": photo.mimetype,
        "width": photo.width,
        "height": photo.height,
        "size": photo.size,
        "caption": photo.caption,
        "created_at": iso(photo.created_at),
    }


@app.command()
def export(recipe: RecipeId, uuid: Uuid, data_dir: DataDir, config: Config = None, out: Out = None) -> None:
    """Write a photo's file, byte for byte as it was added.

    Example: hydrometer-gateway photos export 3 3f1d9c1e-7c55-4b0e-9d3a-5f0a6f0f2b11 --out glass.jpg
    """
    if out is None and sys.stdout.isatty():
        raise InvalidInput("a photo is nothing for a terminal; name a file with --out")

    async def found() -> Photo:
        async with opened_read_only(data_dir) as store:
            photo = await store.photos.get((await recipe_in(store, recipe)).id, uuid.lower())
        if photo is None:
            raise NotFound(f"recipe {recipe} has no photo {uuid}; `photos list {recipe}` shows them")
        return photo

    files = PhotoFiles(data_dir / PHOTO_DIRECTORY)
    write_out(files.load(asyncio.run(found()).file_name), out)


@app.command()
def delete(recipe: RecipeId, uuid: Uuid, data_dir: DataDir, config: Config = None) -> None:
    """Delete a photo and its file."""
    asyncio.run(run_command(data_dir, "photos.delete", recipe_id=recipe, uuid=uuid.lower()))
