"""The trees that other tests install into."""

import signal
from collections.abc import Iterator

import pytest

from tests.packages.trees import MACHINE_CA, TREE_CA, USER, Tree, bare_tree


@pytest.fixture(scope="module")
def tree() -> Iterator[Tree]:
    with bare_tree("bookworm", ("python3", "ca-certificates")) as tree:
        yield tree


def test_a_tree_is_a_debian_of_its_own(tree: Tree) -> None:
    finished = tree.run(". /etc/os-release; echo $VERSION_CODENAME $(id -un) $PWD; python3 --version; exit 7")
    assert finished.returncode == 7
    assert finished.stdout.startswith("bookworm root /root\nPython 3.11.")


def test_a_user_of_the_tree_has_a_home_and_no_rights(tree: Tree) -> None:
    finished = tree.run("touch ~/mine && stat -c %U ~/mine && touch /etc/mine", user=USER)
    assert finished.returncode != 0
    assert finished.stdout.startswith(f"{USER}\n")


def test_a_started_program_gets_signals_and_gives_its_status(tree: Tree) -> None:
    words = ["python3", "-c", "import signal; print('up', flush=True); signal.pause()"]
    with tree.start(words, user=USER) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert tree.processes() == [process.pid]
        process.terminate()
        assert process.wait() == -signal.SIGTERM
    assert tree.processes() == []


def test_a_tree_trusts_the_authorities_of_the_machine(tree: Tree) -> None:
    assert (tree.path / TREE_CA.lstrip("/")).read_bytes() == MACHINE_CA.read_bytes()


def test_a_tree_goes_with_its_processes_and_its_mounts() -> None:
    with bare_tree("bookworm", ("python3", "ca-certificates")) as tree:
        process = tree.start(["sleep", "600"])
        while not tree.processes():  # until it is in the tree
            assert process.poll() is None
    with process:
        assert process.wait() == -signal.SIGKILL
    assert not tree.path.exists()
    with open("/proc/self/mounts") as mounts:  # noqa: PTH123  (no file of ours)
        assert str(tree.path) not in mounts.read()
