"""The Debian package: what is in it, and what it does in a bare Debian 12 and 13."""

import gzip
import hashlib
import json
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from typing import cast

import pytest

from gateway import __version__
from tests.packages.conftest import Build, build_package
from tests.packages.trees import USER, Suite, Tree, bare_tree
from tests.program.program import PROJECT

SUITES: tuple[Suite, ...] = ("bookworm", "trixie")
PYTHON = {"bookworm": "3.11", "trixie": "3.13"}
HERE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "amd64")
ELSEWHERE = "arm64" if HERE == "amd64" else "amd64"
MACHINES = {"amd64": 62, "arm64": 183}
"""Numbers of ELF for the architectures."""

SIZE_MAX = 15 * 1024 * 1024
DATA = "/var/lib/hydrometer-gateway"
LIBRARIES = "usr/lib/hydrometer-gateway/"
NAME = "hydrometer-gateway"

# Starts and stops the program as systemd does, and writes down what it was asked.
SYSTEMCTL = f"""#!/bin/sh
echo "$@" >> /var/log/systemctl
case "$*" in
    *is-enabled*) [ -e /srv/disabled ] && echo disabled || echo enabled; exit ;;
    *is-active*) kill -0 "$(cat /run/gateway.pid 2>/dev/null)" 2>/dev/null; exit ;;
    *" restart "*|*" start "*|"stop "*) ;;
    *) exit 0 ;;
esac
if kill "$(cat /run/gateway.pid 2>/dev/null)" 2>/dev/null; then
    while kill -0 "$(cat /run/gateway.pid 2>/dev/null)" 2>/dev/null; do sleep 0.05; done
fi
case "$*" in "stop "*) exit 0 ;; esac
mkdir -p -m 700 {DATA}
set -a; . /etc/{NAME}/gateway.env; set +a
export STATE_DIRECTORY={DATA}
program=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/{NAME}.service)
setsid $program >> /var/log/gateway 2>&1 < /dev/null &
echo $! > /run/gateway.pid
"""


@pytest.fixture(scope="session", params=SUITES)
def suite(request: pytest.FixtureRequest) -> Suite:
    return cast("Suite", request.param)


@pytest.fixture(scope="module")
def tree(suite: Suite, build: Build) -> Iterator[Tree]:
    """A Debian with the package, and with nothing that starts services."""
    with bare_tree(suite, ("python3", "ca-certificates")) as tree:
        tree.put(build(suite, HERE), f"/srv/{NAME}.deb")
        ok(tree, f"apt-get install -y /srv/{NAME}.deb")
        yield tree


def ok(tree: Tree, command: str, user: str = "root") -> str:
    """What the command prints; it must succeed."""
    done = tree.run(command, user)
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@lru_cache(maxsize=2)
def files_of(package: Path) -> dict[str, bytes]:
    """The content of each file in the package, by its name."""
    packed = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        return {
            member.name.removeprefix("./"): cast("BytesIO", archive.extractfile(member)).read()
            for member in archive
            if member.isfile()
        }


def control(package: Path, field: str) -> str:
    words = ["dpkg-deb", "--field", str(package), field]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


# What is in it.


def test_a_package_is_for_one_debian_and_not_too_big(suite: Suite, build: Build) -> None:
    package = build(suite, HERE)
    version = f"{__version__}-1~deb{ {'bookworm': 12, 'trixie': 13}[suite] }u1"
    assert package.name == f"{NAME}_{version}_{HERE}.deb"
    assert control(package, "Version") == version
    assert f"python3 (>= {PYTHON[suite]}), python3 (<< 3." in control(package, "Depends")
    assert package.stat().st_size <= SIZE_MAX


@pytest.mark.parametrize("arch", [HERE, ELSEWHERE])
def test_libraries_are_for_the_python_and_the_machine(suite: Suite, arch: str, build: Build) -> None:
    files = files_of(build(suite, arch))
    machines = {
        name: struct.unpack_from("<H", content, 18)[0]
        for name, content in files.items()
        if content.startswith(b"\x7fELF")
    }
    assert set(machines.values()) == {MACHINES[arch]}
    tags = {found[1] for name in machines if (found := re.search(r"\.cpython-(\d+)-", name))}
    assert tags == {PYTHON[suite].replace(".", "")}


