"""README.md can be followed: each block of commands in order, in a bare Debian 13, by a user who has sudo.

The clone is one of this repository. A second gateway, at https://brew.example, is the service that readings
are sent on to. In the end the reader's own first reading is there.
"""

import json
import os
import re
import resource
import shlex
import socket
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.packages.trees import USER, Tree, bare_tree
from tests.payloads import ispindel
from tests.program.program import PROJECT, environment
from tests.pure.documents.pages import PROGRAM, README, Block

ONLY_FOR = {
    "package": ("deploy/deb/build",),
    "pipx": ("pipx install", ".venv/bin/hydrometer-gateway demo"),
}
"""The blocks that one way of installing alone runs: what stands in them. The demo is the same in both."""

OWN_WORK_S = 180
"""Seconds of the processors, from the clone to the reader's own first reading."""

PATIENCE_S = 120
BLOCK_S = 900
"""Seconds for a block, most of them for downloads."""

SERVICE = "brew.example"
NEXT_BEER = "Next beer, problems, backup"
NUMBER, NEXT_NUMBER = 4101, 4102
DEVICE, GRAVITY, NEXT_GRAVITY = "iSpindel042", "12.5", "14.25"
HOME = f"/home/{USER}"
FOLDER = f"{HOME}/hydrometer-gateway"
KEY_FILE = f"{HOME}/club.key"
SERVICE_DATA = "/var/lib/hydrometer-gateway"
UNIT = "usr/lib/systemd/system/hydrometer-gateway.service"

SUDOERS = f"""{USER} ALL=(ALL) NOPASSWD: ALL
Defaults env_keep += "GATEWAY_TARGETS_LOGIN_KEY_FILE PIP_* DEBIAN_FRONTEND *_proxy"
"""

TYPED = {"GATEWAY_DEMO_FOR": "10", "GATEWAY_TARGETS_LOGIN_KEY_FILE": KEY_FILE}
"""What a reader types: Ctrl-C in the demo, and the key of the service."""


def until(what: str, found: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.1)


@dataclass(frozen=True)
class Service:
    """The second gateway: its address, the key for the reader, its certificate."""

    host: str
    key: str
    certificate: Path

    def gravities(self, number: int) -> list[str]:
        """The gravities that a brew session has there."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        context.check_hostname = False  # it is asked by its address
        path = f"https://{self.host}/v1/fermentation/{number}"
        request = Request(path, headers={"X-API-KEY": self.key})
        try:
            with urlopen(request, context=context, timeout=PATIENCE_S) as answer:  # noqa: S310
                return [str(reading["gravity"]) for reading in json.load(answer)["readings"]]
        except OSError:  # 404: no readings yet
            return []


@contextmanager
def service(folder: Path, host: str) -> Iterator[Service]:
    """A gateway of this repository at port 443 of an address of its own, with two brew sessions."""
    data = folder / "service"

    def run(*words: str) -> str:
        place = ("--data-dir", str(data), "--config", os.devnull)
        done = subprocess.run(
            [sys.executable, "-m", "gateway", *words, *place],
            check=True, capture_output=True, text=True, cwd=PROJECT, env=environment(),
        )  # fmt: skip
        return done.stdout.strip()

    run("sessions", "add", "--batchcode", "HP000")
    with sqlite3.connect(
        data / "gateway.sqlite3"
    ) as database:  # the next ones have the numbers of the README
        database.execute("UPDATE brewsessions SET id = ?", (NUMBER - 1,))
    assert run("sessions", "add", "--batchcode", "HP001") == str(NUMBER)
    assert run("sessions", "add", "--batchcode", "HP002") == str(NEXT_NUMBER)
    key = run("keys", "add", "reader", "--scope", "admin")
    run("tls", "self-signed", "--name", SERVICE)
    options = [
        *("--host", host, "--port", "0", "--tls-port", "443", "--no-mqtt", "--no-tcp"),
        *("--tls-cert", str(data / "tls.crt"), "--tls-key", str(data / "tls.key"), "--hostname", SERVICE),
        *("--data-dir", str(data), "--config", os.devnull),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve", *options],
        cwd=PROJECT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    output = Output(process)
    try:
        until("the service", lambda: output.has("Ready"))
        yield Service(host, key, data / "tls.crt")
    finally:
        process.terminate()
        output.end()


class Output:
    """What a program that runs has written."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: list[str] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        with self._process:  # waits for the end, and closes the pipe
            for line in self._process.stdout or ():
                self._lines.append(line)

    def has(self, words: str) -> bool:
        return any(words in line for line in self._lines)

    def __str__(self) -> str:
        return "".join(self._lines)

    def end(self) -> None:
        """Wait until the program has ended."""
        self._thread.join(PATIENCE_S)


