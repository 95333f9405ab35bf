"""Bare Debian systems in directories, for tests of packages: made by mmdebstrap, entered by chroot."""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

import pytest

Suite = Literal["bookworm", "trixie"]

Finished = subprocess.CompletedProcess[str]

MADE_FOR_S = 7 * 86400
"""Seconds after which a kept tree is made anew, because Debian's packages have moved on."""

MAKING_S = 900
"""Seconds that the making of a tree may take, mostly for the network."""

MACHINE_CA = Path("/etc/ssl/certs/ca-certificates.crt")
TREE_CA = "/etc/ssl/machine-ca.crt"
"""The authorities that this machine trusts: a file that the package ca-certificates does not replace."""

PASSED_ON = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT"),
    *("http_proxy", "https_proxy", "no_proxy"),
)
"""Environment variables of this machine that a download needs in the tree, too."""

USER = "brewer"
"""A user without rights that each tree has, with /home/brewer."""

# Each process has the mounts for itself. They are gone with it, so that removing a tree removes nothing else.
_ENTER = """
mount --bind /proc "$0/proc" && mount --rbind /dev "$0/dev" || exit 125
exec chroot "$@"
"""


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree, which belongs to one test or fixture."""

    path: Path

    def run(self, command: str, user: str = "root", timeout_s: float = 300) -> Finished:
        """Run a command of `sh` in the tree, in the home of the user. Its stderr is part of its stdout."""
        with self.start(["sh", "-c", command], user) as process:
            try:
                output, _ = process.communicate(timeout=timeout_s)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, output)

    def start(self, words: Sequence[str], user: str = "root") -> subprocess.Popen[str]:
        """Start a program in the tree, with its stderr in its stdout. The process is the program itself."""
        home = "/root" if user == "root" else f"/home/{user}"
        environment = {
            "HOME": home,
            "USER": user,
            "LOGNAME": user,
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "DEBIAN_FRONTEND": "noninteractive",
            "PIP_CERT": TREE_CA,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
        }
        inside = ["env", "--chdir", home, *words]
        return subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", _ENTER, self.path, f"--userspec={user}:", self.path, *inside],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def put(self, file: Path, where: str) -> None:
        """Copy a file or a directory of this machine to the absolute path `where` in the tree."""
        there = self.path / where.lstrip("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            shutil.copytree(file, there, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy(file, there)

    def processes(self) -> list[int]:
        """Return the numbers of all processes that run in the tree."""
        numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
        return [number for number in numbers if self._has(number)]

    def _has(self, number: int) -> bool:
        try:
            return Path(f"/proc/{number}/root").readlink() == self.path
        except OSError:
            return False  # it has ended


@contextmanager
def bare_tree(suite: Suite, include: Sequence[str] = ()) -> Iterator[Tree]:
    """Give a tree with Debian's smallest system and these packages. End its processes, and remove it."""
    if os.geteuid() != 0:
        pytest.skip("a Debian tree needs root")
    if not shutil.which("mmdebstrap"):
        pytest.skip("Debian's mmdebstrap is not installed")
    with _kept(suite, include) as kept:
        folder = Path(
            tempfile.mkdtemp(prefix=f"tree-{suite}-", dir="/var/tmp")
        ).resolve()  # /tmp may be memory
        tree = Tree(folder / "tree")
        try:
            layers = [f"lowerdir={kept}"]
            for option, name in (("upperdir", "changed"), ("workdir", "work")):
                (folder / name).mkdir()
                layers.append(f"{option}={folder / name}")
            tree.path.mkdir()
            # `volatile` waits for no disk: no test switches the machine off.
            options = ",".join([*layers, "volatile"])
            mount = ["mount", "-t", "overlay", "overlay", "-o", options, str(tree.path)]
            if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
                subprocess.run(["cp", "-a", f"{kept}/.", tree.path], check=True)
            yield tree
        finally:
            _end(tree)
            if tree.path.is_mount():
                subprocess.run(["umount", tree.path], check=True)
            shutil.rmtree(folder)


@contextmanager
def _kept(suite: Suite, include: Sequence[str]) -> Iterator[Path]:
    """Give such a tree, which nobody changes. One process makes it, others wait for that."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", "/var/tmp")).resolve() / "hydrometer-gateway-trees"  # noqa: S108
    folder.mkdir(parents=True, exist_ok=True)
    name = sha256(repr([_SMALLEST, sorted(include)]).encode()).hexdigest()[:16]
    kept, begun = folder / f"{suite}-{name}", folder / f"{suite}-{name}.begun"

    def current() -> bool:
        return kept.exists() and time.time() - kept.stat().st_mtime < MADE_FOR_S

    with (folder / f"{suite}-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if not current():
            fcntl.flock(lock, fcntl.LOCK_EX)  # until nobody uses the old one
            if not current():
                # A killed mmdebstrap leaves /dev/shm of this machine mounted in what it has begun.
                subprocess.run(["rm", "-rf", "--one-file-system", kept, begun], check=True)
                _make(suite, include, begun)
                begun.rename(kept)
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield kept


_SMALLEST = [
    *("mmdebstrap", "--quiet", "--variant=minbase", "--include=passwd,ca-certificates"),
    # Nothing waits for the disk, and the lists of packages stay for those that are added.
    *("--dpkgopt=force-unsafe-io", "--skip=cleanup/apt/lists"),
    f"--customize-hook=cp {MACHINE_CA} $1{TREE_CA}",
    f"--customize-hook=chroot $1 useradd --create-home --shell /bin/sh {USER}",
    "--customize-hook=cp /etc/resolv.conf /etc/hosts $1/etc/",
]


def _make(suite: Suite, include: Sequence[str], path: Path) -> None:
    """Make the smallest system, or add packages to it."""
    if not include:
        subprocess.run([*_SMALLEST, "--format=directory", suite, str(path)], check=True, timeout=MAKING_S)
        os.utime(path)
        return
    with _kept(suite, ()) as smallest:
        subprocess.run(["cp", "-a", smallest, path], check=True)
        made_at_s = smallest.stat().st_mtime
    install = f"apt-get install -y --no-install-recommends {' '.join(include)}"
    added = Tree(path).run(f"{install} && apt-get clean && rm -rf /var/lib/apt/lists/*", timeout_s=MAKING_S)
    assert added.returncode == 0, added.stdout
    os.utime(path, (made_at_s, made_at_s))


def _end(tree: Tree) -> None:
    """End the processes that a test left in the tree. They may start others, so look until none is left."""
    while numbers := tree.processes():
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        time.sleep(0.05)