def test_no_file_is_the_builders(build: Build, wheel: Path) -> None:
    places = [str(place).encode() for place in (PROJECT, wheel.parent, Path(sys.prefix))]
    files = files_of(build("bookworm", HERE))
    assert [name for name, content in files.items() if any(place in content for place in places)] == []
    unwanted = re.compile(r"direct_url|__pycache__|\.pyc$|/bin/(?!hydrometer)|lib/hydrometer-gateway/tests/")
    assert [name for name in files if unwanted.search(name)] == []


def test_all_files_of_the_project_are_in_their_places(build: Build) -> None:
    files = files_of(build("bookworm", HERE))
    doc = f"usr/share/doc/{NAME}"
    env = (PROJECT / "gateway/deploying/gateway.env").read_bytes()
    assert files[f"etc/{NAME}/gateway.env"] == env
    assert all(line.startswith(b"#") for line in env.splitlines() if line.strip())
    assert (
        b"\nExecStart=/usr/bin/hydrometer-gateway serve\n" in files[f"usr/lib/systemd/system/{NAME}.service"]
    )
    assert f"etc/avahi/services/{NAME}.service" in files
    completions = (
        "bash-completion/completions/hydrometer-gateway",
        "fish/vendor_completions.d/hydrometer-gateway.fish",
    )
    for name in (*completions, "zsh/vendor-completions/_hydrometer-gateway"):
        assert f"usr/share/{name}" in files
    for page in (PROJECT / "docs/man").glob("*.1"):
        assert gzip.decompress(files[f"usr/share/man/man1/{page.name}.gz"]) == page.read_bytes()
    for document in (PROJECT / "docs").glob("*.md"):
        assert files[f"{doc}/docs/{document.name}"] == document.read_bytes()
    assert f"{doc}/examples/grafana/brewery.json" in files
    assert f"{doc}/examples/prometheus/alerts.yml" in files
    assert (
        gzip.decompress(files[f"{doc}/changelog.Debian.gz"]).decode().startswith(f"{NAME} ({__version__}-1~")
    )
    parts = json.loads(gzip.decompress(files[f"{doc}/sbom.cdx.json.gz"]))["components"]
    assert "aiohttp" in {part["name"] for part in parts}


def test_the_licence_of_each_part_is_there(build: Build) -> None:
    files = files_of(build("bookworm", HERE))
    text = files[f"usr/share/doc/{NAME}/copyright"].decode()
    paragraphs = re.split(r"\n\n(?=Files:)", text)[1:]
    bundled = {
        found[1].replace("_", "-").lower()
        for name in files
        if (found := re.match(rf"{LIBRARIES}([^/]+?)-[^-/]+\.dist-info/METADATA", name))
    }
    named = {re.search(r"^Comment: (\S+)", each, re.MULTILINE)[1] for each in paragraphs}  # type: ignore[index]
    assert {name.replace("_", "-").lower() for name in named} == bundled
    for each in paragraphs:
        licence = each[each.index("\nLicense:") :]
        assert len(licence.splitlines()) > 2 or "common-licenses" in licence, each


def test_the_sums_of_the_files_are_right(build: Build) -> None:
    package = build("bookworm", HERE)
    sums = subprocess.run(
        ["dpkg-deb", "--info", package, "md5sums"], check=True, capture_output=True, text=True
    )
    files = files_of(package)
    named = {line[34:]: line[:32] for line in sums.stdout.splitlines()}
    assert named == {
        name: hashlib.md5(content, usedforsecurity=False).hexdigest()
        for name, content in files.items()
        if not name.startswith("etc/")
    }


def test_two_builds_are_the_same_bytes(build: Build, wheel: Path, sbom: Path, tmp_path: Path) -> None:
    first = build("bookworm", HERE)
    build_package("bookworm", HERE, tmp_path, wheel, sbom)
    assert (tmp_path / first.name).read_bytes() == first.read_bytes()


@pytest.mark.parametrize("arch", [HERE, ELSEWHERE])
def test_lintian_finds_nothing(suite: Suite, arch: str, build: Build) -> None:
    if not shutil.which("lintian"):
        pytest.skip("Debian's lintian is not installed")
    words = ["lintian", "--allow-root", "--fail-on", "error,warning", str(build(suite, arch))]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "")


def test_what_lintian_may_not_say_is_about_libraries_and_has_a_reason() -> None:
    lines = (PROJECT / "deploy/deb/lintian-overrides").read_text().splitlines()
    tags = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
    assert tags
    for number in tags:
        assert lines[number].endswith(f"[{LIBRARIES}*]")
        assert lines[number - 1].startswith("# ")


