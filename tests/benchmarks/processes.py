"""Child processes: started with their output at hand, never left behind, and what the kernel counts."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.plan import BenchmarkError

ROOT = Path(__file__).resolve().parents[2]
"""Where `python -m` finds the gateway and these benchmarks."""

START_S = 30.0
"""How long a child may take to say its first words."""

RUN_S = 300.0
"""How long a child that ends by itself may run."""

STOP_S = 15.0
"""How long a child may take to stop before it is killed."""

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Child:
    """A running process whose standard output is read line by line."""

    def __init__(
        self, command: tuple[str, ...], environment: Mapping[str, str] | None = None, tree: Path = ROOT
    ) -> None:
        self._command = command
        self._process = subprocess.Popen(
            command, cwd=tree, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._pending = b""
        self.pid = self._process.pid

    def line(self, timeout_s: float = START_S) -> str:
        """The next line of its output."""
        deadline = time.monotonic() + timeout_s
        output = self._process.stdout
        assert output is not None
        while b"\n" not in self._pending:
            ready = select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]
            data = os.read(output.fileno(), 65_536) if ready else b""
            if not data:
                why = "ended" if ready else f"said nothing for {timeout_s:g} s"
                raise BenchmarkError(f"{' '.join(self._command)}: {why}")
            self._pending += data
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode()

    def ask(self, question: str, timeout_s: float = RUN_S) -> Any:
        """Send a line, return the JSON of the line that answers it."""
        assert self._process.stdin is not None
        self._process.stdin.write(question.encode() + b"\n")
        return json.loads(self.line(timeout_s))

    def wait(self, timeout_s: float = RUN_S) -> None:
        """Until it has ended by itself, well."""
        if self._process.wait(timeout_s):
            raise BenchmarkError(f"{' '.join(self._command)}: exit code {self._process.returncode}")

    def terminate_and_read_io(self) -> int:
        """Stop it; the bytes that it made the kernel write in its life."""
        self._process.terminate()
        # The zombie still has its counters, with what it wrote while it closed its files.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        written = io_bytes(self.pid)
        self._process.wait()
        return written

    def stop(self) -> None:
        """End it, by force where it does not listen."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def running(
    *command: str, environment: Mapping[str, str] | None = None, tree: Path = ROOT
) -> Iterator[Child]:
    """A child for the length of the block; `tree` is the checkout that it runs in."""
    child = Child(command, environment, tree)
    try:
        yield child
    finally:
        child.stop()


def module(name: str, *arguments: object) -> tuple[str, ...]:
    """The command that runs one of these modules."""
    return (sys.executable, "-m", f"tests.benchmarks.{name}", *map(str, arguments))


def result_of(*command: str) -> Any:
    """Run a child to its end; the JSON line that it printed."""
    with running(*command) as child:
        answer = json.loads(child.line(RUN_S))
        child.wait()
    return answer


def io_bytes(pid: int) -> int:
    """Bytes that a process made the kernel write so far, by /proc/PID/io."""
    text = Path(f"/proc/{pid}/io").read_text("ascii")
    return int(text.partition("\nwrite_bytes:")[2].split()[0])


def private_bytes(pid: int) -> int:
    """Resident memory that no other process shares."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8")
    fields = (text.partition(f"\n{field}:")[2].split()[0] for field in ("Private_Clean", "Private_Dirty"))
    return sum(int(field) * 1024 for field in fields)


def memory_bytes(pid: int, field: str = "VmRSS") -> int:
    """Resident memory now (`VmRSS`) or at most so far (`VmHWM`)."""
    text = Path(f"/proc/{pid}/status").read_text("utf-8")
    return int(text.partition(f"\n{field}:")[2].split()[0]) * 1024


def cpu_s(pid: int) -> float:
    """Processor time of all threads of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def first_thread_cpu_s(pid: int) -> float:
    """Processor time of the first thread of a process so far: of its event loop."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text("ascii").split()[0]) / 1e9
