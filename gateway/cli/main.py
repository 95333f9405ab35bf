"""The command line's root: every command, and errors as one line instead of a traceback."""

import contextlib
import os
import sys
from typing import Any, Literal

import typer
from typer._click.shell_completion import CompletionItem
from typer.core import TyperCommand, TyperGroup

from gateway import __version__
from gateway.cli import COMPLETING
from gateway.cli.commands import ROWS, Commands
from gateway.cli.values import take_plain_values
from gateway.config import plainly
from gateway.errors import GatewayError, in_words

HELP = """Receives fermentation hydrometers, keeps every reading, and posts them to a Brewing Data Service.

Every option can also be set as a GATEWAY_... environment variable and as a key of a TOML file
(flag > environment > file > default). Start with `hydrometer-gateway demo` to see it work, or with
`hydrometer-gateway serve` to use it.
"""


class Root(TyperGroup):
    """The group of all commands. Explains a refused value of an option or an argument in plain words."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the table."""
        return list(ROWS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from the table, because importing all of them takes a second."""
        limit = formatter.width - 6 - max(map(len, ROWS))  # the room that typer leaves for them
        lines = [
            (name, TyperCommand(name, help=row.line).get_short_help_str(limit)) for name, row in ROWS.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(lines)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the commands, and the options of the root, that begin so; import no command."""
        names = [
            CompletionItem(name, help=row.line) for name, row in ROWS.items() if name.startswith(incomplete)
        ]
        return [*names, *super(TyperGroup, self).shell_complete(ctx, incomplete)]

    def invoke(self, ctx: Any) -> Any:
        """Run the named command."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = plainly(error.message)
            raise


take_plain_values()
app = typer.Typer(
    cls=Root,
    name="hydrometer-gateway",
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"auto_envvar_prefix": "GATEWAY", "help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


def _show_completion(shell: str | None) -> None:
    if shell is not None:
        from gateway.cli.completing import script

        typer.echo(script(shell), nl=False)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False,
        "--version",
        help="Show the version and exit.",
        callback=_show_version,  # not below: by then a missing command would have been missed
        is_eager=True,
        allow_from_autoenv=False,  # images often set GATEWAY_VERSION to the version itself
    ),
    completion: Literal["bash", "zsh", "fish"] | None = typer.Option(
        None,
        "--show-completion",
        metavar="SHELL",
        help="Show the script that completes names in bash, zsh or fish, and exit.",
        callback=_show_completion,
        is_eager=True,
        allow_from_autoenv=False,
        show_default=False,
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line. Print a known error as one line on stderr and exit with 1."""
    if COMPLETING in os.environ:
        from gateway.cli.completing import answer

        answer(app)
    try:
        _run()
    except GatewayError as error:
        _say(error)
        sys.exit(1)
    except BrokenPipeError:
        _forget_output()
        sys.exit(0)  # `readings | head` is no error
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _say(GatewayError(f"{where}{in_words(error)}"))
        _forget_output()
        sys.exit(1)


def _run() -> None:
    try:
        app(prog_name="hydrometer-gateway")
    except SystemExit as end:
        # Raised again, because typer hides a closed pipe behind exit code 1; flushing can meet one, too.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        if sys.stdout is not None:
            sys.stdout.flush()
        raise


def _say(error: Exception) -> None:
    with contextlib.suppress(OSError):
        typer.echo(f"hydrometer-gateway: {error}", err=True)


def _forget_output() -> None:
    """Let Python flush stdout into nothing at exit: without a reader Python would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
