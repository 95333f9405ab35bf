"""What several packages are made of, and how tests of packages share the two processes that run them."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.packages.images import Image, build_image
from tests.packages.trees import Suite
from tests.program.program import PROJECT

SLOW_S = 1800
"""Seconds for a test of a package, with the making of trees and packages that it is the first to need."""

LONGEST_FIRST = ("test_readme", "test_deb", "test_image", "test_app", "test_compose", "test_wheel")
"""The files with the longest tests, so that no process is left with one in the end. Others follow."""

OF_THE_IMAGE = {"test_image", "test_app", "test_compose"}
OF_A_TREE = {"test_deb", "test_service", "test_trees"}
"""Files whose tests share what takes long to make: one process runs them, for one release of Debian."""

Build = Callable[[str, str], Path]
"""Gives the Debian package of a suite for an architecture."""

Once = Callable[[str, Callable[[Path], None]], Path]
"""Gives a directory by its name. The first to ask for it fills it, for all processes of the tests."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    for item in ours:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SLOW_S))

    def place(item: pytest.Item) -> int:
        stem = item.path.stem
        return LONGEST_FIRST.index(stem) if stem in LONGEST_FIRST else len(LONGEST_FIRST)

    places = [number for number, item in enumerate(items) if item in ours]
    for number, item in zip(places, sorted(ours, key=place), strict=True):
        items[number] = item


class ByWhatIsShared(LoadScopeScheduling):  # type: ignore[misc]
    """Gives tests that share what takes long to one process. Groups by marks do nothing with pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        stem = Path(nodeid.partition("::")[0]).stem
        if stem in OF_THE_IMAGE:
            return "image"
        if stem in OF_A_TREE:
            return f"{stem} {[suite for suite in get_args(Suite) if suite in nodeid]}"
        return nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    return ByWhatIsShared(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "told":
                terminalreporter.write_line(str(value))


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Makes directories that all processes share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "made"
    folder.mkdir(exist_ok=True)

    def once(name: str, fill: Callable[[Path], None]) -> Path:
        made, begun = folder / name, folder / f"{name}.begun"
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(begun, ignore_errors=True)
                begun.mkdir()
                fill(begun)
                begun.rename(made)
        return made

    return once


@pytest.fixture(scope="session")
def wheel(once: Once) -> Path:
    """The project's wheel."""

    def fill(folder: Path) -> None:
        words = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(PROJECT)]
        subprocess.run([sys.executable, *words], check=True, capture_output=True)

    [made] = once("wheel", fill).glob("*.whl")
    return made


@pytest.fixture(scope="session")
def sbom(once: Once) -> Path:
    """The list of all parts."""
    if not shutil.which("cyclonedx-py"):
        pytest.skip("cyclonedx-py is not installed")

    def fill(folder: Path) -> None:
        subprocess.run([PROJECT / ".ci/sbom", folder / "sbom.json"], check=True, capture_output=True)

    return once("sbom", fill) / "sbom.json"


def build_package(suite: str, arch: str, out: Path, wheel: Path, sbom: Path) -> None:
    """Build a Debian package of a wheel and of the list of its parts."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    words = ["--suite", suite, "--arch", arch, "--out", str(out), "--wheel", str(wheel), "--sbom", str(sbom)]
    # Its `python3` has to be the one of these tests.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    program = PROJECT / "deploy/deb/build"
    subprocess.run([program, *words], check=True, env=environment, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def build(once: Once, wheel: Path, sbom: Path) -> Build:
    """Builds the package of a suite for an architecture, once for all tests."""

    def build(suite: str, arch: str) -> Path:
        folder = once(f"{suite}-{arch}", lambda folder: build_package(suite, arch, folder, wheel, sbom))
        [package] = folder.glob("*.deb")
        return package

    return build


@pytest.fixture(scope="session")
def image(once: Once, build: Build) -> Image:
    """The container image, built once."""
    return Image(once("image", lambda folder: build_image(folder, build)))
