"""`serve`: run the gateway."""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from gateway.cli.options import Config, DataDir, MqttTopics, set_up_logging
from gateway.config import said_of_url
from gateway.errors import ConfigError
from gateway.settings import Settings, explain

OF_SEVERAL_COMMANDS = {"data_dir": DataDir, "mqtt_topic": MqttTopics}
"""Options of `serve` that other commands have, too."""

SHOWN_DEFAULTS = {"host": "all interfaces"}
"""The words for a default that is an empty text."""


def _with_options_of_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command one option for each field of `Settings`, in the same order, and `--config`."""
    parameters = [_option(name, field) for name, field in Settings.model_fields.items()]
    # After --data-dir, as in every other command.
    parameters.insert(1, _parameter("config", Config, None))
    vars(command)["__signature__"] = inspect.Signature(parameters)
    return command


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    if name in OF_SEVERAL_COMMANDS:
        default = inspect.Parameter.empty if field.default_factory else None
        return _parameter(name, OF_SEVERAL_COMMANDS[name], default)
    option = typer.Option(
        f"--{name.replace('_', '-')}",
        envvar=f"GATEWAY_{name.upper()}",
        help=field.description,
        show_default=SHOWN_DEFAULTS.get(name, True),
    )
    return _parameter(name, Annotated[_parsed_type(field.annotation), option], field.default)


def _parsed_type(annotation: Any) -> Any:
    """Return the type that the command line parses; the model reads a size or a level from its text."""
    kind, inner = get_origin(annotation), get_args(annotation)
    if kind is Annotated:
        return _parsed_type(inner[0])
    if kind in {Union, UnionType}:
        return _parsed_type(inner[0]) | None
    if kind is list:
        return list[_parsed_type(inner[0])] | None  # type: ignore[misc]
    return annotation if annotation in {bool, int, float, Path} else str


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


@_with_options_of_settings
def serve(**options: Any) -> None:
    """Run the gateway: listen on HTTP, MQTT and TCP, store, forward, serve the API.

    Works without any option. Stops cleanly on SIGTERM and Ctrl-C.

    Example: hydrometer-gateway serve --upstream-url https://brew.example --upstream-key-file key.txt
    """
    given = {name: options[name] for name in Settings.model_fields if options[name] is not None}
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise ConfigError(explain(error)) from error
    for name in ("upstream_url", "mirror_from"):
        if name in given and (sentence := said_of_url(given[name], getattr(settings, name))):
            typer.echo(sentence)
    set_up_logging(settings.log_level)
    # Not at the top, because every other command would pay for the listeners.
    from gateway.tls.authorities import left_unread

    with left_unread():
        from gateway import app

    app.serve(settings, lambda line: typer.echo(line))
