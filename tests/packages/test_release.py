"""`deploy/release`: what it makes and checks, with stand-ins for the scripts that take minutes."""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway import __version__
from tests.program.program import PROJECT, environment

STAND_INS = {
    ".ci/lock": "",
    ".ci/audit": 'exit "${AUDIT:-0}"',
    ".ci/sbom": 'echo "{}" > "$1"',
    "deploy/deb/build": "while [ $# -gt 1 ]; do case $1 in --suite) s=$2;; --arch) a=$2;; --out) o=$2;; "
    '--wheel) test -s "$2" || exit 1;; esac; shift 2; done; [ $s = bookworm ] && r=12 || r=13; '
    'echo > "$o/gateway~deb${r}u1_$a.deb"',
    "deploy/oci/build": 'test -s "$6" || exit 1; echo > "$2"; echo > "$4"',
    "bin/chromium": "",
    "bin/buildah": "",
    "bin/mmdebstrap": "",
    "bin/twine": '[ -n "${BUILT:-}" ] || PATH=${PATH#*:} exec twine "$@"',
}
PYTHON = """#!/bin/sh
case "$*" in
"-m tests.pictures"*) mkdir "$4" && cp docs/pictures/* "$4"; exit "${PICTURES:-0}" ;;
"-m gateway.cli.manual"*) cp -r docs/man "$3" ;;
"-m pytest"*) ;;
"-m build"*)
    [ -n "${BUILT:-}" ] || exec "$REAL" "$@"
    mkdir -p "$5"
    echo | tee "$5/hydrometer_gateway-$BUILT-py3-none-any.whl" >"$5/hydrometer_gateway-$BUILT.tar.gz"
    ;;
*) exec "$REAL" "$@" ;;
esac
"""
"""Does what is to be tested; what a program makes is current. With BUILT, wheel and sdist are stand-ins."""

SUITES = [(suite, arch) for suite in ("bookworm", "trixie") for arch in ("amd64", "arm64")]
RELEASES = {"bookworm": 12, "trixie": 13}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project under git, clean, with stand-ins."""
    copy = tmp_path / "project"
    ignored = shutil.ignore_patterns("__pycache__", ".git", ".venv", "dist", ".*_cache", ".hypothesis")
    shutil.copytree(PROJECT, copy, ignore=ignored)
    (copy / "docs" / "pictures").mkdir(exist_ok=True)
    (copy / "docs" / "pictures" / "one.svg").write_text("<svg/>")
    for name, body in STAND_INS.items():
        path = copy / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    (copy / "bin" / "python3").write_text(PYTHON)
    (copy / "bin" / "python3").chmod(0o755)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "All"]):
        git(copy, *words)
    return copy


def git(project: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@brew.example", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *who, *words], cwd=project, check=True, capture_output=True, text=True
    ).stdout


def release(project: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    real = shutil.which("python3")
    assert real is not None
    env = environment(
        {
            "PATH": f"{project / 'bin'}:{os.environ['PATH']}",
            "REAL": real,
            "GIT_AUTHOR_NAME": "A",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@brew.example",
            **more,
        }
    )
    return subprocess.run(
        [project / "deploy" / "release", *words], env=env, check=False, capture_output=True, text=True
    )


def not_done(told: str) -> str:
    return told.partition("\nNot done:\n")[2].partition("FAILED:")[0]


def test_a_release_has_all_files_their_sums_and_a_tag(project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = release(project, __version__, "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    names = {path.name for path in out.iterdir()}
    arch = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout
    image = f"hydrometer-gateway-{__version__}-{arch.strip()}"
    assert names == {
        f"hydrometer_gateway-{__version__}-py3-none-any.whl",
        f"hydrometer_gateway-{__version__}.tar.gz",
        f"hydrometer-gateway-{__version__}.cdx.json",
        *(f"gateway~deb{RELEASES[suite]}u1_{arch}.deb" for suite, arch in SUITES),
        *((f"{image}.oci.tar", f"{image}.docker.tar.gz") if os.geteuid() == 0 else ()),
        "NOTES.md",
        "SHA256SUMS",
    }
    sums = dict(line.split("  ")[::-1] for line in (out / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names - {"SHA256SUMS"}
    }
    notes = (out / "NOTES.md").read_text()
    assert notes.startswith("### Added\n")
    assert "## [" not in notes
    assert git(project, "tag", "--list") == f"v{__version__}\n"
    assert git(project, "cat-file", "tag", f"v{__version__}").endswith(
        f"\n\nhydrometer-gateway {__version__}\n\n{notes.rstrip()}"
    )
    assert "publishing: a person's step" in not_done(done.stdout)
    again = release(project, __version__, "--out", str(tmp_path / "again"), BUILT=__version__)
    assert (again.returncode, f"there is a tag v{__version__}" in again.stdout) == (1, True)


def test_a_check_makes_no_tag_and_says_what_it_could_not_ask(project: Path, tmp_path: Path) -> None:
    done = release(
        project, __version__, "--check", "--out", str(tmp_path / "out"), AUDIT="77", BUILT=__version__
    )
    assert done.returncode == 0, done.stdout
    assert "the audit: the advisory service could not be asked" in not_done(done.stdout)
    assert "the tag: --check makes none" in not_done(done.stdout)
    assert git(project, "tag", "--list") == ""


def test_each_failure_is_named_and_there_is_no_tag(project: Path, tmp_path: Path) -> None:
    (project / "new.txt").touch()
    broken = project / "deploy" / "deb" / "build"
    broken.write_text("#!/bin/sh\necho no room >&2\nexit 1\n")
    out = str(tmp_path / "out")
    done = release(project, "9.9.9", "--out", out, AUDIT="77", PICTURES="1", BUILT="9.9.9")
    assert done.returncode == 1
    assert re.findall(r"^FAILED: (.*)$", done.stdout, re.MULTILINE) == [
        "the tree is clean",
        "the version is the same everywhere",
        "no part has a known vulnerability",
        *(f"Debian package, {suite} {arch}" for suite, arch in SUITES),
        "the pictures of the README are current",
    ]
    assert f"gateway/__init__.py says {__version__}" in done.stdout
    assert "/config.yaml has another version\n" in done.stdout
    assert "    no room\n" in done.stdout
    assert "the image: " in not_done(done.stdout)
    assert "the tag: something failed" in not_done(done.stdout)
    assert git(project, "tag", "--list") == ""


@pytest.mark.parametrize("words", [[], ["0.2"], ["0.2.0", "0.3.0"], ["0.2.0", "--push"]])
def test_wrong_usage_does_nothing(words: list[str]) -> None:
    done = subprocess.run(
        [PROJECT / "deploy" / "release", *words], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: deploy/release VERSION")
