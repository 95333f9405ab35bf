"""The command line's root: every command, and errors as one line instead of a traceback."""

import sys

import typer

from gateway import __version__
from gateway.cli import demo, devices, keys, readings, serve, sessions
from gateway.errors import GatewayError

HELP = """Receives fermentation hydrometers, keeps every reading, and posts them to a Brewing Data Service.

Every option can also be set as a GATEWAY_... environment variable and as a key of a TOML file
(flag > environment > file > default). Start with `hydrometer-gateway demo` to see it work, or with
`hydrometer-gateway serve` to use it.
"""

app = typer.Typer(
    name="hydrometer-gateway",
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"auto_envvar_prefix": "GATEWAY", "help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve.serve)
app.command("readings")(readings.readings)
app.command("demo")(demo.demo)
app.add_typer(keys.app, name="keys")
app.add_typer(sessions.app, name="sessions")
app.add_typer(devices.app, name="devices")


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", is_eager=True, show_envvar=False
    ),
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; what goes wrong in a known way is one line on stderr and exit code 1."""
    try:
        app(prog_name="hydrometer-gateway")
    except GatewayError as error:
        typer.echo(f"hydrometer-gateway: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()  # `readings | head` is no error
        sys.exit(0)