@dataclass
class Reader:
    """Somebody who does what the README says, at a machine of their own."""

    tree: Tree
    way: str
    port: int
    gateway: Output | None = None
    seconds: list[tuple[float, float, str]] = field(default_factory=list)

    @property
    def options(self) -> dict[str, str]:
        """Options of the gateway on this machine, where others use the usual ports."""
        return {
            "GATEWAY_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "GATEWAY_MQTT_PORT": "0",
            "GATEWAY_TCP_PORT": "0",
            "GATEWAY_FORWARD_SECONDS": "1",
        }

    def follow(self, block: Block) -> None:
        """Run the commands of a block, each in a new terminal in the clone."""
        for line in block.commands:
            if line.endswith(f"{PROGRAM} serve"):
                self.serve(line)
            elif self.way == "package":  # "put `sudo` before every `hydrometer-gateway`"
                self.run(re.sub(rf"^{PROGRAM} ", f"sudo {PROGRAM} ", line))
            else:
                self.run(line)
            if "deploy/deb/build" in line:
                self.boot()

    def run(self, script: str) -> str:
        typed = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in TYPED.items())
        began, cpu = time.monotonic(), cpu_s()
        words = f"{typed}set -e\ncd {FOLDER}\n{script}"
        done = self.tree.run(f"bash -lc {shlex.quote(words)}", USER, BLOCK_S)
        self.seconds.append((time.monotonic() - began, cpu_s() - cpu, script.splitlines()[0]))
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return str(done.stdout)

    def serve(self, line: str) -> None:
        """Start the gateway in a terminal of its own."""
        words = [*(f"{name}={value}" for name, value in self.options.items()), "bash", "-lc", f"exec {line}"]
        self.listen(Output(self.tree.start(["env", *words], USER)))

    def boot(self) -> None:
        """Start the service of the package: a bare tree has no systemd."""
        unit = (self.tree.path / UNIT).read_text()
        [program] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
        (self.tree.path / SERVICE_DATA.lstrip("/")).mkdir(mode=0o700, parents=True, exist_ok=True)
        variables = self.options | {"STATE_DIRECTORY": SERVICE_DATA}
        words = [*(f"{name}={value}" for name, value in variables.items()), *shlex.split(program)]
        self.listen(Output(self.tree.start(["env", *words])))

    def listen(self, gateway: Output) -> None:
        """Wait until the gateway says that it is ready."""
        self.gateway = gateway
        until("the gateway", lambda: gateway.has("Ready"))

    def report(self, gravity: str) -> None:
        """Switch the hydrometer on: it has what the table of the README says."""
        [row] = [line for line in README.text.splitlines() if line.startswith("| iSpindel |")]
        [path] = re.findall(r"path `([^`]+)`", row)
        body = ispindel(name=DEVICE, gravity=gravity).encode()
        with urlopen(f"http://127.0.0.1:{self.port}{path}", body, timeout=PATIENCE_S) as answer:
            assert answer.status == 200


def cpu_s() -> float:
    """Seconds of the processors that children have used which have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(params=["package", "pipx"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reader]:
    """A machine with a clone, and with nothing else than the smallest Debian and sudo."""
    bundle = tmp_path / "project.bundle"
    clone = ["git", "-C", str(PROJECT), "bundle", "create", "--quiet", str(bundle), "HEAD"]
    made = subprocess.run(clone, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"there is no repository to clone: {made.stderr}")
    with bare_tree("trixie", include=("ca-certificates", "sudo")) as tree:
        (tree.path / "etc/sudoers.d/reader").write_text(SUDOERS)
        (tree.path / "etc/apt/apt.conf.d/99yes").write_text('APT::Get::Assume-Yes "true";\n')
        tree.put(bundle, "/srv/project.bundle")
        assert tree.run("apt-get update -qq").returncode == 0
        (tree.path / FOLDER.lstrip("/")).mkdir()
        assert tree.run(f"chown {USER} {FOLDER}").returncode == 0
        reader = Reader(tree, request.param, free_port())
        yield reader
    if reader.gateway is not None:
        reader.gateway.end()


def blocks(way: str) -> list[Block]:
    """The blocks that are run by whoever installs in this way."""
    others = [part for other, parts in ONLY_FOR.items() if other != way for part in parts]
    found = [block for block in README.blocks if block.language == "sh" and not block.comment]
    return [block for block in found if not any(part in block.text for part in others)]


def test_following_the_readme_sends_the_first_reading_on(
    reader: Reader, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    host = f"127.{os.getpid() % 250 + 1}.{os.getpid() // 250 % 250}.7"
    told = blocks(reader.way)
    headings = [block.headings[-1] for block in told]
    see_it = headings.index("See it")
    next_beer = headings.index(NEXT_BEER)
    with service(tmp_path, host) as club:
        know(reader.tree, club)
        began, cpu = time.monotonic(), cpu_s()
        tools, *rest = told[0].commands
        reader.run(tools)
        reader.run("git clone -q /srv/project.bundle .")
        for line in rest:
            reader.run(line)
        for block in told[1:see_it]:
            reader.follow(block)
        gateway = reader.gateway
        assert gateway is not None
        reader.report(GRAVITY)
        until("the first reading", lambda: gateway.has("first reading of"))
        wall_s, own_s = time.monotonic() - began, cpu_s() - cpu
        for block in told[see_it:next_beer]:
            reader.follow(block)
        until("the reading upstream", lambda: club.gravities(NUMBER) == [GRAVITY])
        reader.follow(told[next_beer])
        reader.report(NEXT_GRAVITY)
        until("the next beer upstream", lambda: club.gravities(NEXT_NUMBER) == [NEXT_GRAVITY])
        assert club.gravities(NUMBER) == [GRAVITY]
    for took_s, used_s, line in reader.seconds:
        print(f"{took_s:6.1f} s, {used_s:5.1f} s of the processors: {line[:90]}")
    took = f"{wall_s:.0f} s, {own_s:.0f} s of the processors"
    record_property("told", f"{reader.way}: from the clone to the first reading {took}")
    assert own_s < OWN_WORK_S


def know(tree: Tree, club: Service) -> None:
    """Let the machine find the service, trust its certificate, and have the key at hand."""
    with (tree.path / "etc/hosts").open("a") as hosts:
        hosts.write(f"\n{club.host} {SERVICE}\n")
    tree.put(club.certificate, f"/usr/local/share/ca-certificates/{SERVICE}.crt")
    key = tree.path / KEY_FILE.lstrip("/")
    key.write_text(club.key)
    key.chmod(0o600)
    assert tree.run(f"update-ca-certificates && chown {USER} {KEY_FILE}").returncode == 0
