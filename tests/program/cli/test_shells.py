"""The Tab key in the shells of Debian: bash, zsh and fish complete commands, and names of the gateway."""

import asyncio
import os
import pty
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

import pytest

from gateway.cli.completing import SCRIPTS, script
from tests.payloads import ispindel
from tests.program.program import PATIENCE_S, answer, environment, until
from tests.system.cli.conftest import inside, stored

BIN = str(Path(sys.executable).parent)
NAME = "iSpindel042"
TYPED = {
    "hydrometer-gateway dev": "hydrometer-gateway devices",
    "hydrometer-gateway devices show iSp": f"hydrometer-gateway devices show {NAME}",
    "hydrometer-gateway targets pause cl": "hydrometer-gateway targets pause club",
}
"""What is typed before the Tab key, and what stands there then."""

# Bash itself splits the line into COMP_WORDS; completion through readline needs a terminal.
BASH = """
eval "$(hydrometer-gateway completion bash)"
while IFS= read -r COMP_LINE; do
    COMP_POINT=${#COMP_LINE}
    last=${COMP_LINE##* }
    _hydrometer_gateway hydrometer-gateway "$last" ""
    echo "${COMP_LINE% *} ${COMPREPLY[0]}"
done
"""

FISH = """
source $argv[1]
while read line
    set found (complete -C $line)
    echo (string replace -r '[^ ]*$' '' $line)(string split -f 1 \\t $found[1])
end
"""

ZSHRC = """
fpath=($ZDOTDIR/functions $fpath)
autoload -Uz compinit
compinit -u -d $ZDOTDIR/dump
PS1='ready> '
written() { print -r -- $BUFFER >> $ZDOTDIR/line; BUFFER= }
zle -N written
bindkey '^X' written
"""
"""Ctrl-X writes the line that stands at the prompt into a file, and empties it."""


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    await stored(data, ispindel(1001, name=NAME))
    key = tmp_path / "club.key"
    key.write_text("0123456789abcdef")
    await answer(data, ("targets", "add", "club", "https://brew.example", "--key-file", str(key)))
    return data


def variables(data: Path, **more: str) -> dict[str, str]:
    given = {"GATEWAY_DATA_DIR": str(data), "LC_ALL": "C.UTF-8", "TERM": "xterm", **more}
    return environment({**given, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(data.parent)})


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is missing: Debian's package of this name")


async def by_lines(data: Path, *words: str) -> list[str]:
    """What a script of a shell makes of the lines that are typed."""
    process = await asyncio.create_subprocess_exec(
        *words, env=variables(data), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(PATIENCE_S):
        out, err = await process.communicate("".join(f"{line}\n" for line in TYPED).encode())
    assert err == b""
    return out.decode().splitlines()


async def test_bash(data: Path) -> None:
    needs("bash")
    async with inside(data):
        found = await by_lines(data, "bash", "--norc", "-c", BASH)
    assert found == list(TYPED.values())


async def test_fish(data: Path, tmp_path: Path) -> None:
    needs("fish")
    file = tmp_path / "hydrometer-gateway.fish"
    file.write_text(script("fish"))
    async with inside(data):
        found = await by_lines(data, "fish", "--no-config", "-c", FISH, str(file))
    assert found == list(TYPED.values())


async def test_zsh_at_its_prompt(data: Path, tmp_path: Path) -> None:
    """The script lies where the package puts it, so zsh reads it for the first Tab."""
    needs("zsh")
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "_hydrometer-gateway").write_text(script("zsh"))
    (tmp_path / ".zshrc").write_text(ZSHRC)
    written = tmp_path / "line"
    written.touch()
    ours, theirs = pty.openpty()
    shown = bytearray()
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, lambda: shown.extend(os.read(ours, 65_536)))
    process = await asyncio.create_subprocess_exec(
        *("zsh", "-i"),
        stdin=theirs, stdout=theirs, stderr=theirs,
        env=variables(data, ZDOTDIR=str(tmp_path)), start_new_session=True,
    )  # fmt: skip
    try:
        async with inside(data):
            await until(lambda: b"ready> " in shown)
            waited: list[str] = []
            for line in TYPED:
                os.write(ours, f"{line}\t\x18".encode())
                waited.append(line)
                await until(lambda: written.read_text().count("\n") == len(waited))
    finally:
        loop.remove_reader(ours)
        process.kill()
        await process.wait()
        os.close(theirs)
        os.close(ours)
    assert [line.rstrip() for line in written.read_text().splitlines()] == list(TYPED.values()), shown


@pytest.mark.parametrize("shell", [*SCRIPTS])
async def test_each_shell_finds_no_fault_in_its_script(shell: str, tmp_path: Path) -> None:
    needs(shell)
    file = tmp_path / "script"
    file.write_text(script(shell))
    process = await asyncio.create_subprocess_exec(
        shell, "-n", str(file), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    assert (await process.communicate(), process.returncode) == ((b"", b""), 0)