def test_scripts_are_plain_shell() -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("Debian's shellcheck is not installed")
    scripts = [PROJECT / "deploy/deb" / name for name in ("build", "postinst", "prerm", "postrm")]
    subprocess.run(["shellcheck", *scripts], check=True)


def test_avahi_understands_the_file_for_it() -> None:
    document_type = Path("/usr/share/avahi/avahi-service.dtd")
    if not shutil.which("xmllint") or not document_type.exists():
        pytest.skip("Debian's libxml2-utils or avahi-daemon is not installed")
    words = [
        "xmllint",
        "--noout",
        "--nonet",
        "--path",
        str(document_type.parent),
        "--dtdvalid",
        str(document_type),
    ]
    file = PROJECT / "deploy/avahi/hydrometer-gateway.service"
    checked = subprocess.run([*words, file], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--suite", "sid"], "--suite is bookworm or trixie, not sid"),
        (["--arch", "armhf"], "there are no wheels for armhf: --arch is amd64 or arm64"),
        (["--out"], "--out needs a value"),
        (["--fast", "yes"], "there is no option --fast"),
    ],
)
def test_a_wrong_option_of_the_build_is_named(words: list[str], message: str) -> None:
    done = subprocess.run([PROJECT / "deploy/deb/build", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"deploy/deb/build: {message}\n")


# What it does in a Debian.


@pytest.mark.parametrize("user", ["root", USER])
def test_the_bare_command_works(tree: Tree, user: str) -> None:
    assert ok(tree, "command -v hydrometer-gateway && hydrometer-gateway --version", user).splitlines() == [
        "/usr/bin/hydrometer-gateway",
        __version__,
    ]
    assert "serve" in ok(tree, "hydrometer-gateway --help", user)


def test_the_service_starts_with_the_machine(tree: Tree) -> None:
    wanted = tree.path / f"etc/systemd/system/multi-user.target.wants/{NAME}.service"
    assert wanted.readlink().name == f"{NAME}.service"


def test_other_packages_of_the_machine_do_not_get_in(tree: Tree) -> None:
    """Not those of Debian, of pip, of the user, nor those in the current directory."""
    ok(tree, "mkdir -p ~/bad && echo 'raise SystemExit(9)' | tee ~/bad/typer.py > ~/bad/rich.py", USER)
    for name in ("/usr/local/lib/python3*/dist-packages", "/usr/lib/python3/dist-packages"):
        ok(tree, f"for dir in {name}; do cp /home/{USER}/bad/typer.py $dir/typer.py; done")
    ok(tree, "cd ~/bad && PYTHONPATH=$HOME/bad hydrometer-gateway devices list --help", USER)


def report(url: str, gravity: float) -> None:
    """Send a reading as an iSpindel does."""
    body = {"name": "iSpindel042", "ID": 1, "angle": 40, "temperature": 20, "gravity": gravity}
    host, _, port = url.removeprefix("http://").partition(":")
    with closing(HTTPConnection(host, int(port), timeout=60)) as connection:
        connection.request("POST", "/ingest/ispindel", json.dumps(body))
        assert connection.getresponse().status == 200


@contextmanager
def gateway(tree: Tree, data: str, user: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A gateway on loopback in the tree: its address and its process."""
    options = ["--host", "127.0.0.1", "--port", "0", "--no-mqtt", "--no-tcp"]
    with tree.start([NAME, "serve", "--data-dir", data, *options], user) as process:
        try:
            lines = ""
            assert process.stdout is not None
            while not lines.endswith("\nReady.\n"):
                line = process.stdout.readline()
                assert line, lines
                lines += line
            found = re.search(r"HTTP on (http://\S+)", lines)
            assert found, lines
            yield found[1], process
        finally:
            process.kill()


def gravities(tree: Tree, data: str, user: str) -> list[float]:
    lines = ok(tree, f"{NAME} readings --json --data-dir {data}", user).splitlines()
    return [float(json.loads(line)["gravity"]) for line in lines]


def test_a_reading_survives_a_kill(tree: Tree) -> None:
    data = f"/home/{USER}/data"
    with gateway(tree, data, USER) as (url, process):
        report(url, 12.5)
        process.kill()
    with gateway(tree, data, USER) as (_, process):
        assert gravities(tree, data, USER) == [12.5]
        process.terminate()
        assert process.wait() == 0


def test_the_demo_runs(tree: Tree) -> None:
    """It starts two gateways and the devices as processes of their own."""
    said = ok(tree, f"{NAME} demo --for 10", USER)
    assert "Every stored reading is upstream exactly once" in said


def test_commands_find_the_data_of_the_service(tree: Tree) -> None:
    """As root. Another user is told what to do."""
    # As systemd has it for a service with DynamicUser=.
    ok(tree, f"install -d -m 700 /var/lib/private /var/lib/private/{NAME} && ln -s private/{NAME} {DATA}")
    with gateway(tree, DATA, "root") as (url, process):
        report(url, 11.25)
        assert "iSpindel042" in ok(tree, f"{NAME} devices list")
        refused = tree.run(f"XDG_DATA_HOME=/tmp/none {NAME} devices list", USER)
        assert refused.returncode == 1
        assert "belongs to the service; use `sudo`" in refused.stdout
        process.terminate()
        assert process.wait() == 0
    assert "iSpindel042" in ok(tree, f"{NAME} devices list")


# Its life: installed, upgraded, removed, purged, on a machine that systemd runs.


def older(package: Path, folder: Path) -> Path:
    """The same package with a lower version, as if it were the last release's."""
    subprocess.run(["dpkg-deb", "--raw-extract", package, folder / "root"], check=True)
    file = folder / "root/DEBIAN/control"
    file.write_text(re.sub(r"(?m)^Version: .*$", "Version: 0.0.1-1~deb12u1", file.read_text()))
    made = folder / f"{NAME}-older.deb"
    words = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(folder / "root"), str(made)]
    subprocess.run(words, check=True, capture_output=True)
    return made


def asked(tree: Tree) -> list[str]:
    """What systemctl was asked to change since the last time."""
    log = tree.path / "var/log/systemctl"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return [line for line in lines if " is-" not in line and " preset " not in line]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def machine(suite: Suite, build: Build, tmp_path: Path) -> Iterator[Tree]:
    """A Debian with a stand-in for systemd, and with both releases of the package in /srv."""
    with bare_tree(suite, ("python3", "ca-certificates")) as tree:
        package = build(suite, HERE)
        tree.put(package, "/srv/new.deb")
        tree.put(older(package, tmp_path), "/srv/old.deb")
        (tree.path / "usr/bin/systemctl").write_text(SYSTEMCTL)
        (tree.path / "usr/bin/systemctl").chmod(0o755)
        (tree.path / "run/systemd/system").mkdir(parents=True)
        yield tree


def set_port(tree: Tree, port: int, more: str = "") -> None:
    """As a user does it, before the package is there: it then asks what to do with the file, and keeps it."""
    file = tree.path / f"etc/{NAME}/gateway.env"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        f"GATEWAY_HOST=127.0.0.1\nGATEWAY_PORT={port}\nGATEWAY_NO_MQTT=true\nGATEWAY_NO_TCP=true\n{more}"
    )


