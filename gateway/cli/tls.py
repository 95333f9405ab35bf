"""`tls`: the certificate for HTTPS and MQTT over TLS."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.options import Config, DataDir
from gateway.cli.ownership import check_right, files_of_owner
from gateway.errors import GatewayError
from gateway.tls.self_signed import CERTIFICATE_NAME, KEY_NAME, make

app = typer.Typer(help="The certificate for HTTPS and MQTT over TLS.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass  # with one command only, typer would leave the group's name out


@app.command("self-signed")
def self_signed(
    data_dir: DataDir,
    config: Config = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            help="A further host name or address of this machine. Give the option once for each.",
            show_default=False,
        ),
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=36_500, help="Days that it lasts. Apple's devices take 825 at most.")
    ] = 825,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the two files. [default: the data directory]",
            show_default=False,
            file_okay=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing pair without asking.")] = False,
) -> None:
    """Make a certificate that no authority signs.

    It has all names and addresses of this machine. Clients warn of it until they are told to trust it:
    compare the fingerprint that they show with the one that this command prints. Needs the `openssl` program.

    Example: hydrometer-gateway tls self-signed --name brew.lan
    """
    if out is None:
        check_right(data_dir)
    directory = (out or data_dir).absolute()
    certificate, key = directory / CERTIFICATE_NAME, directory / KEY_NAME
    existing = [path for path in (key, certificate) if path.exists()]
    if existing and not force:
        if not sys.stdin.isatty():
            raise GatewayError(f"{existing[0]} is there already; --force replaces it")
        typer.confirm(f"{existing[0]} is there already. Replace it?", abort=True)
    with files_of_owner(data_dir) if out is None else nullcontext():
        made = make(directory, name or (), days)
    typer.echo(f"For {', '.join(made.names)}")
    typer.echo(f"SHA-256 {made.fingerprint}")
    typer.echo(f"Start the gateway with: --tls-cert {certificate} --tls-key {key}")
    if existing:
        typer.echo("A running gateway uses the new pair after `systemctl reload hydrometer-gateway`.")
