"""The options of `serve` are the fields of `Settings`."""

import typer
from typer.core import TyperGroup, TyperOption

from gateway.cli.main import app
from gateway.config import SERVE_KEYS
from gateway.settings import OPTIONS


def test_serve_has_an_option_for_each_setting_with_its_default_and_help() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    options = {str(p.name): p for p in root.commands["serve"].params if isinstance(p, TyperOption)}
    assert [name for name in options if name not in {"config", "help"}] == list(OPTIONS)
    assert set(OPTIONS) == SERVE_KEYS
    wrong = [
        name
        for name, about in OPTIONS.items()
        if not options[name].help
        or options[name].envvar != f"GATEWAY_{name.upper()}"
        or options[name].opts != [f"--{name.replace('_', '-')}"]
        or (name != "data_dir" and (options[name].default or None) != (about.default or None))
    ]
    assert not wrong
