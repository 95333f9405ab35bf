"""`serve`: run the gateway."""

import inspect
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, get_origin

import typer

from gateway.cli.options import Config, MqttTopics, ServedDataDir, set_up_logging
from gateway.config import said_of_url
from gateway.settings import OPTIONS, Option, Settings

OF_SEVERAL_COMMANDS = {"data_dir": ServedDataDir, "mqtt_topic": MqttTopics}
"""Options of `serve` that other commands have, too."""

SHOWN_DEFAULTS = {"host": "all interfaces"}
"""The words for a default that is an empty text."""


def _with_options_of_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command one option for each field of `Settings`, in the same order, and `--config`."""
    parameters = [_option(name, about) for name, about in OPTIONS.items()]
    # After --data-dir, as in every other command.
    parameters.insert(1, _parameter("config", Config, None))
    vars(command)["__signature__"] = inspect.Signature(parameters)
    return command


def _option(name: str, about: Option) -> inspect.Parameter:
    if name in OF_SEVERAL_COMMANDS:
        default = inspect.Parameter.empty if name == "data_dir" else None
        return _parameter(name, OF_SEVERAL_COMMANDS[name], default)
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        envvar=f"GATEWAY_{name.upper()}",
        help=about.about,
        show_default=SHOWN_DEFAULTS.get(name, True),
    )
    kind = about.kind | None if get_origin(about.kind) is list else about.kind
    return _parameter(name, Annotated[kind, option], about.default)


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@_with_options_of_settings
def serve(**options: Any) -> None:
    """Run the gateway: take readings, keep and forward them.

    It listens on HTTP, MQTT and TCP, and serves the API and the page.

    Works without any option. Prints the address of the page. Stops cleanly on SIGTERM and Ctrl-C.

    Example: hydrometer-gateway serve --upstream-url https://brew.example --upstream-key-file key.txt
    """
    given = {name: options[name] for name in OPTIONS if options[name] is not None}
    settings = Settings(**given)
    for name in ("upstream_url", "mirror_from"):
        if name in given and (sentence := said_of_url(given[name], getattr(settings, name))):
            typer.echo(sentence)
    set_up_logging(settings.log_level)
    # Not at the top, because every other command would pay for the listeners.
    from gateway.tls.authorities import left_unread

    with left_unread():
        from gateway import app
        from gateway.listening import WITHOUT

    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    coloured = sys.stdout.isatty() and not plain

    def show(line: str) -> None:
        stands_out = coloured and line.startswith(WITHOUT)
        typer.echo(typer.style(line, fg=typer.colors.YELLOW) if stands_out else line)

    app.serve(settings, show)