INSTALL = "apt-get install -y -o Dpkg::Options::=--force-confold"


def test_from_the_first_installation_to_the_last_trace(machine: Tree) -> None:
    port = free_port()
    set_port(machine, port)
    said = ok(machine, f"{INSTALL} /srv/old.deb")
    assert "The gateway runs, and starts with this machine.\n" in said
    assert re.search(rf"^Its page: http://\S+:{port}/ui/$", said, re.MULTILINE)
    assert f"The first key is in {DATA}/first-key." in said
    assert "sudo hydrometer-gateway doctor\n" in said
    assert asked(machine) == ["--system daemon-reload", "--quiet --system start hydrometer-gateway.service"]
    report(f"http://127.0.0.1:{port}", 12.5)

    said = ok(machine, f"{INSTALL} /srv/new.deb")
    assert said.count(f"A backup of before this upgrade is in {DATA}/before-upgrade.tar.") == 1
    assert asked(machine) == ["--system daemon-reload", "--quiet --system restart hydrometer-gateway.service"]
    assert gravities(machine, DATA, "root") == [12.5]
    left = ok(machine, "find /var/lib -maxdepth 1 -name 'hydrometer*'; ls /run")
    assert "hydrometer-gateway-backup" not in left
    assert "backed-up" not in left

    # Back: the older release, and its data as they were.
    report(f"http://127.0.0.1:{port}", 3.25)
    ok(machine, f"cp {DATA}/before-upgrade.tar /srv/ && {INSTALL} --allow-downgrades /srv/old.deb")
    ok(machine, "systemctl stop hydrometer-gateway.service")
    ok(machine, f"{NAME} restore --data-dir {DATA} /srv/before-upgrade.tar")
    assert gravities(machine, DATA, "root") == [12.5]
    ok(machine, f"{INSTALL} /srv/new.deb")
    asked(machine)

    ok(machine, f"apt-get remove -y {NAME}")
    assert asked(machine) == ["stop hydrometer-gateway.service", "--system daemon-reload"]
    assert machine.processes() == []
    assert not (machine.path / "usr/lib/hydrometer-gateway").exists()
    assert (machine.path / f"etc/{NAME}/gateway.env").exists()
    assert (machine.path / f"etc/avahi/services/{NAME}.service").exists()

    said = ok(machine, f"apt-get purge -y {NAME}")
    assert f"Your readings are kept in {DATA}." in said
    traces = ok(machine, "find / -xdev -path /proc -prune -o -name '*hydrometer*' -print -prune")
    assert traces.splitlines() == [DATA]
    ok(machine, f"{INSTALL} /srv/new.deb")
    assert gravities(machine, DATA, "root") == [12.5]


