"""Dependencies point down the ranks only, and the public text about the code stays true."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from gateway.cli.commands import ROWS

GATEWAY = Path(__file__).parents[2] / "gateway"
SAMPLE_DEVICES = GATEWAY.parent / "sample_devices"

RANKS: tuple[tuple[str, ...], ...] = (
    ("processes",),
    ("errors", "clock", "logs", "redact", "children"),
    ("network", "domain", "late", "deploying"),
    ("interfaces", "insight"),
    ("config", "stats", "events", "drivers"),
    ("settings",),
    ("formats", "store.queries", "store.files", "sockets", "tls"),
    ("store.records", "outward"),
    ("store.protocols",),
    ("store.protocol",),
    ("store.sqlite.engine",),
    ("store.glance",),
    ("store.sqlite",),
    ("store.local",),
    ("intake", "forward"),
    ("services",),
    ("backup", "mirror", "samples"),
    ("http",),
    ("transports", "api", "notify"),
    ("integrations",),
    ("capture", "doctor"),
    ("manage",),
    ("endpoints", "ui"),
    ("site",),
    ("listening",),
    ("app",),
    ("cli",),
    ("__main__",),
)
"""A part may import itself, parts of lower rank, and nothing else of ours."""


def part_of(module: str) -> str:
    """The part that a module belongs to: `gateway.drivers.tilt` is in `drivers`."""
    name = module.removeprefix("gateway.")
    for part in sorted((part for rank in RANKS for part in rank), key=len, reverse=True):
        if name == part or name.startswith(f"{part}."):
            return part
    if name in {"gateway", "store"}:
        return ""
    raise AssertionError(f"{module} is in no rank: give it a place in the map")


def rank_of(part: str) -> int:
    return next(number for number, rank in enumerate(RANKS) if part in rank)


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
            if node.module in {"gateway", "gateway.store"}:
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def module_name(path: Path) -> str:
    parts = path.relative_to(GATEWAY.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


GATEWAY_IMPORTS = {path: imports_of(path) for path in sorted(GATEWAY.rglob("*.py"))}


def users_of(package: str, imports: dict[Path, set[str]]) -> list[str]:
    """The modules that import the package or a part of it."""
    return [
        module_name(path)
        for path, names in imports.items()
        if any(name.split(".")[0] == package for name in names)
    ]


def test_imports_point_down() -> None:
    offenders = []
    for path, names in GATEWAY_IMPORTS.items():
        here = part_of(module_name(path))
        for name in names:
            if not name.startswith("gateway.") or name == "gateway.__version__":
                continue
            there = part_of(name)
            if there and there != here and rank_of(there) >= rank_of(here):
                offenders.append(f"{module_name(path)} imports {name}")
    assert offenders == []


def test_sample_devices_know_nothing_of_the_gateway() -> None:
    imports = {path: imports_of(path) for path in sorted(SAMPLE_DEVICES.rglob("*.py"))}
    assert imports
    assert users_of("gateway", imports) == []


def test_gateway_knows_nothing_of_the_sample_devices() -> None:
    assert users_of("sample_devices", GATEWAY_IMPORTS) == []


def test_nothing_above_the_store_names_its_database() -> None:
    offenders = [
        f"{module_name(path)} imports {name}"
        for path in sorted(GATEWAY.rglob("*.py"))
        if not path.is_relative_to(GATEWAY / "store")
        for name in imports_of(path)
        if name.split(".")[0] in {"sqlite3", "aiosqlite"} or name.startswith("gateway.store.sqlite")
    ]
    assert not offenders


@cache
def imported_first(module: str) -> frozenset[str]:
    """The modules and names that a module of ours imports when it is imported; not what its functions do."""
    path = GATEWAY.parent.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not module.startswith("gateway") or not path.exists():
        return frozenset()
    body = ast.parse(path.read_text("utf-8")).body
    found = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)


def imported_at_once(module: str) -> set[str]:
    """All modules and names that are imported with a module."""
    found, left = set(), {module}
    while left:
        found |= left
        left = {name for each in left for name in imported_first(each)} - found
    return found


HEAVY = {"aiohttp", "asyncio", "pydantic", "sqlite3", "ssl", "rich"}
HEAVY_PARTS = ("gateway.drivers", "gateway.intake", "gateway.services.build", "gateway.site", "gateway.app")
NEED_MORE = {"serve", "doctor", "demo", "tls"}
"""Commands whose help needs more already: the settings, the tools of a certificate."""


def test_the_command_line_and_its_commands_import_little() -> None:
    """`tests/system/cli/test_start.py` looks at running ones."""
    modules = {row.module for row in ROWS.values()}
    commands = {f"gateway.cli.{module}" for module in modules}
    assert "typer" not in imported_at_once("gateway.__main__")
    assert not commands & imported_at_once("gateway.cli.main")
    offenders = [
        f"{module} imports {name}"
        for module in ["gateway.cli.main", *(f"gateway.cli.{module}" for module in modules - NEED_MORE)]
        for name in imported_at_once(module)
        if name.split(".")[0] in HEAVY or name.startswith(HEAVY_PARTS)
    ]
    assert not offenders


SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|PRAGMA|ATTACH|CREATE|DROP|VACUUM|WHERE|VALUES)\b")

OWN_WORDS = {
    ("brewsessions", "' AND '.join(terms)"): "conditions from a table, by the names of members",
    ("recipes", "' AND '.join(terms)"): "the same",
    ("brewsessions", "order"): "an order from a table",
    ("recipes", "order"): "the same",
    ("connections", "int.from_bytes(os.urandom(4), 'big', signed=True)"): "a number",
    ("database", "self.room.max_pages(page_bytes, self.path)"): "a number",
    ("edits", "', '.join((f'{name} = :{name}' for name in columns))"): "columns of the reading's model",
    ("edits", "checksum.stored_sql(checksum.content_sql(replaced=tuple(columns)), 'session_id')"): "the same",
    ("inspection", "order"): "one of two orders",
    ("inspection", "table"): "a table of the schema, compared with ours",
    ("recovery", "columns"): "columns of our own empty database",
    ("recovery", "', '.join('?' * len(values))"): "placeholders",
    ("recovery", "table"): "a table of our own empty database",
    ("rows", "more"): "an argument that is written out at each call",
    ("rows", "chosen"): "the same",
    ("rows", "picked"): "numbers of columns",
    ("rows", "crc"): "our own expression",
    ("rows", "','.join([row] * size)"): "placeholders",
    ("schema", "number"): "the number of a migration",
    ("upkeep", "marks"): "placeholders",
}
"""Parts of statements that are made while the gateway runs: module and expression, and their origin."""


def parts_of_statements(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the expressions inside the statements that functions of a module put together."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for text in ast.walk(function):
                if isinstance(text, ast.JoinedStr):
                    fixed = "".join(part.value for part in text.values if isinstance(part, ast.Constant))  # type: ignore[misc]
                    if SQL.search(fixed):
                        yield from (
                            part.value for part in text.values if isinstance(part, ast.FormattedValue)
                        )


def test_statements_are_made_of_our_own_words() -> None:
    """Parameters carry what others send. A statement holds constants, or a part with a known origin."""
    found = set()
    for path in sorted((GATEWAY / "store").rglob("*.py")):
        for part in parts_of_statements(ast.parse(path.read_text("utf-8"))):
            names = [node.id for node in ast.walk(part) if isinstance(node, ast.Name)]
            if not all(name.isupper() or name == "checksum" for name in names) or not names:
                found.add((path.stem, ast.unparse(part)))
    assert found == OWN_WORDS.keys()


def test_runtime_imports_are_direct_dependencies() -> None:
    """A package that only comes with another may go with the other's next release."""
    project = tomllib.loads((GATEWAY.parent / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[^\w-]", each)[0] for each in project["dependencies"]}
    modules = {"paho-mqtt": "paho", "pillow": "PIL", "prometheus-client": "prometheus_client"}
    allowed = {modules.get(name, name) for name in declared} | sys.stdlib_module_names
    allowed |= {"gateway", "sample_devices", "pydantic_core"}  # pydantic pins its core to the very release
    sources = [*GATEWAY_IMPORTS.values(), *map(imports_of, sorted(SAMPLE_DEVICES.rglob("*.py")))]
    assert {name.split(".")[0] for names in sources for name in names} - allowed == set()


def test_only_four_parts_open_the_store_of_this_machine() -> None:
    door = "gateway.store.local"
    users = {
        module_name(path)
        for path in GATEWAY.rglob("*.py")
        if any(name == door or name.startswith(f"{door}.") for name in imports_of(path))
    }
    allowed = ("gateway.app", "gateway.cli.in_process", "gateway.backup.", "gateway.doctor.")
    assert {user for user in users if not user.startswith(allowed)} == set()
    assert users, "nobody opens a store: the rule looks at nothing"


def test_only_connections_to_a_broker_import_paho() -> None:
    users = {name.rpartition("gateway.")[2] for name in users_of("paho", GATEWAY_IMPORTS)}
    transports = {f"transports.paho_{name}" for name in ("bridge", "client", "publish")}
    assert users == transports | {"forward.kinds.mqtt", "integrations.home_assistant.connection"}


def test_no_placeholder_has_a_number() -> None:
    """Python 3.12 before 3.12.4 takes `?1` for a name that got no value, and warns at every call."""
    modules = sorted((GATEWAY / "store").rglob("*.py"))
    assert modules
    assert [path.name for path in modules if re.search(r"\?\d", path.read_text("utf-8"))] == []
