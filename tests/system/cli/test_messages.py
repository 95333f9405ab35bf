"""Every message about a mistake, provoked by the command line and compared with the file beside this one.

A message that changes is a change that users see: look at it, then write the file anew with
`UPDATE_MESSAGES=1 python -m pytest tests/system/cli/test_messages.py`.
"""

import asyncio
import os
import re
import shlex
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import pytest

from gateway.cli import client
from gateway.forward.kinds.service import ImportTarget
from gateway.http.both_ends import SOCKET_NAME
from gateway.store.sqlite.engine.database import LOCK_NAME, lock_directory
from gateway.tls.authorities import FILE_VARIABLE, verifying_context
from gateway.tls.self_signed import make
from tests.cloud import KEY, ScriptedCloud, hang, html_200, redirect, running, status
from tests.program.program import OWN_NAME, _inside, answer, ispindel, post, process, run
from tests.system.cli.conftest import gateway

GOLDEN = Path(__file__).with_name("messages.txt")

FILES = {
    "brew.key": KEY,
    "empty.key": "",
    "german.csv": "Datum;Plato\n01.03.2026;12,5\n",
    "commas.csv": 'created_at,gravity\n2026-03-01 12:00,"1,050"\n',
    "unknown.csv": "Zeit,Wert\n1,2\n",
    "tabs.csv": "created_at\tgravity\n1\t2\n",
    "short.csv": "created_at,gravity\n2026-03-01 12:00\n",
    "broken.json": '[{"gravity": 1.05',
    "readings.dat": "1",
    "text.tar": "no backup",
    "broken.xml": "<RECIPES><RECIPE>",
    "broken.toml": "port = ",
    "unknown.toml": "prot = 8080\n",
    "wrong.toml": 'port = "many"\n',
}

USAGE = """
devcies list
devices lst
devices list --jsn
devices list --port 8081
devices --data-dir DIR list
--port 8081
doctor --mqtt-ur mqtt://broker.lan
devices show
readings --last
readings --last 0
readings --last many
serve --port 99999
serve --upstream-url brew.example
serve --quota much
serve --log-level loud
serve --config DIR/broken.toml
serve --config DIR/unknown.toml
serve --config DIR/wrong.toml
serve --config DIR/none.toml
readings --config DIR/broken.toml
"""

AT_REST = """
devices list
readings
sessions add
sessions add --batchcode HP001
targets add club brew.example --key-file DIR/brew.key
targets add club https://brew.example --key-file DIR/none.key
targets add club https://brew.example --key-file DIR/empty.key
targets add club https://brew.example --key-file DIR
targets add club http://brew.example --key-file DIR/brew.key
targets add up/stream https://brew.example --key-file DIR/brew.key
targets add up --kind influxx
targets login club
targets login club --url https://brew.example --key-file DIR/none.key
restore DIR/none.tar
restore DIR/text.tar
recipes import DIR/none.xml
recipes import DIR/broken.xml
readings import 1 DIR/none.csv
readings import 1 DIR/german.csv
readings import 1 DIR/commas.csv
readings import 1 DIR/unknown.csv
readings import 1 DIR/tabs.csv
readings import 1 DIR/short.csv
readings import 1 DIR/broken.json
readings import 1 DIR/readings.dat
readings import 7 DIR/short.csv
readings export 1 --format json --out /dev/full
readings export 1 --out DIR/none/x.json
serve --upstream-url https://brew.example
serve --upstream-url https://brew.example --upstream-key-file DIR/none.key
serve --mqtt-url broker.lan:1883
"""

SERVED = """
sessions add --batchcode HP001
sessions add --batchcode HP002 --recipe 3
sessions show HP01
sessions show xyz
sessions show 99
sessions update HP001
sessions update HP001 --set totalwater
sessions update HP001 --set colour=7
sessions next HP001
sessions next HP001 --batchcode HP003
sessions list --account ana
devices show ispindel24
devices show xyz
devices assign iSpindel042 HP01
devices next iSpindel042 --batchcode HP002
devices set iSpindel042 --gravity-unit X
devices calibrate iSpindel042 --point 25
targets test clubb
targets list --wide --jsno
targets map club HP001
targets resend club
targets test club
keys revoke 99
keys revoke nobody
quarantine show 99
alarms set stuk hi=1
channels test phone
folders rename 9 x
accounts add anna
recipes show 9
inbox accept nobody
readings --device iSpindel04
restore DIR/text.tar
"""

DEADLINE_S = 0.5
"""Seconds that a request may take to a service which never answers."""

HERE = "127.0.0.1"

