"""`install-service` and `uninstall-service` on a tree: real files, and the real systemctl without systemd."""

import shutil
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli import install_service
from gateway.cli.main import app
from gateway.deploying import service
from gateway.errors import GatewayError

UNIT = "etc/systemd/system/hydrometer-gateway.service"
WANTED = "etc/systemd/system/multi-user.target.wants/hydrometer-gateway.service"
ENVIRONMENT = "etc/hydrometer-gateway/gateway.env"
LINK = "usr/local/bin/hydrometer-gateway"

needs_systemctl = pytest.mark.skipif(
    shutil.which("systemctl") is None, reason="there is no systemctl on this machine"
)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The installed command, at a place that a service can see."""
    path = tmp_path / "opt" / "bin" / "hydrometer-gateway"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setattr("sys.argv", [str(path), "install-service"])
    monkeypatch.setattr(service, "HIDDEN", ("/home",))
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The root of another system."""
    root = tmp_path / "tree"
    root.mkdir()
    return root


def call(*words: object) -> str:
    """What the command prints; its error is raised."""
    done = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def contents(root: Path) -> dict[str, str]:
    """Every file and link below a root with its text or target; directories that are empty."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = path.read_text("utf-8")
        elif not any(path.iterdir()):
            found[name] = "empty"
    return found


@needs_systemctl
def test_what_is_installed_is_a_unit_options_a_command_and_a_place_for_backups(
    program: Path, tree: Path
) -> None:
    said = call("install-service", "--root", tree, "--port", 8081)
    assert said == f"Installed in {tree}: the gateway starts with that system.\n"
    there = contents(tree)
    assert f"ExecStart={program} serve\n" in there[UNIT]
    assert "GATEWAY_PORT=8081\n" in there[ENVIRONMENT]
    assert there[LINK] == f"-> {program}"
    assert there["var/backups/hydrometer-gateway"] == "empty"
    assert stat.S_IMODE((tree / "var/backups/hydrometer-gateway").stat().st_mode) == 0o1777
    assert there[WANTED].startswith("-> ")
    assert (tree / UNIT).stat().st_mode & 0o777 == 0o644


@needs_systemctl
def test_twice_is_once_and_options_of_the_user_stay(program: Path, tree: Path) -> None:
    call("install-service", "--root", tree)
    with (tree / ENVIRONMENT).open("a") as file:
        file.write("GATEWAY_LAN_VIEW=true\n")
    before = contents(tree)
    call("install-service", "--root", tree)
    assert contents(tree) == before


@needs_systemctl
def test_uninstalling_takes_away_what_was_written_and_keeps_what_is_the_users(
    program: Path, tree: Path
) -> None:
    data, backups = tree / "var/lib/hydrometer-gateway", tree / "var/backups/hydrometer-gateway"
    call("install-service", "--root", tree)
    data.mkdir(parents=True)
    (data / "gateway.sqlite3").write_text("readings")
    assert call("uninstall-service", "--root", tree) == (
        f"The service is gone; the program is still installed.\nKept: {data}\n"
    )
    files = {name for name, text in contents(tree).items() if text != "empty"}
    assert files == {"var/lib/hydrometer-gateway/gateway.sqlite3"}
    call("install-service", "--root", tree, "--port", 8081)
    (backups / "gateway-2026-03-04.tar").write_text("backup")
    said = call("uninstall-service", "--root", tree)
    assert said.splitlines()[1:] == [
        f"Kept: {data}", f"Kept: {tree / ENVIRONMENT}", f"Kept: {backups}",
    ]  # fmt: skip
    assert not (tree / UNIT).exists()
    assert not (tree / LINK).is_symlink()


def test_a_dry_run_prints_each_file_and_command_and_changes_nothing(program: Path, tree: Path) -> None:
    said = call("install-service", "--root", tree, "--dry-run")
    for name in (UNIT, ENVIRONMENT):
        assert f"--- {tree / name}\n" in said
    assert f"--- {tree / LINK} -> {program}\n" in said
    assert f"run systemctl --root={tree} enable hydrometer-gateway.service\n" in said
    assert contents(tree) == {}


def test_a_dry_run_for_the_user_needs_no_root_and_names_what_keeps_it_running(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    said = call("install-service", "--user", "--dry-run")
    assert f"--- {tmp_path}/config/systemd/user/hydrometer-gateway.service\n" in said
    assert "\nrun systemctl --user enable --now hydrometer-gateway.service\n" in said
    assert said.endswith("run loginctl enable-linger\n")


def test_the_package_has_done_that(program: Path, tree: Path) -> None:
    unit = tree / "usr/lib/systemd/system/hydrometer-gateway.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\n")
    with pytest.raises(GatewayError, match="the Debian package has done that"):
        call("install-service", "--root", tree)
    with pytest.raises(GatewayError, match="`sudo apt remove hydrometer-gateway`"):
        call("uninstall-service", "--root", tree)


def test_a_unit_or_a_command_of_another_hand_stays(program: Path, tree: Path) -> None:
    link = tree / LINK
    link.parent.mkdir(parents=True)
    link.write_text("#!/bin/sh\n")
    with pytest.raises(GatewayError, match="is another program"):
        call("install-service", "--root", tree)
    link.unlink()
    unit = tree / UNIT
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\n")
    for command in ("install-service", "uninstall-service"):
        with pytest.raises(GatewayError, match="is not of `install-service`"):
            call(command, "--root", tree)
    assert unit.read_text() == "[Service]\n"


def test_a_program_that_a_service_cannot_see_is_refused(
    program: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "HIDDEN", (str(program.parent),))
    with pytest.raises(GatewayError, match=f"cannot see {program}: install the program by the Debian"):
        call("install-service", "--root", tree)


def test_what_is_missing_is_said_before_anything_changes(
    program: Path, tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(GatewayError, match="there is no directory"):
        call("install-service", "--root", tmp_path / "nowhere")
    monkeypatch.setattr(install_service, "RUNNING", tmp_path / "nowhere")
    with pytest.raises(GatewayError, match="systemd does not run this machine"):
        call("install-service")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(GatewayError, match=r"this needs root: `sudo .*hydrometer-gateway install-service`"):
        call("install-service", "--root", tree)
    monkeypatch.setattr(install_service, "FREE_BYTES", 2**62)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(GatewayError, match="make room first"):
        call("install-service", "--root", tree)
    with pytest.raises(GatewayError, match="nothing is installed as a service"):
        call("uninstall-service", "--root", tree)
    assert contents(tree) == {}
