"""`folders`: what recipes and brew sessions are filed in."""

import asyncio
import json
from typing import Annotated

import typer

from gateway.cli.accounts import AccountName, account_id
from gateway.cli.options import NUMBER_MAX, Config, DataDir, Wide, json_option
from gateway.cli.output import iso, table
from gateway.control import opened_read_only, run_command
from gateway.domain.folder import FolderKind

app = typer.Typer(help="Folders: add, list, rename, delete.", no_args_is_help=True)

FolderId = Annotated[
    int, typer.Argument(metavar="ID", help="As `folders list` shows it.", min=1, max=NUMBER_MAX)
]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What it is called.")],
    data_dir: DataDir,
    kind: Annotated[FolderKind, typer.Option(help="What is filed in it.")],
    config: Config = None,
    account: AccountName = None,
) -> None:
    """Make a folder and print its id, and nothing else, on stdout.

    Example: hydrometer-gateway folders add Stouts --kind recipe
    """
    typer.echo(asyncio.run(run_command(data_dir, "folders.add", name=name, kind=kind, account=account)))


@app.command("list")
def list_folders(
    data_dir: DataDir,
    config: Config = None,
    account: AccountName = None,
    as_json: Annotated[bool, json_option("GATEWAY_FOLDERS_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List an account's folders and how many records lie in each, copies that brew sessions took included."""

    async def show() -> None:
        async with opened_read_only(data_dir) as store:
            folders = await store.folders.all(await account_id(store, account))
        if as_json:
            for f in folders:
                entry = {"id": f.id, "kind": f.kind, "name": f.name, "filed": f.filed}
                typer.echo(json.dumps({**entry, "created_at": iso(f.created_at)}, ensure_ascii=False))
            return
        rows = [(f.id, f.kind, f.name, f.filed) for f in folders]
        table(("ID", "KIND", "NAME", "FILED"), rows, wide=wide, cut=("NAME",))

    asyncio.run(show())


@app.command()
def rename(
    folder: FolderId,
    name: Annotated[str, typer.Argument(help="Its new name.")],
    data_dir: DataDir,
    config: Config = None,
) -> None:
    """Give a folder another name."""
    asyncio.run(run_command(data_dir, "folders.rename", folder_id=folder, name=name))


@app.command()
def delete(folder: FolderId, data_dir: DataDir, config: Config = None) -> None:
    """Remove a folder. What was in it stays and is filed nowhere."""
    name = asyncio.run(run_command(data_dir, "folders.delete", folder_id=folder))
    typer.echo(f"Folder {folder} ({name}) is removed; what was in it is filed nowhere.", err=True)
