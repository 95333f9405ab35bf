"""`sample-data`: a made-up brewery to look around in."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.accounts import AccountName
from gateway.cli.client import ask
from gateway.cli.options import Config, DataDir
from gateway.cli.progress import progress_bar
from gateway.config import HTTP_PORT, default_data_dir
from gateway.errors import ConfigError

SEED_MAX = 999_999


def sample_data(
    data_dir: DataDir,
    config: Config = None,
    account: AccountName = None,
    seed: Annotated[
        int, typer.Option(help="Another seed, another noise in the readings.", min=0, max=SEED_MAX)
    ] = 1,
    no_photos: Annotated[
        bool, typer.Option("--no-photos", help="Draw none: on a small computer that takes a minute.")
    ] = False,
) -> None:
    """Fill an empty gateway with a small made-up brewery.

    It has recipes, brew sessions, readings and photos.

    The batches lie in the last five months up to this minute; three of them are fermenting. An account that
    has anything of its own is refused, so that made-up readings never lie beside measured ones.

    Example: hydrometer-gateway sample-data --data-dir ~/made-up
    """
    with progress_bar("sample data:") as progress:
        body = {"seed": seed, "photos": not no_photos}
        made = ask(data_dir, "POST", "/manage/sample-data", body=body, account=account, progress=progress)
    typer.echo(
        f"Made {made['recipes']} recipes, {made['brewsessions']} brew sessions, "
        f"{made['readings']:,} readings and {made['photos']} photos."
    )
    there = _where(data_dir)
    typer.echo("Try next:")
    typer.echo(f"  hydrometer-gateway sessions show {made['running']}{there}")
    typer.echo(f"  hydrometer-gateway recipes export {made['recipe']}{there}")
    typer.echo(f"  hydrometer-gateway serve{there}    and then http://localhost:{HTTP_PORT}/docs")


def _where(data_dir: Path) -> str:
    """Return the option that commands need to find the data; "" if the data is at the default place."""
    try:
        if data_dir == default_data_dir():
            return ""
    except ConfigError:
        pass  # no home, no default
    return f" --data-dir {shlex.quote(str(data_dir))}"
