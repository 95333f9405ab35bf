"""`keys`: API keys."""

import asyncio
from typing import Annotated, Any

import typer

from gateway.cli.accounts import AccountName
from gateway.cli.options import Config, DataDir, Wide
from gateway.cli.output import table, to_the_minute
from gateway.control import opened_read_only, run_command
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
    """Make a key for an account and print it, and nothing else, on stdout. It is shown this once.

    Works at once in a running gateway. Example: hydrometer-gateway keys add phone --scope read > phone.key
    """
    unknown = set(scope or ()) - ALL_SCOPES
    if unknown:
        raise InvalidInput(
            f"unknown scope {', '.join(sorted(unknown))}; there are {', '.join(sorted(ALL_SCOPES))}"
        )
    arguments: dict[str, Any] = {"name": name, "scopes": sorted(scope or ()), "account": account}
    typer.echo(asyncio.run(run_command(data_dir, "keys.add", **arguments)))


@app.command("list")
def list_keys(
    data_dir: DataDir,
    config: Config = None,
    wide: Wide = False,
) -> None:
    """List active keys by name; the keys themselves are not stored anywhere."""

    async def show() -> None:
        async with opened_read_only(data_dir) as store:
            keys = await store.keys.active()
            accounts = {account.id: account.name for account in await store.accounts.all()}
        rows = [
            (
                k.name,
                f"{k.shown}...",
                " ".join(sorted(k.scopes)),
                accounts.get(k.account_id),
                to_the_minute(k.created_at),
            )
            for k in keys
        ]
        table(
            ("NAME", "KEY", "SCOPES", "ACCOUNT", "CREATED"),
            rows,
            wide=wide,
            cut=("NAME", "SCOPES", "ACCOUNT"),
        )

    asyncio.run(show())


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(help="The key's name.")],
    data_dir: DataDir,
    config: Config = None,
    account: AccountName = None,
) -> None:
    """Revoke a key of an account; a running gateway refuses it from the next request on."""
    asyncio.run(run_command(data_dir, "keys.revoke", name=name, account=account))
