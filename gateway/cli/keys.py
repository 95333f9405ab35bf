"""`keys`: the API keys of accounts."""

from typing import Annotated

import typer

from gateway.cli.accounts import AccountName
from gateway.cli.client import ask, get
from gateway.cli.options import Config, DataDir, Wide
from gateway.cli.output import table, to_the_minute, unix
from gateway.domain.key import ALL_SCOPES
from gateway.errors import InvalidInput

app = typer.Typer(help="API keys: add, list, revoke.", no_args_is_help=True)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="What the key is for; shown in the list.")],
    data_dir: DataDir,
    config: Config = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, ingest or admin; several may be given. [default: all]", show_default=False),
    ] = None,
    account: AccountName = None,
) -> None:
    """Make a key for an account and print it, and nothing else, on stdout. The key is shown this once.

    Works at once in a running gateway. Example: hydrometer-gateway keys add phone --scope read > phone.key
    """
    unknown = set(scope or ()) - ALL_SCOPES
    if unknown:
        raise InvalidInput(
            f"unknown scope {', '.join(sorted(unknown))}; there are {', '.join(sorted(ALL_SCOPES))}"
        )
    if not name.strip():
        raise InvalidInput("the key's name is empty")
    body = {"name": name, "scopes": sorted(set(scope)) if scope else None}
    [made] = ask(data_dir, "POST", "/manage/keys", body=body, account=account)["keys"]
    typer.echo(made["key"])


@app.command("list")
def list_keys(
    data_dir: DataDir,
    config: Config = None,
    wide: Wide = False,
) -> None:
    """List active keys by name; the keys themselves are not stored anywhere."""

    rows = [
        (
            key["name"],
            f"{key['shown']}...",
            " ".join(key["scopes"]),
            key["account"],
            to_the_minute(unix(key["created_at"])),
        )
        for key in get(data_dir, "/manage/keys", query={"everyone": True})["keys"]
    ]
    headings = ("NAME", "KEY", "SCOPES", "ACCOUNT", "CREATED")
    table(headings, rows, wide=wide, cut=("NAME", "SCOPES", "ACCOUNT"))


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(help="The key's name.")],
    data_dir: DataDir,
    config: Config = None,
    account: AccountName = None,
) -> None:
    """Revoke a key of an account; a running gateway refuses it from the next request on."""
    query, missing = {"name": name}, f"no active key named {name!r}"
    ask(data_dir, "DELETE", "/manage/keys", query=query, account=account, missing=missing)
