"""Dependencies point down the ranks only, and the public text about the code stays true."""

import ast
import re
from pathlib import Path

import pytest

GATEWAY = Path(__file__).parents[2] / "gateway"
SAMPLE_DEVICES = GATEWAY.parent / "sample_devices"

RANKS: tuple[tuple[str, ...], ...] = (
    ("errors", "failures", "clock", "network", "logs", "redact"),
    ("domain",),
    ("config", "stats", "events", "drivers"),
    ("formats", "store.queries", "store.files"),
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
            if node.module == "gateway":
                found |= {f"gateway.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def module_name(path: Path) -> str:
    parts = path.relative_to(GATEWAY.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("path", sorted(GATEWAY.rglob("*.py")), ids=module_name)
def test_imports_point_down(path: Path) -> None:
    here = part_of(module_name(path))
    for imported in imports_of(path):
        if not imported.startswith("gateway.") or imported == "gateway.__version__":
            continue
        there = part_of(imported)
        if there and there != here:
            assert rank_of(there) < rank_of(here), f"{module_name(path)} imports {imported}"


@pytest.mark.parametrize("path", sorted(SAMPLE_DEVICES.rglob("*.py")), ids=lambda path: path.stem)
def test_sample_devices_know_nothing_of_the_gateway(path: Path) -> None:
    assert not any(name.split(".")[0] == "gateway" for name in imports_of(path))


@pytest.mark.parametrize("path", sorted(GATEWAY.rglob("*.py")), ids=module_name)
def test_gateway_knows_nothing_of_the_sample_devices(path: Path) -> None:
    assert not any(name.split(".")[0] == "sample_devices" for name in imports_of(path))


def test_only_the_bridge_imports_paho() -> None:
    users = {
        path.name
        for path in GATEWAY.rglob("*.py")
        if any(name.split(".")[0] == "paho" for name in imports_of(path))
    }
    assert users == {"paho_bridge.py", "paho_client.py"}


@pytest.mark.parametrize("path", sorted((GATEWAY / "store").rglob("*.py")), ids=module_name)
def test_no_placeholder_has_a_number(path: Path) -> None:
    """Python 3.12 before 3.12.4 takes `?1` for a name that got no value, and warns at every call."""
    assert not re.search(r"\?\d", path.read_text("utf-8"))
