"""`install-service` in a bare Debian, with a stand-in for systemctl that starts the program."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packages.trees import Tree, bare_tree

PROGRAM = "/opt/hydrometer-gateway/bin/hydrometer-gateway"
DATA = "/var/lib/hydrometer-gateway"
ENVIRONMENT = "/etc/hydrometer-gateway/gateway.env"

SYSTEMCTL = f"""#!/bin/sh
echo "$@" >> /var/log/systemctl
case "$*" in "enable --now"*|restart*|"disable --now"*) ;; *) exit 0 ;; esac
case "$*" in "enable --now"*) kill -0 "$(cat /run/gateway.pid)" 2>/dev/null && exit 0 ;; esac
if kill "$(cat /run/gateway.pid)" 2>/dev/null; then
    while kill -0 "$(cat /run/gateway.pid)" 2>/dev/null; do sleep 0.05; done
fi
case "$*" in disable*) exit 0 ;; esac
program=$(sed -n 's/^ExecStart=//p' /etc/systemd/system/hydrometer-gateway.service)
set -a; . {ENVIRONMENT}; set +a
mkdir -p {DATA}
STATE_DIRECTORY={DATA} setsid $program > /var/log/gateway 2>&1 < /dev/null &
echo $! > /run/gateway.pid
"""

OPTIONS = "GATEWAY_NO_MQTT=true\nGATEWAY_NO_TCP=true\nGATEWAY_HOST=127.0.0.1\n"


@pytest.fixture(scope="module")
def tree(wheel: Path) -> Iterator[Tree]:
    """A Debian 12 with the program in a venv below /opt."""
    with bare_tree("bookworm", include=("python3", "python3-venv", "ca-certificates", "curl")) as tree:
        tree.put(wheel, f"/srv/{wheel.name}")
        ok(tree, f"python3 -m venv /opt/hydrometer-gateway && /opt/*/bin/pip install -q /srv/{wheel.name}")
        stand_in = tree.path / "usr/bin/systemctl"
        stand_in.write_text(SYSTEMCTL)
        stand_in.chmod(0o755)
        (tree.path / "run/systemd/system").mkdir(parents=True, exist_ok=True)
        yield tree


def ok(tree: Tree, command: str, user: str = "root") -> str:
    """What the command prints; it must succeed."""
    done = tree.run(command, user)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return str(done.stdout)


def calls(tree: Tree) -> list[str]:
    """What systemctl was asked since the last time."""
    log = tree.path / "var/log/systemctl"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_from_nothing_to_a_reading_and_back(tree: Tree) -> None:
    port = free_port()
    options = tree.path / ENVIRONMENT.lstrip("/")
    options.parent.mkdir(parents=True)
    options.write_text(OPTIONS)

    refused = tree.run(f"{PROGRAM} install-service", "brewer")
    assert refused.returncode == 1
    assert "this needs root: `sudo " in refused.stdout
    with socket.create_server(("127.0.0.1", port)):
        refused = tree.run(f"{PROGRAM} install-service --port {port}")
    assert refused.returncode == 1
    assert f"port {port} " in refused.stdout
    assert calls(tree) == []

    said = ok(tree, f"{PROGRAM} install-service --port {port}")
    assert said.splitlines()[0] == "The gateway runs, and starts with this machine."
    assert f"Page: http://127.0.0.1:{port}/ui/\n" in said
    assert "sudo hydrometer-gateway keys first\n" in said
    assert calls(tree) == ["daemon-reload", "enable --now hydrometer-gateway.service"]
    assert options.read_text() == f"{OPTIONS}GATEWAY_PORT={port}\n"

    body = json.dumps({"name": "iSpindel042", "ID": 1, "angle": 40, "temperature": 20, "gravity": 12.1})
    ok(tree, f"curl --fail --silent --data '{body}' http://127.0.0.1:{port}/ingest/ispindel")
    assert "iSpindel042" in ok(tree, f"hydrometer-gateway devices list --data-dir {DATA}")

    said = ok(tree, "hydrometer-gateway install-service")
    assert said.splitlines()[0] == "Nothing to change: the gateway runs."
    assert calls(tree) == ["daemon-reload", "enable --now hydrometer-gateway.service"]

    said = ok(tree, "hydrometer-gateway uninstall-service")
    assert said.splitlines() == [
        "The service is gone; the program is still installed.",
        f"Kept: {DATA}",
        f"Kept: {ENVIRONMENT}",
    ]
    assert calls(tree) == ["disable --now hydrometer-gateway.service", "daemon-reload"]
    assert tree.processes() == []
    assert "iSpindel042" in ok(tree, f"{PROGRAM} devices list --data-dir {DATA}")


def test_what_it_would_do_in_a_dry_run_is_what_it_does(tree: Tree) -> None:
    said = ok(tree, f"{PROGRAM} install-service --dry-run")
    written = [line.removeprefix("--- ") for line in said.splitlines() if line.startswith("--- ")]
    assert written == [
        f"/usr/local/bin/hydrometer-gateway -> {PROGRAM}",
        "/var/backups/hydrometer-gateway/ (mode 1777)",
        "/etc/systemd/system/hydrometer-gateway.service",
    ]
    assert calls(tree) == []
    before = everything(tree)
    ok(tree, f"{PROGRAM} install-service --root /")
    assert everything(tree) - before == {line.split(" ")[0].rstrip("/") for line in written}
    ok(tree, f"{PROGRAM} uninstall-service --root /")
    assert everything(tree) == before


def everything(tree: Tree) -> set[str]:
    """Each file and directory of the places that are written to."""
    found = subprocess.run(
        ["find", *(tree.path / name for name in ("etc", "usr/local", "var/backups"))],
        check=True,
        capture_output=True,
        text=True,
    )
    return {line.removeprefix(str(tree.path)) for line in found.stdout.splitlines()}