OVER, VALID, TO_COME = ("20250101", "20250201"), ("20250101", "20750101"), ("20740101", "20750101")
"""First and last day of a certificate."""

AUTHORITY = """
[ca]
default_ca = one
[one]
database = DIR/index.txt
new_certs_dir = DIR
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
"""
"""What `openssl ca` needs to sign for days that are over."""

pytestmark = pytest.mark.usefixtures("german_time")


@pytest.fixture
def german_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")


@pytest.fixture
async def cloud() -> AsyncIterator[ScriptedCloud]:
    async with running(ScriptedCloud()) as cloud:
        yield cloud


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Make a certificate the one authority that this machine knows."""

    def trust(certificate: Path) -> None:
        monkeypatch.setenv(FILE_VARIABLE, str(certificate))
        verifying_context.cache_clear()

    yield trust
    verifying_context.cache_clear()


class Transcript:
    """What was typed and what was answered, without what differs from run to run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.lines: list[str] = []
        self.hidden: dict[str, str] = {}

    def title(self, text: str) -> None:
        self.lines += ["", f"# {text}"]

    async def type(self, *commands: str) -> None:
        """Run each command, and write down what is wrong or warned of."""
        for command in commands:
            words = shlex.split(command.replace("DIR", str(self.folder)), comments=True)
            if "--config" not in words:
                words += ["--config", os.devnull]
            if "--data-dir" not in words and not command.startswith("--"):
                words += ["--data-dir", str(self.data)]
            if words[0] == "serve":  # which handles signals, as a thread cannot
                finished = await run(*words)
            else:
                finished = await asyncio.to_thread(_inside, tuple(words))
            self.add(command, finished.status, finished.err or finished.out)

    def add(self, command: str, status: int, text: str) -> None:
        lines = [line for line in text.splitlines() if line and not line.startswith(("Usage:", "Try '"))]
        self.lines += [f"$ {command}", *(f"{self._plain(line)}" for line in lines), f"[{status}]"]

    def _plain(self, line: str) -> str:
        for word, shown in self.hidden.items():
            line = line.replace(word, shown)
        line = line.replace(str(self.folder), "DIR").removeprefix("hydrometer-gateway: ")
        line = re.sub(r"(known here: ).*", r"\1...", line)  # every new option would change the file
        line = re.sub(r"process \d+, since [-0-9: ]+\d", "process PID, since TIME", line)
        return re.sub(rf"{re.escape(OWN_NAME)} \(process \d+\)", "PROGRAM (process PID)", line)


def sign(folder: Path, name: str, alternative: str, *days: str) -> Path:
    """Return a certificate with its key in one file, signed by itself for the time between two days."""
    pair, request, settings = (folder / f"{name}.{ending}" for ending in ("pem", "csr", "cnf"))
    settings.write_text(AUTHORITY.replace("DIR", str(folder)))
    (folder / "index.txt").write_text("")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    named = ("-subj", f"/CN={name}", "-addext", f"subjectAltName={alternative}")
    begin, end = (f"{day}000000Z" for day in days)
    key = folder / f"{name}.key"
    for words in (
        ("req", "-new", *curve, *named, "-keyout", key, "-out", request),
        (
            *("ca", "-batch", "-selfsign", "-notext", "-config", settings, "-keyfile", key),
            *("-startdate", begin, "-enddate", end, "-in", request, "-out", pair),
        ),
    ):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)
    pair.write_text(pair.read_text() + key.read_text())
    return pair


