"""Options of every command, and the order of flags, environment, file and defaults.

Click itself keeps the order flag > environment > file > default, once it has the file's values as the
command's `default_map`.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from gateway.config import SERVE_KEYS, commands_data_dir, default_config_file, default_data_dir, read_file
from gateway.errors import ConfigError

SERVE = "serve"
DOCTOR = "doctor"
DEMO = "demo"
"""A command with a data directory of its own: simulated readings must not mix with real ones."""

Command = TyperCommand | TyperGroup

NUMBER_MAX = 2**63 - 1
"""The largest number that goes to the database."""

SHARED = ("--data-dir", "--config")
"""Options that nearly every command has."""

FILE_KEYS_NOT_TAKEN = frozenset({"config", "help"})


def file_key(parameter: TyperOption) -> str:
    """Return an option's key in the file: `--upstream-key-file` is `upstream_key_file`."""
    longest: str = max(parameter.opts, key=len)
    return longest.removeprefix("--").replace("-", "_")


def _options(command: Command) -> dict[str, TyperOption]:
    """Return a command's options by their key in the file."""
    options = {file_key(p): p for p in command.params if isinstance(p, TyperOption)}
    return {key: option for key, option in options.items() if key not in FILE_KEYS_NOT_TAKEN}


def _subcommands(command: Command) -> Mapping[str, Command]:
    return cast("Mapping[str, Command]", command.commands) if isinstance(command, TyperGroup) else {}


def _default_map(command: Command, table: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the table's values by parameter name, tables of subcommands inside. Refuse unknown keys."""
    options = _options(command)
    subcommands = _subcommands(command)
    result: dict[str, Any] = {}
    for key, value in table.items():
        dotted = f"{where}{key}"
        if key in options:
            result[options[key].name or key] = value
        elif key in subcommands and isinstance(value, dict):
            result[key] = _default_map(subcommands[key], value, f"{dotted}.")
        else:
            raise _unknown(dotted, [*options, *subcommands])
    return result


def _unknown(key: str, known: Iterable[str]) -> ConfigError:
    from gateway.domain.texts import did_you_mean  # not above: most commands need it not

    known = sorted(known)
    meant = did_you_mean(key.rpartition(".")[2], known) if key not in known else ""
    return ConfigError(
        f"unknown key {key!r} in the configuration file{meant}; known here: {', '.join(known)}"
    )


def defaults_from(root: TyperGroup, raw: dict[str, Any], named: str) -> dict[str, Any]:
    """Return the file as the default map of the named command: `serve`'s keys stand at the top of the file.

    The keys of the other commands are not checked, because that would import them; `doctor` checks them all.
    """
    commands = _subcommands(root)
    tables = {key: value for key, value in raw.items() if key in commands and key != SERVE}
    top = {key: value for key, value in raw.items() if key not in tables}
    for key, value in tables.items():
        if not isinstance(value, dict):
            raise _unknown(key, commands)
    checked = [*tables, named] if named == DOCTOR else [named]
    # No option of `serve` is a table, so a table at the top belongs to no command.
    strays = [key for key, value in top.items() if key not in SERVE_KEYS or isinstance(value, dict)]
    if strays or named == DOCTOR:
        checked.append(SERVE)
    maps = {}
    for name in checked:
        values, where = (top, "") if name == SERVE else (tables.get(name, {}), f"{name}.")
        maps[name] = _default_map(commands[name], values, where)
    if "data_dir" in top and named != DEMO:
        _spread_data_dir(commands[named], maps[named], top["data_dir"])
    return maps[named]


def _spread_data_dir(command: Command, values: dict[str, Any], data_dir: Any) -> None:
    for name, subcommand in _subcommands(command).items():
        _spread_data_dir(subcommand, values.setdefault(name, {}), data_dir)
    if "data_dir" in _options(command):
        values.setdefault("data_dir", data_dir)


def _apply_file(context: typer.Context, path: Path | None) -> Path | None:
    """Read the file before the other options look for their defaults: the option is eager."""
    if path is None:
        try:
            path = default_config_file()
        except ConfigError:
            return None  # no home, no file
        if not path.is_file():
            return None
    root = context.find_root().command
    assert isinstance(root, TyperGroup)  # noqa: S101  (typer builds it as one)
    named, *names = context.command_path.split()[1:]
    values = defaults_from(root, read_file(path), named)
    for name in names:
        values = values.get(name, {})
    context.default_map = values
    return path


Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="GATEWAY_CONFIG",
        help="TOML file with these options as keys. [default: ~/.config/hydrometer-gateway/gateway.toml]",
        callback=_apply_file,
        is_eager=True,
        show_default=False,
        dir_okay=False,
    ),
]

DataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        envvar="GATEWAY_DATA_DIR",
        help="Directory of the database. [default: ~/.local/share/hydrometer-gateway, else the service's]",
        default_factory=commands_data_dir,
        show_default=False,
        file_okay=False,
        readable=False,  # not checked here, because typer has no remedy to name
    ),
]

ServedDataDir = Annotated[
    Path,
    typer.Option(
        "--data-dir",
        envvar="GATEWAY_DATA_DIR",
        help="Directory of the database. [default: systemd's STATE_DIRECTORY, else "
        "~/.local/share/hydrometer-gateway]",
        default_factory=default_data_dir,
        show_default=False,
        file_okay=False,
        readable=False,  # not checked here, because typer has no remedy to name
    ),
]
"""The data directory of a gateway that is started: never that of another service."""


Words = list[tuple[str, str]]
"""Candidates for completion, each with its help."""


def json_option(variable: str, text: str = "One JSON object per line.") -> Any:
    """Return the option `--json`; `variable` is its name in the environment."""
    return typer.Option("--json", envvar=variable, help=text)


def device_words(ctx: typer.Context, incomplete: str) -> Words:
    """Return names of devices for completion."""
    from gateway.cli import naming  # not above: only a shell asks for names

    return naming.device_words(ctx, incomplete)


def session_words(ctx: typer.Context, incomplete: str) -> Words:
    """Return names of brew sessions for completion."""
    from gateway.cli import naming

    return naming.session_words(ctx, incomplete)


def words_of(path: str, member: str) -> Callable[[typer.Context, str], Words]:
    """Return what completes the names in a list of the running gateway, such as `targets`."""

    def words(ctx: typer.Context, incomplete: str) -> Words:
        from gateway.cli import naming

        return naming.listed_words(ctx, incomplete, path, member)

    return words


target_words = words_of("targets", "name")
channel_words = words_of("channels", "name")
key_words = words_of("keys", "name")
account_words = words_of("accounts", "name")
waiting_words = words_of("inbox", "key")


def family_words(incomplete: str) -> Words:
    """Return the families of devices behind the filter of a topic, for completion."""
    from gateway.cli import naming

    return naming.family_words(incomplete)


Device = Annotated[
    str,
    typer.Argument(
        help="Id, device id, name, label or key, as `devices list` shows them.", autocompletion=device_words
    ),
]

Session = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="Brew session: id or batch code, as `sessions list` shows them.",
        autocompletion=session_words,
    ),
]

Wide = Annotated[
    bool, typer.Option("--wide", help="Leave nothing out and cut nothing, however narrow the window is.")
]

OnlySession = Annotated[
    str | None,
    typer.Option(
        metavar="SESSION", help="Only this brew session: id or batch code.", autocompletion=session_words
    ),
]

TOPIC_SEPARATOR = ";"
"""The character between topics in the environment. A blank may be part of a topic or a name."""


def _topics_of(context: typer.Context, parameter: TyperOption, value: list[str] | None) -> list[str] | None:
    """Return the topics. Split the environment's text here, because typer would split it at every blank."""
    source = context.get_parameter_source(parameter.name or "")
    if source is None or source.name != "ENVIRONMENT":
        return value
    text = os.environ.get(str(parameter.envvar), "")
    return [part.strip() for part in text.split(TOPIC_SEPARATOR) if part.strip()]


MqttTopics = Annotated[
    list[str] | None,
    typer.Option(
        "--mqtt-topic",
        envvar="GATEWAY_MQTT_TOPIC",
        help="MQTT topics of your own choice. Give the option once for each (in the environment with ; "
        "between them). FILTER=DRIVER: messages of that family, such as brewery/bpl1=brewpiless. With {key} "
        "in the filter, or + for a family that sends one value per topic (esphome, brewpiless, ispindel, "
        "gravitymon, pressuremon; of several + the last), that level names the value: "
        "brewery/bpl1/+=brewpiless, cellar/sensor/+/state=esphome. {label}, or another +, is the device's "
        "name; without it the name is the level before, for esphome the levels before 'sensor'. "
        "TOPIC=DEVICE:FIELD: a single value, such as 'beer/SG/=fermenter 1:gravity'; fields: gravity, plato, "
        "temp, temp_c, temp_f, angle, battery, rssi.",
        callback=_topics_of,
        autocompletion=family_words,
        show_default=False,
    ),
]


def set_up_logging(level: str) -> None:
    """Log one line for each event to stderr, and a bounded number of lines."""
    from gateway import logs  # not above: it brings an event loop

    logs.set_up(level)
