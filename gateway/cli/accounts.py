"""`accounts`: the owners of recipes, brew sessions and keys."""

import json
from typing import Annotated

import typer

from gateway.cli.client import ask, get
from gateway.cli.lookup import check_name
from gateway.cli.options import Config, DataDir, Wide, account_words, json_option
from gateway.cli.output import Column, iso, table, unix, when

app = typer.Typer(help="Accounts: add, list.", no_args_is_help=True)

AccountName = Annotated[
    str | None,
    typer.Option(
        "--account",
        help="An account by name, as `accounts list` shows it. [default: the owner's]",
        show_default=False,
        autocompletion=account_words,
    ),
]


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Any name, as long as no other account has it.")],
    data_dir: DataDir,
    config: Config = None,
) -> None:
    """Make an account and print its id, and nothing else, on stdout. It sees no other account's records.

    Example: hydrometer-gateway accounts add anna && hydrometer-gateway keys add anna-phone --account anna
    """
    check_name(name, "an account")
    [made] = ask(data_dir, "POST", "/manage/accounts", body={"name": name})["accounts"]
    typer.echo(made["id"])
    typer.echo("It has no key yet; `keys add KEYNAME --account NAME` makes one.", err=True)


@app.command("list")
def list_accounts(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_ACCOUNTS_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List accounts, each with its number of active keys. The owner is the first."""

    found = get(data_dir, "/manage/accounts")["accounts"]
    if as_json:
        for a in found:
            entry = {"id": int(a["id"]), "name": a["name"], "keys": a["keys"]}
            typer.echo(json.dumps({**entry, "created_at": iso(unix(a["created_at"]))}, ensure_ascii=False))
        return
    rows = [(a["id"], a["name"], a["keys"], when(unix(a["created_at"]))) for a in found]
    columns = (Column("ID"), Column("NAME", cut=True), Column("KEYS", 2), Column("CREATED", 3))
    table(columns, rows, wide=wide)