@asynccontextmanager
async def tls_server(certificate: Path, key: Path | None = None) -> AsyncIterator[int]:
    """Listen with this certificate, and yield the port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    listening = await asyncio.start_server(lambda _, writer: writer.close(), HERE, 0, ssl=context)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


@contextmanager
def locked(data: Path) -> Iterator[None]:
    """The data of a gateway that is just starting: locked, and no socket yet."""
    held = lock_directory(data / LOCK_NAME)
    try:
        yield
    finally:
        os.close(held)


async def test_no_message_has_changed(
    tmp_path: Path,
    cloud: ScriptedCloud,
    trust: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = Transcript(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "brew.key").chmod(0o600)
    said.hidden = {cloud.url: "http://CLOUD"}
    said.title("Wrong usage")
    await said.type(*USAGE.split("\n")[1:-1])
    said.title("Without a gateway")
    await said.type(*AT_REST.split("\n")[1:-1])
    said.title("Beside a gateway")
    async with gateway(said.data) as (server, http):
        said.hidden[f":{server.port}"] = ":PORT"
        said.hidden[f"port {server.port}"] = "port PORT"
        assert await post(http, server, ispindel(42, name="iSpindel042")) == 200
        for words in ("accounts add anna", "sessions add --batchcode HP002"):
            await answer(said.data, words)
        login = ("targets", "login", "club", "--url", cloud.url, "--key-file", str(tmp_path / "brew.key"))
        await answer(said.data, login)
        await said.type(*SERVED.split("\n")[1:-1])
        said.title("A second gateway, and a port that is taken")
        second = await process(said.data, "serve --host 127.0.0.1 --port 0 --tcp-port 0 --no-mqtt")
        said.add("serve", second.status, second.err)
        taken = await process(tmp_path / "other", f"serve --host 127.0.0.1 --port {server.port}")
        said.add("serve --port PORT", taken.status, taken.err)
        said.title("What a service answers")
        for reason, behaviour in (
            ("a key that it does not know", status(401)),
            ("another place", redirect("https://other.example/")),
            ("a page for people", html_200()),
            ("a proxy", status(407)),
            ("too much", status(429)),
            ("trouble of its own", status(500)),
            ("a proxy in front of it", status(502, body="<html>Bad Gateway</html>")),
        ):
            cloud.reads.append(behaviour)
            await said.type(f"targets test club  # {reason}")
        with monkeypatch.context() as patch:
            hasty = partial(ImportTarget, deadline_s=DEADLINE_S)
            patch.setattr("gateway.services.targets.ImportTarget", hasty)
            cloud.reads.append(hang)
            await said.type("targets test club  # nothing in time")
        cloud.unknown.add(77)
        await answer(said.data, "targets map club HP001 77")
        await said.type("targets test club  # a number that it does not have")
        await cloud.stop()
        await said.type("targets test club  # nothing, it does not run")
        await answer(said.data, f"targets add nowhere https://nowhere.invalid --key-file {tmp_path}/brew.key")
        await said.type("targets test nowhere")
        for kind in (
            "influx --url https://no.invalid --org a --bucket b",
            "webhook --url https://no.invalid",
        ):
            name = kind.split()[0]
            await answer(said.data, f"targets add {name} --kind {kind} --key-file {tmp_path}/brew.key")
            await answer(said.data, f"targets map {name} --all")
            await said.type(f"targets test {name}")
        await answer(
            said.data, f"targets add plain https://127.0.0.1:{server.port} --key-file {tmp_path}/brew.key"
        )
        await said.type("targets test plain  # http where https is wanted")
        make(tmp_path, ("brew.lan",), 30)
        for name, certificate, key, why in (
            ("own", tmp_path / "tls.crt", tmp_path / "tls.key", "a certificate that nobody vouches for"),
            ("old", sign(tmp_path, "old", f"IP:{HERE}", *OVER), None, "a certificate that has expired"),
            ("early", sign(tmp_path, "early", f"IP:{HERE}", *TO_COME), None, "one that is not valid yet"),
            ("other", sign(tmp_path, "other", "DNS:brew.lan", *VALID), None, "a certificate for brew.lan"),
        ):
            if key is None:  # it is an authority of this machine, and yet something is wrong
                trust(certificate)
            async with tls_server(certificate, key) as port:
                said.hidden[f":{port}"] = ":TLS"
                url = f"https://{HERE}:{port}"
                await answer(said.data, f"targets add {name} {url} --key-file {tmp_path}/brew.key")
                await said.type(f"targets test {name}  # {why}")
    said.title("Busy: try again")
    monkeypatch.setattr(client, "BUSY_WAIT_S", 0.1)
    assert not (said.data / SOCKET_NAME).exists()
    with locked(said.data):
        await said.type("sessions add --batchcode HP009")
    text = "\n".join(said.lines[1:]) + "\n"
    if os.environ.get("UPDATE_MESSAGES"):
        await asyncio.to_thread(GOLDEN.write_text, text, "utf-8")
    assert text.splitlines() == (await asyncio.to_thread(GOLDEN.read_text, "utf-8")).splitlines()


def test_every_message_is_one_line_without_words_of_python() -> None:
    foreign = re.compile(
        r"Errno|Traceback|Error\b(?!:)|Exception|pydantic|sqlite3|aiohttp|None\b|\{'|\['|<class|object at|0x"
    )
    for block in GOLDEN.read_text("utf-8").split("\n$ ")[1:]:
        command, *lines = block.split("\n[")[0].splitlines()
        assert not [line for line in lines if foreign.search(line)], command
        if not command.startswith(("targets test", "doctor", "recipes import", "sessions")):
            assert len(lines) <= 1, (command, lines)
