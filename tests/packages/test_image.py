"""The container image, built as a release does: its size, what it says about itself, and that it runs."""

import json
import os
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import __version__
from gateway.config import HTTP_PORT, MQTT_PORT, TCP_PORT
from tests.packages.images import (
    LOCAL_PORTS,
    Buildah,
    Image,
    lines_until,
    page_in,
    read_only,
    report,
)

MEGABYTE = 1_000_000
COMPRESSED_MB, UNPACKED_MB = 70, 200

NAME = "localhost/hydrometer-gateway:latest"

SERVE_AND_LOOK = """
hydrometer-gateway serve & gateway=$!
read -r reported
hydrometer-gateway doctor --quick > /tmp/doctor 2>&1
echo "doctor $?"
hydrometer-gateway readings --last 9 --json
echo "user $(id -u)"
kill $gateway; wait $gateway
echo "ended $?"
"""


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Buildah:
    return Buildah(tmp_path_factory.mktemp("buildah"))


@pytest.fixture(scope="module")
def container(image: Image, buildah: Buildah) -> Iterator[str]:
    name = buildah.run("from", "--quiet", f"oci-archive:{image.oci}")
    yield name
    buildah.run("rm", name)


def test_it_is_small(image: Image) -> None:
    for file in (image.oci, image.docker, image.root):
        assert file.stat().st_size <= COMPRESSED_MB * MEGABYTE, file.name
    with tarfile.open(image.root) as archive:
        size = sum(member.size for member in archive)
    assert size <= UNPACKED_MB * MEGABYTE


def test_it_says_how_it_is_run(image: Image) -> None:
    config = image.config
    assert config["User"] == "1000:1000"
    assert config["Volumes"] == {"/data": {}}
    assert "GATEWAY_DATA_DIR=/data" in config["Env"]
    assert set(config["ExposedPorts"]) == {f"{port}/tcp" for port in (HTTP_PORT, TCP_PORT, MQTT_PORT)}
    assert (config["Entrypoint"], config["Cmd"]) == (["hydrometer-gateway"], ["serve"])
    assert config["StopSignal"] == "SIGTERM"
    labels = {
        name.removeprefix("org.opencontainers.image."): value for name, value in config["Labels"].items()
    }
    assert (labels["title"], labels["version"], labels["licenses"]) == (
        "hydrometer-gateway",
        __version__,
        "MIT",
    )
    assert labels["created"].endswith("Z")
    assert {"description", "revision"} <= labels.keys()


def test_the_archive_for_docker_says_the_same_and_checks_the_health(image: Image) -> None:
    with tarfile.open(image.docker) as archive:
        [named] = json.load(archive.extractfile("./manifest.json") or pytest.fail("no manifest"))
        config = json.load(archive.extractfile(f"./{named['Config']}") or pytest.fail("no config"))["config"]
    assert named["RepoTags"] == [NAME]
    assert config["Healthcheck"]["Test"] == ["CMD", "hydrometer-gateway", "doctor", "--quick"]
    for name, value in image.config.items():
        assert config[name] == value, name


def test_no_papers_and_no_caches_are_in_it(image: Image) -> None:
    with tarfile.open(image.root) as archive:
        members = {member.name.removeprefix("./"): member for member in archive}
    for folder in (
        "usr/share/man/",
        "usr/share/info/",
        "usr/share/locale/",
        "var/lib/apt/lists/",
        "var/cache/",
    ):
        assert not [name for name, found in members.items() if name.startswith(folder) and found.isfile()]
    papers = [name for name, found in members.items() if name.startswith("usr/share/doc/") and found.isfile()]
    own = {name.rpartition("/")[2] for name in papers if name.startswith("usr/share/doc/hydrometer-gateway/")}
    assert own == {"copyright", "sbom.cdx.json.gz"}, "the licences and the parts of all that is in it"
    assert {name.rpartition("/")[2] for name in papers} == {"copyright", "sbom.cdx.json.gz"}
    assert not [name for name in members if "/tests/test_" in name]
    assert (members["data"].uid, members["data"].gid, members["data"].mode) == (1000, 1000, 0o700)
    assert not [name for name, found in members.items() if found.mode & 0o6000 and found.uid == 1000]


def test_its_times_are_those_of_the_commit(image: Image) -> None:
    """What differs between two builds of one commit is a package of Debian."""
    with tarfile.open(image.oci) as archive:
        times = {member.mtime for member in archive}
    assert len(times) == 1
    with image.root.open("rb") as file:
        assert file.read(8)[4:8] == bytes(4), "gzip keeps no time"
    with tarfile.open(image.root) as archive:
        assert max(member.mtime for member in archive) <= times.pop()


def test_the_version(container: str, buildah: Buildah) -> None:
    assert buildah.run("run", container, "--", "hydrometer-gateway", "--version") == __version__


def test_it_serves_as_the_user_without_rights(container: str, buildah: Buildah) -> None:
    variables = [word for name, value in LOCAL_PORTS.items() for word in ("--env", f"{name}={value}")]
    words = ("run", *variables, container, "--", "sh", "-c", SERVE_AND_LOOK)
    with buildah.start(*words, stderr=subprocess.STDOUT) as process:
        try:
            first = lines_until(process, "Ready")
            assert "Data in /data" in first
            assert report(page_in(first)) == 200
            output, _ = process.communicate("reported\n", timeout=120)
        finally:
            process.kill()
    assert "doctor 0" in output
    assert '"angle":45.25' in output, output
    assert "user 1000" in output
    assert "ended 0" in output


def test_it_runs_with_a_root_that_is_read_only(image: Image, tmp_path: Path) -> None:
    """As uid 1000, by the archive's own words, with nothing else of the machine in its environment."""
    root, data = tmp_path / "root", tmp_path / "data"
    root.mkdir()
    data.mkdir(mode=0o700)
    os.chown(data, 1000, 1000)
    subprocess.run(["tar", "--extract", "--file", image.root, "--directory", root], check=True)
    config = image.config
    environment = {**dict(word.split("=", 1) for word in config["Env"]), **LOCAL_PORTS}
    words = [*config["Entrypoint"], *config["Cmd"]]
    with read_only(root, data, words, environment, config["User"]) as process:
        first = lines_until(process, "Ready")
        assert report(page_in(first)) == 200
        assert f"Uid:\t{1000}\t" in Path(f"/proc/{process.pid}/status").read_text()
        process.send_signal(getattr(signal, config["StopSignal"]))
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "Traceback" not in output
    assert (data / "gateway.sqlite3").stat().st_uid == 1000
    assert not [path for path in root.rglob("*.pyc") if path.stat().st_mtime > root.stat().st_mtime + 1]
