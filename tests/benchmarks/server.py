"""The program under test: `python -m gateway serve` as users start it, and its command line."""

import asyncio
import http.client
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The command line behind `devices assign`, without half a second of interpreter start for each of 50 devices.
from gateway.cli.client import ask_async, ask_running
from gateway.cli.lookup import device_number
from tests.benchmarks import payloads
from tests.benchmarks.plan import BEFORE, PRODUCT, BenchmarkError, Plan
from tests.benchmarks.processes import ROOT, START_S, Child, module, result_of, running

HOST = "127.0.0.1"

ANSWER_S = 60.0
"""How long one API call may take."""

POLL_S = 0.02

_HTTP = re.compile(r"^HTTP on http://127\.0\.0\.1:([0-9]+)")
_MQTT = re.compile(r"mqtt://127\.0\.0\.1:([0-9]+)")


@dataclass(frozen=True, slots=True)
class Server:
    """A gateway that is ready; `mqtt_port` is that of its MQTT listener, 0 without one."""

    child: Child
    data_dir: Path
    port: int
    mqtt_port: int
    tree: Path = ROOT
    """The checkout whose code it runs."""

    def health(self) -> dict[str, Any]:
        """The health page."""
        page: dict[str, Any] = asyncio.run(ask_running(self.data_dir, "/healthz"))
        return page

    def call(self, method: str, path: str, key: str = "", body: bytes | None = None) -> bytes:
        """The body of a 200 answer of the API."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=ANSWER_S)
        headers = {"X-API-KEY": key, "Content-Type": "application/json"} if key else {}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise BenchmarkError(f"{method} {path}: {response.status} {answer[:200]!r}")
        return answer

    def wait_for(self, counter: str, least: int, limit_s: float = ANSWER_S) -> None:
        """Until a counter of the health page has come so far."""
        deadline = time.monotonic() + limit_s
        while self.health()[counter] < least:
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{counter} did not come to {least} within {limit_s:g} s")
            time.sleep(POLL_S)

    def introduce(self, devices: int, first: int) -> None:
        """A reading of each device, and all of them into a brew session, as in a brewery at work."""
        load(self.port, first, "--connections", 1, "--requests", devices, "--devices", devices)
        session = int(command(self.data_dir, "sessions", "add", "--batchcode", "BENCH1", tree=self.tree))
        asyncio.run(_assign(self.data_dir, devices, session))


async def _assign(data_dir: Path, devices: int, session: int) -> None:
    for device in range(devices):
        number = await asyncio.to_thread(device_number, data_dir, payloads.device_name(device))
        path = f"/manage/devices/{number}/brewsession"
        await ask_async(data_dir, "PUT", path, body={"brew_session_id": session})


def command(data_dir: Path, *words: str, tree: Path = ROOT) -> str:
    """What a command of the gateway prints, without the newline."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *words, "--data-dir", str(data_dir)],
        cwd=tree,
        env=environment(data_dir, tree),
        stdout=subprocess.PIPE,
        check=True,
        timeout=START_S,
    )
    return done.stdout.decode().strip()


def environment(data_dir: Path, tree: Path = ROOT) -> dict[str, str]:
    """Ours, without what would configure the gateway behind our back; `tree` is the checkout to import."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    return {**kept, "XDG_CONFIG_HOME": str(data_dir / "no-config"), "PYTHONPATH": str(tree)}


def serve_command(data_dir: Path, *options: str, port: int = 0, program: str = "gateway") -> tuple[str, ...]:
    """The command that starts a gateway on loopback."""
    return (
        *(sys.executable, "-m", program, "serve", "--data-dir", str(data_dir), "--host", HOST),
        *("--names-an-hour", "1000"),
        *("--port", str(port), "--no-tcp", "--log-level", "warning", *options),
    )


def free_port() -> int:
    """A port of loopback that nobody has at this moment."""
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def serving(data_dir: Path, *options: str, tree: Path = ROOT, program: str = "gateway") -> Iterator[Server]:
    """A gateway that is ready, for the length of the block; it runs the code of the checkout `tree`."""
    variables = environment(data_dir, tree)
    command = serve_command(data_dir, *options, program=program)
    with running(*command, environment=variables, tree=tree) as child:
        port = mqtt_port = 0
        while not (line := child.line()).startswith("Ready"):
            if found := _HTTP.search(line):
                port = int(found[1])
            elif found := _MQTT.search(line):
                mqtt_port = int(found[1])
        yield Server(child, data_dir, port, mqtt_port, tree)


def trees(plan: Plan) -> dict[str, Path]:
    """The checkouts to measure: ours, and the other one where there is one."""
    return {PRODUCT: ROOT} if plan.against is None else {PRODUCT: ROOT, BEFORE: plan.against}


def load(port: int, first: int, *options: object) -> Any:
    """Run the HTTP client in a process of its own against whatever listens on `port`."""
    return result_of(*module("http_load", "--port", port, "--first", first, *options))
