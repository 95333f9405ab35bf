"""The command line's root: every command, and errors as one line instead of a traceback."""

import contextlib
import errno
import os
import sys
from typing import Any

import typer
from typer._click.exceptions import NoSuchOption
from typer._click.shell_completion import CompletionItem
from typer.core import TyperCommand, TyperGroup

from gateway import __version__
from gateway.cli import COMPLETING
from gateway.cli.commands import ROWS, Commands
from gateway.cli.exit_codes import ExitCode
from gateway.cli.options import SERVE
from gateway.cli.values import say_plain_words, take_plain_values
from gateway.config import SERVE_KEYS, plainly
from gateway.errors import GatewayError, RateLimited, StoreUnavailable, StoreUnusable, TryAgain, in_words

HELP = """Takes readings from fermentation hydrometers, keeps them, and sends them to a Brewing Data Service.

See it work with `hydrometer-gateway demo`. Use it with `hydrometer-gateway serve`.

Every option is also an environment variable, GATEWAY_..., and a key of a TOML file. A flag goes before the
variable, the variable before the file, and the file before the default.
"""


PASSES = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EBUSY, errno.EMFILE, errno.ENFILE})
"""Errors of the system after which the same command may work, once there is room."""


OF_ALL_COMMANDS = frozenset({"data_dir", "config"})
"""Options of every command, which groups of commands do not have."""


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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the options in front of the command."""
        try:
            return super().parse_args(ctx, args)
        except NoSuchOption as error:
            raise explained(error) from None

    def invoke(self, ctx: Any) -> Any:
        """Run the named command."""
        try:
            return super().invoke(ctx)
        except NoSuchOption as error:
            raise explained(error) from None
        except typer.BadParameter as error:
            error.message = plainly(error.message)
            raise


def explained(error: NoSuchOption) -> NoSuchOption:
    """Return the error of an unknown option with what was probably meant."""
    given, context = error.option_name, error.ctx
    command = context.command_path.partition(" ")[2] if context is not None else ""
    key = given.lstrip("-").replace("-", "_")
    if key in OF_ALL_COMMANDS:
        meant = f"; it stands behind the command, such as `hydrometer-gateway devices list {given} ...`"
    elif command != SERVE and key in SERVE_KEYS:
        meant = f"; that belongs to `serve`: `hydrometer-gateway serve {given} ...`"
    else:
        from gateway.domain.texts import did_you_mean  # not above: most commands need it not

        own = [name for option in context.command.params for name in option.opts] if context else []
        meant = did_you_mean(given, [*own, *(error.possibilities or ())], quoted=False)
    error.message, error.possibilities = f"{error.message}{meant}", None
    return error


take_plain_values()
say_plain_words()
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
) -> None:
    pass


def main() -> None:
    """Run the command line. Print a known error as one line on stderr, and exit with 1 or 75."""
    _open_what_is_closed()
    if COMPLETING in os.environ:
        from gateway.cli.completing import answer

        answer(app)
    try:
        _run()
    except GatewayError as error:
        _say(error)
        sys.exit(_exit_code(error))
    except BrokenPipeError:
        _forget_output()
        sys.exit(0)  # `readings | head` is no error
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _say(GatewayError(f"{where}{in_words(error)}"))
        _forget_output()
        sys.exit(_exit_code(error))


def _open_what_is_closed() -> None:
    """Open /dev/null for each standard stream that the caller has closed, as `>&-` does.

    Python has None for such a stream. The next file that is opened would get its number, and what is printed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _exit_code(error: BaseException) -> ExitCode:
    """Return whether the same command may work a little later, or has failed."""
    cause: BaseException | None = error
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:  # causes may go in a circle
        seen.add(id(cause))
        if isinstance(cause, OSError) and cause.errno is not None and cause.errno != errno.EAGAIN:
            return ExitCode.TRY_AGAIN if cause.errno in PASSES else ExitCode.FAILED
        cause = cause.__cause__  # past EAGAIN, which is a lock that somebody else has
    passes = isinstance(error, StoreUnavailable | RateLimited | TryAgain)
    passes = passes and not isinstance(error, StoreUnusable)
    return ExitCode.TRY_AGAIN if passes else ExitCode.FAILED


def _run() -> None:
    try:
        app(prog_name="hydrometer-gateway")
    except SystemExit as end:
        # Raised again, because typer hides a closed pipe behind exit code 1; flushing can meet one, too.
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        sys.stdout.flush()
        if isinstance(stopped := _stopped_by(end), KeyboardInterrupt):
            notes = getattr(stopped, "__notes__", [])
            _say(GatewayError("; ".join(["stopped", *notes])))
            sys.exit(ExitCode.INTERRUPTED)
        raise


def _stopped_by(end: SystemExit) -> BaseException | None:
    """Return what typer ended the program for: it turns Ctrl-C into an exit, at a prompt by way of an abort.

    None if the command has said itself what became of it.
    """
    ended = end.__context__
    if isinstance(ended, typer.Abort):
        return ended.__context__
    return None if ended is None else ended.__cause__


def _say(error: Exception) -> None:
    with contextlib.suppress(OSError):
        typer.echo(f"hydrometer-gateway: {error}", err=True)


def _forget_output() -> None:
    """Let Python flush stdout into nothing at exit: without a reader Python would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
