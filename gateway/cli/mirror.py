"""`mirror`: copy another Brewing Data Service."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.client import ask
from gateway.cli.exit_codes import ExitCode
from gateway.cli.options import Config, DataDir
from gateway.cli.output import Column, table
from gateway.cli.progress import progress_bar
from gateway.config import base_url, read_key, said_of_url
from gateway.domain.target import MIRROR_RATE, MIRROR_RATE_MAX, MIRROR_RATE_MIN
from gateway.errors import ConfigError

COLUMNS = ("copied", "updated", "unchanged", "kept", "failed")


def mirror(
    data_dir: DataDir,
    config: Config = None,
    url: Annotated[
        str | None,
        typer.Option(
            "--from",
            envvar="GATEWAY_MIRROR_FROM",
            help="Brewing Data Service to copy: https://host, without /v1.",
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(envvar="GATEWAY_MIRROR_KEY_FILE", help="File that holds the API key for it."),
    ] = None,
    photos: Annotated[
        bool,
        typer.Option("--photos", envvar="GATEWAY_MIRROR_PHOTOS", help="Copy photos, too; asks every recipe."),
    ] = False,
    account: Annotated[str | None, typer.Option(help="Account to copy into. [default: the owner's]")] = None,
    rate: Annotated[
        float,
        typer.Option(help="Requests a second, one at a time.", min=MIRROR_RATE_MIN, max=MIRROR_RATE_MAX),
    ] = MIRROR_RATE,
) -> None:
    """Copy an account of another Brewing Data Service.

    Recipes, brew sessions, readings and photos come along.

    Run it again to go on after an interruption, or to copy new records; nothing is copied twice, and nothing
    here is deleted. Best while the gateway runs: without a gateway, nothing else can use the data meanwhile.
    Exit code 1 means that some records could not be copied.

    Example: hydrometer-gateway mirror --from https://brew.example --key-file brew.key --photos
    """
    source = _checked(url)
    if key_file is None:
        raise ConfigError("--key-file is missing: a file that holds only the API key for that service")
    body = {"url": source, "key": read_key(key_file, "key file"), "photos": photos, "rate": rate}
    try:
        with progress_bar() as progress:
            result = ask(data_dir, "POST", "/manage/mirror", body=body, account=account, progress=progress)
    except KeyboardInterrupt:
        typer.echo("Stopped; what was copied stays. Run it again to go on.", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _show(result, source, key_file)
    if any(counts["failed"] for counts in result["counts"].values()):
        raise typer.Exit(1)


def _checked(url: str | None) -> str:
    if url is None:
        raise ConfigError("--from is missing: the address of the service, https://host, without /v1")
    try:
        taken = base_url(url)
    except ValueError as error:
        raise ConfigError(f"--from {error}") from error
    if sentence := said_of_url(url, taken):
        typer.echo(sentence, err=True)
    return taken


def _show(result: dict[str, Any], source: str, key_file: Path) -> None:
    rows = [
        (kind, *(counts[column] for column in COLUMNS))
        for kind, counts in result["counts"].items()
        if any(counts.values())
    ]
    table([Column(""), *(Column(name.upper()) for name in COLUMNS)], rows, wide=None)
    typer.echo(f"{result['requests']} requests")
    for line in result["reports"]:
        typer.echo(f"- {line}")
    if result["unreported"]:
        typer.echo(f"- and {result['unreported']} more")
    typer.echo("New readings of these brew sessions go back there while the gateway runs with")
    typer.echo(f"  serve --upstream-url {source.rstrip('/')} --upstream-key-file {key_file}")
