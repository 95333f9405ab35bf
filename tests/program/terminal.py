"""A program at a terminal: what a person sees in a window of some columns, and what they type."""

import asyncio
import codecs
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.program.program import PATIENCE_S, PROJECT, environment

WIPED = re.compile("[^\n]*\x1b\\[2K")
"""What stood on a line before it was wiped away, such as the sign that a command still works."""

ROWS = 50
NARROW = 80


async def at_terminal(
    data: Path, *words: str, columns: int = NARROW, typed: Sequence[tuple[str, str]] = ()
) -> tuple[int, str]:
    """Exit code, and everything that was shown; `typed` are what is waited for, and what is typed then."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    clean: Mapping[str, str] = {k: v for k, v in environment().items() if k not in {"COLUMNS", "LINES"}}
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", *words, "--config", os.devnull, "--data-dir", str(data)),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=PROJECT,
        env=clean,
        start_new_session=True,  # or a hidden prompt would look for the terminal that the tests run at
    )
    os.close(theirs)
    try:
        shown = await asyncio.to_thread(_converse, ours, list(typed))
        async with asyncio.timeout(PATIENCE_S):
            return await child.wait(), WIPED.sub("", shown.replace("\r\n", "\n"))
    finally:
        os.close(ours)
        if child.returncode is None:
            child.kill()
            await child.wait()


def _converse(terminal: int, typed: list[tuple[str, str]]) -> str:
    shown, answered = "", 0
    decoder = codecs.getincrementaldecoder("utf-8")()  # a piece may end within a character
    while True:
        try:
            piece = os.read(terminal, 65_536)
        except OSError:  # the other side is closed
            return shown
        if not piece:
            return shown
        shown += decoder.decode(piece)
        if typed and typed[0][0] in shown[answered:]:
            answered = len(shown)
            os.write(terminal, f"{typed.pop(0)[1]}\n".encode())
