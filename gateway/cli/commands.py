"""The table of all commands. The module of a command is imported when the command is named."""

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any, NamedTuple

import typer


class Row(NamedTuple):
    """A command's module below `gateway.cli`, and its line in the list of commands.

    The line is the first sentence of the command's own help: a test compares them.
    """

    module: str
    line: str


ROWS = {
    "serve": Row("serve", "Run the gateway: take readings, keep and forward them."),
    "demo": Row("demo", "Watch it work, with simulated hydrometers."),
    "mirror": Row("mirror", "Copy an account of another Brewing Data Service."),
    "sample-data": Row("sample_data", "Fill an empty gateway with a small made-up brewery."),
    "capture": Row("capture", "Write a device's last payloads as test cases to share."),
    "backup": Row("backup", "Write all data to one file."),
    "restore": Row("backup", "Replace the data by a backup."),
    "doctor": Row("doctor", "Look for problems, and name the remedy of each."),
    "install-service": Row("install_service", "Let the gateway start with this machine."),
    "uninstall-service": Row("install_service", "Take away what `install-service` wrote."),
    "readings": Row("readings", "Show readings, the newest last."),
    "recipes": Row("recipes", "Recipes: import, list, export, file in folders, delete."),
    "photos": Row("photos", "Photos of recipes: add, list, export, delete."),
    "folders": Row("folders", "Folders: add, list, rename, delete."),
    "sessions": Row("sessions", "Brew sessions: add, list, update, next, done, notes."),
    "devices": Row("devices", "Devices: list, show, assign, set up, calibrate, merge."),
    "alarms": Row("alarms", "Alarms: what fires, say OK, limits, a test message."),
    "targets": Row("targets", "Targets: the services that readings are sent on to."),
    "channels": Row("channels", "Channels: the ways in which alarms reach you."),
    "quarantine": Row("quarantine", "What nobody understood: look at it, try it again."),
    "inbox": Row("inbox", "New devices that wait: look at, accept, refuse them."),
    "audit": Row("audit", "Audit log: who changed what, and when."),
    "accounts": Row("accounts", "Accounts: add, list."),
    "keys": Row("keys", "API keys: add, list, rotate, revoke."),
    "tls": Row("tls", "The certificate for HTTPS and MQTT over TLS."),
    "completion": Row("completing", "Print the script for the Tab key of a shell."),
}
"""All commands, in the order in which they are listed."""


class Commands(MutableMapping[str, Any]):
    """The commands by name; each is built when it is asked for."""

    def __init__(self) -> None:
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = _build(name, ROWS[name])
        return self._built[name]

    def __contains__(self, name: object) -> bool:
        return name in ROWS  # not by building it, as a mapping does otherwise

    def __iter__(self) -> Iterator[str]:
        return iter(ROWS)

    def __len__(self) -> int:
        return len(ROWS)

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError("a command has its place in ROWS")

    def __delitem__(self, name: str) -> None:
        raise TypeError("a command has its place in ROWS")


def _build(name: str, row: Row) -> Any:
    """Build a command: the `app` of its module, else the module's function of the command's name."""
    module = import_module(f"gateway.cli.{row.module}")
    parent = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if hasattr(module, "app"):
        parent.add_typer(module.app, name=name)
    else:
        settings = getattr(module, "CONTEXT_SETTINGS", None)
        parent.command(name, context_settings=settings)(getattr(module, name.replace("-", "_")))
    parent.callback()(lambda: None)  # without it, typer makes no group of one command
    group: Any = typer.main.get_command(parent)
    return group.commands[name]
