"""`accounts`: whose recipes, brew sessions and keys there are."""

import asyncio
import json
from collections import Counter
from typing import Annotated

import typer

from gateway.cli.options import Config, DataDir, Wide, json_option
from gateway.cli.output import iso, table, to_the_minute
from gateway.control import opened_read_only, run_command
from gateway.domain.account import OWNER_ID
from gateway.services.access import account_named
from gateway.store.protocol import Store

app = typer.Typer(help="Accounts: add, list.", no_args_is_help=True)

AccountName = Annotated[
    str | None,
    typer.Option(
        "--account",
        help="An account by name, as `accounts list` shows it. [default: the owner's]",
        show_default=False,
    ),
]


async def account_id(store: Store, name: str | None) -> int:
    """The id of the account of that name, the owner's where none is named."""
    if name is None:
        return OWNER_ID
    return account_named(await store.accounts.all(), name).id


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Any name, as long as no other account has it.")],
    data_dir: DataDir,
    config: Config = None,
) -> None:
    """Make an account and print its id, and nothing else, on stdout. It sees no other account's records.

    Example: hydrometer-gateway accounts add anna && hydrometer-gateway keys add anna-phone --account anna
    """
    typer.echo(asyncio.run(run_command(data_dir, "accounts.add", name=name)))
    typer.echo("It has no key yet; `keys add KEYNAME --account NAME` makes one.", err=True)


@app.command("list")
def list_accounts(
    data_dir: DataDir,
    config: Config = None,
    as_json: Annotated[bool, json_option("GATEWAY_ACCOUNTS_LIST_JSON")] = False,
    wide: Wide = False,
) -> None:
    """List accounts and how many active keys each has. The owner is the first."""

    async def show() -> None:
        async with opened_read_only(data_dir) as store:
            accounts = await store.accounts.all()
            keys = Counter(key.account_id for key in await store.keys.active())
        if as_json:
            for a in accounts:
                entry = {"id": a.id, "name": a.name, "keys": keys[a.id], "created_at": iso(a.created_at)}
                typer.echo(json.dumps(entry, ensure_ascii=False))
            return
        rows = [(a.id, a.name, keys[a.id], to_the_minute(a.created_at)) for a in accounts]
        table(("ID", "NAME", "KEYS", "CREATED"), rows, wide=wide, cut=("NAME",))

    asyncio.run(show())
