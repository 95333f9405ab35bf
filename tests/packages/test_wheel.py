"""Wheel and sdist: what is in them, that two builds are the same, and that the wheel works on each Python."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt

from gateway import __version__
from tests.cases import each
from tests.program.program import PROJECT, environment

WHEEL_MB = 4
"""Megabytes of the wheel at most; 1.7 in November 2026."""

KINDS = frozenset(
    {".css", ".env", ".html", ".js", ".json", ".md", ".py", ".service", ".sql", ".svg", ".toml", ".typed"}
)
"""What files of the program may be."""

SDIST = frozenset(
    {".ci", ".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "deploy", "docs", "gateway"}
    | {"pyproject.toml", "requirements-dev.lock", "requirements.lock", "sample_devices", "tests"}
)

PYENV = Path.home() / ".pyenv" / "versions"

SHARED = {
    "share/bash-completion/completions/hydrometer-gateway": "deploy/completions/hydrometer-gateway.bash",
    "share/zsh/site-functions/_hydrometer-gateway": "deploy/completions/_hydrometer-gateway",
    "share/fish/vendor_completions.d/hydrometer-gateway.fish": "deploy/completions/hydrometer-gateway.fish",
}


def run(*words: str | Path, folder: Path = PROJECT, timeout_s: float = 300) -> str:
    """What a program prints, which must succeed."""
    home = {"HOME": str(folder)} if folder != PROJECT else None
    done = subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=environment(home),
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout_s,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and with the wheel that is made of the sdist."""
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, PROJECT)
    return folder


def one(folder: Path, pattern: str) -> Path:
    [found] = folder.glob(pattern)
    return found


def test_two_builds_are_the_same_bytes(built: Path, wheel: Path, tmp_path: Path) -> None:
    """One wheel comes from the sdist, the other one from the project."""
    assert one(built, "*.whl").name == wheel.name == f"hydrometer_gateway-{__version__}-py3-none-any.whl"
    assert one(built, "*.whl").read_bytes() == wheel.read_bytes()
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", tmp_path, PROJECT)
    again, before = one(tmp_path, "*.tar.gz"), one(built, "*.tar.gz")
    assert again.name == before.name == f"hydrometer_gateway-{__version__}.tar.gz"
    assert again.read_bytes() == before.read_bytes()


def test_twine_takes_both(built: Path) -> None:
    told = run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *built.iterdir())
    assert re.findall(r"PASSED|FAILED|WARNING", told) == ["PASSED", "PASSED"]


def test_the_wheel_has_the_program_and_nothing_else(wheel: Path) -> None:
    assert wheel.stat().st_size < WHEEL_MB * 1_000_000
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    of_us = {
        str(path.relative_to(PROJECT)): path.read_bytes()
        for package in ("gateway", "sample_devices")
        for path in (PROJECT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert [name for name in of_us if Path(name).suffix not in KINDS] == []
    assert [name for name in of_us if re.search(r"(^|/)(conftest|test_[^/]*)\.py$|/tests/", name)] == []
    manuals = {f"share/man/man1/{path.name}": path for path in (PROJECT / "docs/man").glob("*")}
    assert all(name.endswith(".1") for name in manuals)
    shared = {**manuals, **{name: PROJECT / path for name, path in SHARED.items()}}
    stem = f"hydrometer_gateway-{__version__}"
    data = {f"{stem}.data/data/{name}": path.read_bytes() for name, path in shared.items()}
    info = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    assert files.keys() == of_us.keys() | data.keys() | {f"{stem}.dist-info/{name}" for name in info}
    assert {name: files[name] for name in of_us | data} == of_us | data


def test_the_sdist_has_what_a_build_and_the_tests_need(built: Path) -> None:
    with tarfile.open(one(built, "*.tar.gz")) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {name.partition("/")[0] for name in names} == SDIST
    assert [name for name in names if name.endswith(".pyc")] == []
    assert {"deploy/package_page.py", "tests/pure/conftest.py", ".ci/run"} <= set(names)


def package_page() -> ModuleType:
    """The module that makes the package page, which no package has."""
    spec = importlib.util.spec_from_file_location("package_page", PROJECT / "deploy" / "package_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def targets(text: str) -> set[str]:
    """Where the links and pictures of a Markdown text lead, those in HTML as well."""
    found = set(re.findall(r"(?:href|src|srcset)=\"([^\"]*)\"", MarkdownIt("commonmark").render(text)))
    return {target for target in found if not target.startswith(("http:", "https:", "mailto:"))}


def test_the_package_page_leads_nowhere_into_the_project(wheel: Path) -> None:
    readme = (PROJECT / "README.md").read_text("utf-8")
    with zipfile.ZipFile(wheel) as archive:
        metadata = message_from_bytes(archive.read(f"hydrometer_gateway-{__version__}.dist-info/METADATA"))
    page = metadata.get_payload()
    assert isinstance(page, str)
    assert targets(readme), "there is no link to look at"
    assert targets(page) == set()
    assert metadata["Description-Content-Type"] == "text/markdown"
    heading = readme.splitlines()[0]
    assert page.lstrip().startswith(heading)


@each(
    "readme, page",
    [
        ("see [the list](docs/a.md#b), and\n[long\nwords](b.md)", "see the list, and\nlong\nwords"),
        ("[there](https://brew.example/a)", "[there](https://brew.example/a)"),
        ("[mail](mailto:a@brew.example) [down](#down)", "[mail](mailto:a@brew.example) down"),
        ("![A picture](docs/a.png)\n\nText", "Text"),
        ("![Far](https://brew.example/a.png)", "![Far](https://brew.example/a.png)"),
        (
            '<picture>\n<source srcset="docs/d.png">\n<img src="docs/a.png" alt="A">\n</picture>\n\nText',
            "Text",
        ),
        ('<p><img alt="A" src="docs/a.png" width="900"></p>', "<p></p>"),
        ('<a href="docs/a.md">the <b>list</b></a>', "the <b>list</b>"),
        ("a\n```sh\necho [x](y)\n```\n[x](y)", "a\n```sh\necho [x](y)\n```\nx"),
    ],
)
def test_links_into_the_project_become_words(readme: str, page: str) -> None:
    assert package_page().page(readme) == page


def interpreters() -> list[str]:
    """Each Python here that the package is for; this one is the first."""
    found = {sys.version_info[:2]: sys.executable}
    for minor in (11, 12, 13):
        for path in (*PYENV.glob(f"3.{minor}.*/bin/python3"), shutil.which(f"python3.{minor}")):
            if (
                path
                and subprocess.run([path, "-c", "import venv"], check=False, capture_output=True).returncode
                == 0
            ):
                found.setdefault((3, minor), str(path))
    return list(found.values())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("python", interpreters())
def test_the_wheel_works_where_it_is_installed(python: str, wheel: Path, tmp_path: Path) -> None:
    run(python, "-m", "venv", tmp_path / "venv")
    pip = (tmp_path / "venv/bin/pip", "install", "--quiet")
    run(*pip, "--require-hashes", "--only-binary=:all:", "-r", PROJECT / "requirements.lock")
    run(*pip, "--no-deps", "--no-index", wheel, folder=tmp_path)
    program = tmp_path / "venv/bin/hydrometer-gateway"
    assert run(program, "--version", folder=tmp_path) == f"{__version__}\n"
    told = run(program, "demo", "--for", "10", folder=tmp_path)
    assert "Every stored reading is upstream exactly once" in told, told
