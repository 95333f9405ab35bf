"""The options of `serve` are the fields of `Settings`, and each value is checked."""

import math
from typing import Any

import pytest
import typer
from typer.core import TyperGroup, TyperOption

from gateway.cli.main import app
from gateway.config import SERVE_KEYS
from gateway.errors import ConfigError
from gateway.settings import OPTIONS, Settings
from tests.cases import each


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


MOST, LEAST = "is the most that it can be", "is the least that it can be"
SIZE = "quota: a size is needed, such as 500MB or 2GiB"


@each(
    "given, words",
    [
        ({"port": 65536}, f"port: 65535 {MOST}"),
        ({"tcp_port": -1}, f"tcp_port: 0 {LEAST}"),
        ({"also_listen": [80, 70_000]}, f"also_listen: 65535 {MOST}"),
        ({"forward_seconds": math.nan}, f"forward_seconds: 86400 {MOST}"),
        ({"forward_seconds": -0.1}, f"forward_seconds: 0 {LEAST}"),
        ({"mirror_hours": 0.001}, f"mirror_hours: 0.01 {LEAST}"),
        ({"keep_days": 0}, f"keep_days: 1 {LEAST}"),
        ({"new_devices": "x"}, "new_devices: it has to be 'accept' or 'ask'"),
        ({"log_level": "x"}, "log_level: it has to be 'debug', 'info', 'warning' or 'error'"),
        ({"quota": "much"}, SIZE),
        ({"quota": "10 QB"}, SIZE),
        ({"quota": "16MiB, more"}, SIZE),
        ({"quota": ""}, SIZE),
        ({"quota": "-5"}, SIZE),
        ({"quota": "1"}, f"quota: 16777216 {LEAST}"),
        (
            {"port": -1, "hostname": ["x y"], "tls_only": True},
            f"port: 0 {LEAST}; hostname: 'x y' is no host name",
        ),
        ({"tls_only": True}, "--tls-only needs --tls-cert and --tls-key"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_right(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(**given)
    assert str(caught.value).startswith(words), str(caught.value)


@each(
    "text, size",
    [
        ("16777216", 2**24),
        ("16MiB", 2**24),
        (" 17 mib ", 17 * 2**20),
        ("4G", 4 * 10**9),
        ("1.5g", 1_500_000_000),
        (".5GiB", 2**29),
        ("20000000b", 20_000_000),
        ("1 TB", 10**12),
        (2**24, 2**24),
    ],
)
def test_a_size_has_a_unit_or_is_in_bytes(text: Any, size: int) -> None:
    assert Settings(quota=text).quota == size
