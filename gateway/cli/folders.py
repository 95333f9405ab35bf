"""`folders`: the folders of recipes and of brew sessions."""

import json
from typing import Annotated

import typer

from gateway.cli.accounts import AccountName
from gateway.cli.client import ask, get
from gateway.cli.lookup import check_name
from gateway.cli.options import NUMBER_MAX, Config, DataDir, Wide, json_option
from gateway.cli.output import Column, iso, table, unix
from gateway.domain.folder import FolderKind

PATH = "/manage/folders"

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
    check_name(name, "a folder")
    [made] = ask(data_dir, "POST", PATH, body={"kind": kind, "name": name}, account=account)["folders"]
    typer.echo(made["id"])


@app.command("list")
def list_folders(
    data_dir: DataDir,
    config: Config = None,
    account: AccountName = None,
    as_json: Annotated[bool, json_option("GATEWAY_FOLDERS_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List an account's folders.

    Each has its number of records, copies that brew sessions took included.
    """

    found = get(data_dir, PATH, account=account)["folders"]
    if as_json:
        for f in found:
            entry = {"id": int(f["id"]), "kind": f["kind"], "name": f["name"], "filed": int(f["filed"])}
            typer.echo(json.dumps({**entry, "created_at": iso(unix(f["created_at"]))}, ensure_ascii=False))
        return
    rows = [(f["id"], f["kind"], f["name"], f["filed"]) for f in found]
    table((Column("ID"), Column("KIND"), Column("NAME", cut=True), Column("FILED", 2)), rows, wide=wide)


def _no_folder(folder_id: int) -> str:
    """Return the message for an id that no folder has."""
    return f"no folder {folder_id}; `folders list` shows them"


@app.command()
def rename(
    folder: FolderId,
    name: Annotated[str, typer.Argument(help="Its new name.")],
    data_dir: DataDir,
    config: Config = None,
) -> None:
    """Give a folder another name."""
    check_name(name, "a folder")
    ask(data_dir, "PATCH", f"{PATH}/{folder}", body={"name": name}, missing=_no_folder(folder))


@app.command()
def delete(folder: FolderId, data_dir: DataDir, config: Config = None) -> None:
    """Remove a folder. The records in the folder stay, and are in no folder then."""
    name = ask(data_dir, "DELETE", f"{PATH}/{folder}", missing=_no_folder(folder))["name"]
    typer.echo(f"Folder {folder} ({name}) is removed; what was in it is filed nowhere.", err=True)
