"""A command answers at once: what it imports, and that the short ways give what the long ones give."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer._coercion import build_runtime_param
from typer.core import TyperArgument, TyperGroup, TyperOption

from gateway import __version__
from gateway.cli.commands import ROWS
from gateway.cli.main import app
from gateway.cli.values import PlainRuntimeParam
from tests.program.program import environment
from tests.system.cli.conftest import inside

STEPS = """
import io, json, sys
import gateway.__main__ as program

seen = {}
for words in json.loads(sys.argv[1]):
    sys.argv[1:], sys.stdout = words, io.StringIO()
    try:
        program.main()
    except SystemExit as end:
        assert not end.code, end.code
    seen[" ".join(words[:3])] = [sys.stdout.getvalue(), list(sys.modules)]
print(json.dumps(seen), file=sys.__stdout__)
"""
"""Runs commands one after the other, and reports what each wrote and which modules are there by then."""

HEAVY = {"aiohttp", "asyncio", "pydantic", "pydantic_core", "sqlite3", "ssl", "rich"}
HEAVY_PARTS = ("services.", "drivers", "store", "intake", "manage", "api", "site", "forward", "transports")
LIGHT = {
    *("gateway.services.lookalikes", "gateway.services.key_files", "gateway.store", "gateway.store.records"),
}

NEEDS_MORE = {"serve", "doctor", "demo", "tls"}
"""Commands that have more to import already for their help: settings, processes, certificates."""


def heavy(modules: list[str]) -> list[str]:
    ours = tuple(f"gateway.{part}" for part in HEAVY_PARTS)
    return [name for name in modules if name in HEAVY or (name.startswith(ours) and name not in LIGHT)]


async def test_a_command_imports_what_it_needs_and_no_more(tmp_path: Path) -> None:
    here = ["--data-dir", str(tmp_path)]
    steps = [["--version"], ["--help"], ["devices", "list", "--help"], ["devices", "list", *here]]
    steps += [[name, "--help"] for name in ROWS if name not in NEEDS_MORE]
    async with inside(tmp_path):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", STEPS, json.dumps(steps), env=environment(), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
    seen = json.loads(out)
    text, modules = seen["--version"]
    assert text == f"{__version__}\n"
    assert {name for name in modules if name.startswith("gateway")} == {
        *("gateway", "gateway.__main__", "gateway.cli")
    }
    assert "typer" not in modules
    text, modules = seen["--help"]
    assert all(f"\n  {name} " in text for name in ROWS)
    commands = {f"gateway.cli.{row.module}" for row in ROWS.values()}
    assert not commands & set(modules)
    assert not heavy(modules)
    text, modules = seen["devices list --help"]
    assert "List devices" in text
    assert commands & set(modules) == {"gateway.cli.devices"}
    assert not heavy(modules)
    text, modules = seen["devices list --data-dir"]
    assert text.startswith("ID")
    assert not heavy(modules)
    _, modules = seen[" ".join(steps[-1])]
    assert not heavy(modules)


def commands() -> TyperGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def test_the_line_of_each_command_is_the_beginning_of_its_own_help() -> None:
    wrong = [
        (name, limit)
        for name, command in commands().commands.items()
        for limit in (20, 45, 70, 200)
        if typer.core.TyperCommand(name, help=ROWS[name].line).get_short_help_str(limit)
        != command.get_short_help_str(limit)
    ]
    assert not wrong


VALUES: list[Any] = [
    *("", "text", "ä", "a\0b", "json", "JSON", "recipe", "read", "/", ".", "no such file", "--x"),
    *(
        "0",
        "1",
        "-1",
        "007",
        "+5",
        " 5",
        "5 ",
        "1_0",
        "٣",
        "1.5",
        "0.5",
        "-0.0",
        "1e3",
        "false",
        "True",
        "9" * 18,
        "9" * 19,
        "9" * 40,
        "true",
        "yes",
    ),
    *(
        0,
        1,
        -1,
        2**63,
        1.5,
        True,
        False,
        None,
        Path("/"),
        Path("a"),
        b"bytes",
        [],
        ["a", "1"],
        ("a",),
        [1],
        {},
    ),
]
"""Values as the command line, the environment and a TOML file can give them, and others."""


def taken(way: Any, parameter: Any, value: Any) -> Any:
    try:
        result = way.coerce(value, param=parameter, ctx=None)
    except Exception as error:  # of whatever kind: both ways must have the same
        return type(error), str(error)
    return type(result), result


def parameters(command: Any) -> list[Any]:
    inner = getattr(command, "commands", {}).values()
    own = [p for p in command.params if isinstance(p, TyperOption | TyperArgument)]
    return [*own, *(parameter for each in inner for parameter in parameters(each))]


def test_plain_values_are_taken_as_typer_takes_them() -> None:
    """Both ways, for each kind of option and argument that there is."""
    kinds: dict[str, Any] = {}
    for parameter in parameters(commands()):
        info = parameter.type_descriptor.parameter_info
        bounds = (info.min, info.max, info.exists, info.file_okay, info.dir_okay, parameter.multiple)
        kinds[repr((parameter.type_descriptor.annotation, parameter.nargs, *bounds))] = parameter
    wrong = []
    plain = 0
    for kind, parameter in kinds.items():
        ours, typers = parameter.get_runtime_param(), build_runtime_param(parameter.type_descriptor)
        assert isinstance(ours, PlainRuntimeParam)
        for value in VALUES:
            if (mine := taken(ours, parameter, value)) != (other := taken(typers, parameter, value)):
                wrong.append((kind, value, mine, other))
            plain += mine[0] in {str, int, float, bool, type(Path())}
    assert not wrong
    assert plain > len(kinds)


@pytest.mark.parametrize("words", [["devces"], ["devices", "lst"]])
def test_a_misspelt_command_is_answered_with_the_one_that_is_meant(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        app(words, prog_name="hydrometer-gateway")
    assert "Did you mean" in capsys.readouterr().err
