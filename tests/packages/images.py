"""The container image: how it is built for tests, what it says about itself, and how it is entered."""

import http.client
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S
from tests.payloads import ispindel
from tests.program.program import PROJECT

BUILDING_S = 1500
"""Seconds that a build may take, mostly for the network."""

LOCAL_PORTS = {
    "GATEWAY_HOST": "127.0.0.1",
    "GATEWAY_PORT": "0",
    "GATEWAY_TCP_PORT": "0",
    "GATEWAY_MQTT_PORT": "0",
}
"""What a test sets beside the image's own environment: the network is that of this machine."""

# The mounts end with the process. The root is read-only, as with `docker run --read-only --tmpfs /tmp`.
_ENTER_READ_ONLY = """
mount --bind "$0" "$0" && mount --bind /proc "$0/proc" && mount --bind /dev "$0/dev" &&
mount -t tmpfs none "$0/tmp" && mount --bind "$1" "$0/data" && mount -o remount,bind,ro "$0" || exit 125
root=$0 user=$2
shift 2
exec /usr/sbin/chroot --userspec="$user" --groups= "$root" "$@"
"""


@dataclass(frozen=True, slots=True)
class Image:
    """The files of one build, in one directory."""

    folder: Path

    @property
    def oci(self) -> Path:
        """The image for Podman and others."""
        return self.folder / "image.oci.tar"

    @property
    def docker(self) -> Path:
        """The image for Docker."""
        return self.folder / "image.docker.tar.gz"

    @property
    def root(self) -> Path:
        """The files that are in the image."""
        return self.folder / "root.tar.gz"

    @property
    def config(self) -> dict[str, Any]:
        """What the OCI archive says about running it."""
        return dict(self._json(self._manifest["config"]["digest"])["config"])

    @property
    def layers(self) -> list[dict[str, Any]]:
        """The layers of the OCI archive."""
        return list(self._manifest["layers"])

    @property
    def _manifest(self) -> dict[str, Any]:
        [named] = self._json("index.json")["manifests"]
        return self._json(named["digest"])

    def _json(self, name: str) -> dict[str, Any]:
        path = f"./blobs/{name.replace(':', '/')}" if ":" in name else f"./{name}"
        with tarfile.open(self.oci) as archive:
            member = archive.extractfile(path)
            assert member is not None
            return dict(json.load(member))


# It stands for deploy/deb/build, which other tests try: the package is there already.
_PACKED = """#!/bin/sh
test "$1 $2 $3" = "--suite bookworm --out" && mkdir "$4" && cp "$PACKAGE" "$4" && ls "$4"/*.deb
"""


def build_image(folder: Path, package: Callable[[str, str], Path]) -> None:
    """Build the image as its user does, without options for the program in it."""
    if os.geteuid() != 0:
        pytest.skip("an image is built by root")
    for tool in ("mmdebstrap", "buildah"):
        if not shutil.which(tool):
            pytest.skip(f"Debian's {tool} is not installed")
    arch = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout
    made = Image(folder)
    words: list[str | Path] = ["--out", made.oci, "--docker", made.docker, "--root", made.root]
    with tempfile.TemporaryDirectory() as copy:
        project = Path(copy)
        for name in ("deploy/oci", "deploy/deb", "gateway/__init__.py"):
            there = project / name
            there.parent.mkdir(parents=True, exist_ok=True)
            if (PROJECT / name).is_dir():
                shutil.copytree(PROJECT / name, there)
            else:
                shutil.copy(PROJECT / name, there)
        (project / "deploy/deb/build").write_text(_PACKED)
        environment = {
            **os.environ,
            "PACKAGE": str(package("bookworm", arch.strip())),
            "GIT_DIR": str(PROJECT / ".git"),
        }
        done = subprocess.run(
            [project / "deploy/oci/build", *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=BUILDING_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-2000:]


class Buildah:
    """buildah with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self._options = ["--storage-driver", "vfs", "--root", f"{folder}/store", "--runroot", f"{folder}/run"]
        self._environment = {**os.environ, "BUILDAH_ISOLATION": "chroot", "TMPDIR": str(folder)}

    def start(self, *words: str | Path, stderr: int = subprocess.PIPE) -> "subprocess.Popen[str]":
        """Start a command of buildah."""
        return subprocess.Popen(
            ["buildah", *self._options, *words],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def run(self, *words: str | Path) -> str:
        """Run a command of buildah, and return what it prints."""
        with self.start(*words) as process:
            output, errors = process.communicate(timeout=BUILDING_S)
        assert process.returncode == 0, errors
        return output.strip()


@contextmanager
def read_only(
    root: Path, data: Path, words: Sequence[str], environment: dict[str, str], user: str
) -> Iterator["subprocess.Popen[str]"]:
    """Start a program in the tree `root`, in which only `/data` and `/tmp` can be written. End it."""
    process = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", _ENTER_READ_ONLY, root, data, user, *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def lines_until(process: "subprocess.Popen[str]", wanted: str) -> list[str]:
    """Read what a program prints up to a line that begins so."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith(wanted):
            return lines
    raise AssertionError(f"it ended without {wanted!r}: {lines}")


def page_in(lines: Sequence[str]) -> str:
    """The address of the gateway among its first lines."""
    return next(found[1] for line in lines if (found := re.match(r"Page on (http://\S+)/ui/", line)))


def fetched(address: str, path: str) -> str:
    """The text that the gateway answers on a path."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE_S)
    with closing(connection):
        connection.request("GET", path)
        return connection.getresponse().read().decode()


def report(address: str) -> int:
    """Report a reading of an iSpindel; return the status of the answer."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE_S)
    with closing(connection):
        connection.request("POST", "/ingest", ispindel(1), {"Content-Type": "application/json"})
        return connection.getresponse().status