@pytest.mark.parametrize("suite", ["bookworm"], indirect=True)
def test_a_taken_port_does_not_break_the_installation(machine: Tree) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        set_port(machine, server.getsockname()[1])
        said = ok(machine, f"{INSTALL} /srv/new.deb")
    assert "The gateway does not run. This says why: sudo journalctl -u hydrometer-gateway -n 20\n" in said
    assert ok(machine, f"dpkg-query --show --showformat='${{db:Status-Abbrev}}' {NAME}").strip() == "ii"
    assert "port" in (machine.path / "var/log/gateway").read_text()


@pytest.mark.parametrize("suite", ["bookworm"], indirect=True)
def test_an_upgrade_without_a_backup_goes_on_and_says_so(machine: Tree) -> None:
    """The database is none, so that it cannot be copied; a service that is switched off stays so."""
    set_port(machine, free_port())
    (machine.path / "srv/disabled").touch()
    said = ok(machine, f"{INSTALL} /srv/old.deb")
    assert "The gateway is not started: " in said
    assert "is a disabled or a static unit" in said
    ok(machine, f"mkdir -m 700 {DATA} && echo nothing > {DATA}/gateway.sqlite3")
    said = ok(machine, f"{INSTALL} /srv/new.deb")
    assert "There is no backup of before this upgrade: see the line above." in said
    assert ok(machine, f"cat {DATA}/gateway.sqlite3; ls {DATA}") == "nothing\ngateway.sqlite3\n"


@pytest.mark.parametrize("suite", ["bookworm"], indirect=True)
def test_the_backup_is_of_the_data_that_the_user_has_moved(machine: Tree) -> None:
    port = free_port()
    set_port(machine, port, "GATEWAY_DATA_DIR=/nowhere\nGATEWAY_DATA_DIR=/srv/readings\n")
    ok(machine, "mkdir -m 700 /srv/readings")
    said = ok(machine, f"{INSTALL} /srv/old.deb")
    assert "The first key is in /srv/readings/first-key." in said
    report(f"http://127.0.0.1:{port}", 12.5)
    said = ok(machine, f"{INSTALL} /srv/new.deb")
    assert said.count("A backup of before this upgrade is in /srv/readings/before-upgrade.tar.") == 1
    assert "The gateway runs, and starts with this machine.\n" in said
    ok(machine, f"{NAME} restore --dry-run --data-dir /srv/readings /srv/readings/before-upgrade.tar")
    assert not (machine.path / DATA.lstrip("/") / "before-upgrade.tar").exists()


@pytest.mark.parametrize("suite", ["bookworm"], indirect=True)
def test_an_upgrade_of_python_makes_the_backup_by_the_new_release(machine: Tree) -> None:
    """Where the release before cannot run any more, as after the upgrade to the next Debian."""
    set_port(machine, free_port(), 'GATEWAY_DATA_DIR="/srv/my readings"\n')
    ok(machine, "mkdir -m 700 '/srv/my readings'")
    ok(machine, f"{INSTALL} /srv/old.deb")
    ok(machine, "rm -r /usr/lib/hydrometer-gateway/pydantic_core")
    said = ok(machine, f"{INSTALL} /srv/new.deb")
    assert said.count("A backup of before this upgrade is in /srv/my readings/before-upgrade.tar.") == 1
    ok(machine, f"cd '/srv/my readings' && {NAME} restore --dry-run --data-dir . before-upgrade.tar")
