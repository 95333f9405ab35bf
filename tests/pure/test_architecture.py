"""Dependencies point down the ranks only, and the public text about the code stays true."""

import ast
import re
from pathlib import Path

GATEWAY = Path(__file__).parents[2] / "gateway"
SAMPLE_DEVICES = GATEWAY.parent / "sample_devices"

RANKS: tuple[tuple[str, ...], ...] = (
    ("errors", "clock", "logs", "redact"),
    ("network", "domain"),
    ("interfaces",),
    ("config", "stats", "events", "drivers"),
    ("formats", "store.queries", "store.files", "sockets", "tls"),
    ("store.records",),
    ("store.protocol",),
    ("store.sqlite.engine",),
    ("store.sqlite",),
    ("store.local",),
    ("intake", "forward"),
    ("services",),
    ("backup", "mirror", "samples"),
    ("http",),
    ("transports", "api"),
    ("capture", "doctor"),
    ("manage",),
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


def test_only_four_parts_open_the_store_of_this_machine() -> None:
    door = "gateway.store.local"
    users = {
        module_name(path)
        for path in GATEWAY.rglob("*.py")
        if any(name == door or name.startswith(f"{door}.") for name in imports_of(path))
    }
    allowed = ("gateway.app", "gateway.cli.client", "gateway.backup.", "gateway.doctor.")
    assert {user for user in users if not user.startswith(allowed)} == set()
    assert users, "nobody opens a store: the rule looks at nothing"


def test_only_the_bridge_imports_paho() -> None:
    users = {name.rpartition(".")[2] for name in users_of("paho", GATEWAY_IMPORTS)}
    assert users == {"paho_bridge", "paho_client"}


def test_no_placeholder_has_a_number() -> None:
    """Python 3.12 before 3.12.4 takes `?1` for a name that got no value, and warns at every call."""
    modules = sorted((GATEWAY / "store").rglob("*.py"))
    assert modules
    assert [path.name for path in modules if re.search(r"\?\d", path.read_text("utf-8"))] == []
