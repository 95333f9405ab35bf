"""`doctor`: each thing that can be wrong is found, named, and has a remedy; what is well is said to be so."""

import asyncio
import shutil
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import http_parser, web
from aiohttp.test_utils import TestServer

from gateway.backup import nightly
from gateway.cli.doctor import _fault, _parts, _unread
from gateway.clock import SystemClock
from gateway.doctor import CHECKS, data, examine, machine, mosquitto_conf, topics
from gateway.doctor.finding import Broker, Context, Finding
from gateway.errors import GatewayError
from gateway.services.access import Access
from gateway.services.key_files import keep_first_key
from gateway.settings import Settings
from gateway.store.sqlite.engine.database import DATABASE_NAME
from gateway.store.sqlite.store import SqliteStore
from sample_devices.transports.mqtt import deliver
from sample_devices.wire.report import Login, Message
from tests.clock import FakeClock
from tests.program.program import (
    FREE_PORTS,
    Finished,
    _inside,
    answer,
    command,
    ispindel,
    refusal,
    serving,
)
from tests.system.cli.conftest import gateway
from tests.system.cli.filling import fill_with
from tests.system.transports.conftest import Mosquitto

NOW = 1_780_000_000.0
DEPLOYED = Path(__file__).parents[3] / "deploy" / "mosquitto" / "mosquitto.conf"
LEVELS = {"ok", "warning", "problem"}


@pytest.fixture(autouse=True)
def a_machine_that_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "is_synchronised", lambda: True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def settings(folder: Path, **more: Any) -> Settings:
    """Of a gateway on free ports of this machine, without MQTT."""
    plain: dict[str, Any] = {
        **{"data_dir": folder, "host": "127.0.0.1", "port": 0, "tcp_port": 0, "no_mqtt": True},
        **more,
    }
    return Settings(**plain)


async def running_parts(told: Settings) -> list[Finding]:
    """What is said of the parts of the running gateway, each under its own name."""
    findings = await examine(told, None, partial(_parts, told))
    return [finding for finding in findings if finding.check not in {name for name, _ in CHECKS}]


async def found(
    about: str, told: Settings, mqtt: Broker | None = None, now: float | None = None
) -> list[Finding]:
    """What a check says; no check has failed, and whatever is wrong has a remedy."""
    clock = None if now is None else FakeClock(now)
    findings = await examine(told, mqtt, partial(_parts, told), clock, partial(_unread, told))
    assert not [finding for finding in findings if "could not be checked" in finding.text]
    assert all(finding.remedy for finding in findings if finding.level != "ok")
    assert {finding.level for finding in findings} <= LEVELS
    return [finding for finding in findings if finding.check == about]


async def one(about: str, told: Settings, mqtt: Broker | None = None, now: float | None = None) -> Finding:
    [finding] = await found(about, told, mqtt, now)
    return finding


def write(path: Path, text: str | bytes, mode: int = 0o600) -> Path:
    path.parent.mkdir(mode=0o700, exist_ok=True, parents=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


def there(path: Path) -> bool:
    return path.exists()


def make_readable(path: Path) -> None:
    path.chmod(0o755)


def make(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path


async def test_without_anything_there_is_no_problem(folder: Path) -> None:
    finished = await answer(folder, "doctor --no-mqtt --port 0 --tcp-port 0")
    assert "0 problems, " in finished.lines[-1]
    assert any(line.startswith("ok       http parser: aiohttp uses its C parser") for line in finished.lines)
    assert not there(folder)  # it looks only


async def test_json_is_one_object_per_line_and_a_problem_is_exit_code_3(folder: Path) -> None:
    basics = ("--json", "--no-mqtt", "--port", "0", "--tcp-port", "0")
    well = await command(folder, "doctor", *basics)
    assert well.status == 0
    assert {"about", "level", "text", "remedy"} == set(well.objects[0])
    ill = await command(folder, "doctor", *basics, "--upstream-url", "http://127.0.0.1:1")
    assert ill.status == 3
    [problem] = [said for said in ill.objects if said["level"] == "problem"]
    assert "--upstream-key-file is missing" in problem["text"]


async def test_it_reads_what_serve_is_told_by_flag_environment_and_file(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write(
        tmp_path / "gateway.toml", 'no_mqtt = true\nnightly_backup = "/by/file"\nport = 0\ntcp_port = 0'
    )

    async def backups(*flags: str) -> str:
        finished: Finished = await asyncio.to_thread(_run, folder, config, *flags)
        return next(str(said["text"]) for said in finished.objects if said["about"] == "backups")

    assert await backups() == "there is no directory /by/file"
    monkeypatch.setenv("GATEWAY_NIGHTLY_BACKUP", "/by/env")
    assert await backups() == "there is no directory /by/env"
    assert await backups("--nightly-backup", "/by/flag") == "there is no directory /by/flag"


def _run(folder: Path, config: Path, *flags: str) -> Finished:
    return _inside(("doctor", "--json", "--config", str(config), "--data-dir", str(folder), *flags))


async def test_an_option_that_serve_has_not_is_refused(folder: Path) -> None:
    finished = await command(folder, "doctor --prot 80")
    assert finished.status == 2
    assert "No such option: --prot" in finished.err
    assert "nightly_keep" in await refusal(folder, "doctor --nightly-keep 0")


async def test_beside_a_gateway_its_parts_are_shown(folder: Path) -> None:
    async with gateway(folder) as (server, _):
        told = settings(folder, port=server.port)
        assert (await one("gateway", told)).level == "ok"
        parts = await running_parts(told)
        assert any(part.text.startswith("listening on") for part in parts if part.check == "HTTP")
        elsewhere = await running_parts(settings(folder, port=free_port()))
        assert elsewhere == parts, "it is asked where it listens, whatever this command was told"
    assert (await one("gateway", told)).level == "warning"


async def test_a_quick_look(folder: Path) -> None:
    silent = await command(folder, "doctor --quick")
    assert (silent.status, silent.err) == (3, "")
    assert silent.out.startswith("problem  gateway: no gateway is running with the data in")
    async with gateway(folder) as (server, _):
        assert (await answer(folder, "doctor --quick")).out == (
            f"ok       gateway: the gateway with the data in {folder} answers and stores readings\n"
        )
        [found] = (await answer(folder, "doctor --quick --json")).objects
        assert (found["about"], found["level"]) == ("gateway", "ok")
        assert (await server.stop())[0] == 0


@pytest.mark.parametrize(
    ("health", "said"),
    [
        ({"status": "ok", "parts": {}, "in_trouble": ["tcp", "upstream a"]}, ""),
        ({"status": "unavailable", "parts": {}}, "cannot read its database"),
        (
            {"status": "trouble", "parts": {"store": "the disk is full"}, "in_trouble": ["store"]},
            "stores no readings: the disk is full",
        ),
    ],
)
def test_what_a_quick_look_calls_a_problem(health: dict[str, Any], said: str) -> None:
    assert said in _fault(health)
    assert bool(_fault(health)) == bool(said)


async def test_a_proxy_that_is_not_trusted_is_a_warning(folder: Path) -> None:
    async with gateway(folder) as (server, http):
        url = f"http://127.0.0.1:{server.port}/ingest"
        async with http.post(url, data=ispindel(1), headers={"X-Forwarded-For": "8.8.8.8"}) as refused:
            assert refused.status == 401
        told = settings(folder, port=server.port)
        warned = [f"{f.check}: {f.text}" for f in await running_parts(told) if f.level == "warning"]
    assert "proxy: 127.0.0.1 forwards for others; `--trusted-proxy 127.0.0.1` or `--require-key`" in warned


@pytest.mark.parametrize(
    ("states", "level", "word"),
    [
        ({"http": "listening on http://127.0.0.1:9"}, "problem", "firewall"),
        ({}, "warning", "starting"),
        (TimeoutError(), "warning", "starting"),
        (GatewayError("it stops"), "warning", "stopping"),
    ],
)
async def test_a_gateway_that_does_not_answer(
    folder: Path, states: dict[str, str] | Exception, level: str, word: str
) -> None:
    async def parts() -> dict[str, str]:
        if isinstance(states, Exception):
            raise states
        return states

    async with gateway(folder) as (server, _):
        findings = await examine(settings(folder, port=server.port), None, parts)
    *_, last = [finding for finding in findings if finding.check == "ports"]
    assert (last.level, word in last.remedy) == (level, True)


@pytest.mark.parametrize(
    ("state", "level"),
    [
        ("connected to broker.lan:1883", "ok"),
        ("broker.lan:1883 refuses us: Not authorized", "warning"),
        ("lost broker.lan:1883; trying again", "warning"),
        ("broker.lan:1883 drops us again and again: probably another client uses the id 'x'", "warning"),
    ],
)
async def test_a_broker_that_does_not_serve_us_is_a_warning(folder: Path, state: str, level: str) -> None:
    async def parts() -> dict[str, str]:
        return {"http": "listening on http://127.0.0.1:9", "mqtt": state}

    async with gateway(folder) as (server, _):
        findings = await examine(settings(folder, port=server.port), None, parts)
    assert [f.level for f in findings if (f.check, f.text) == ("MQTT", state)] == [level]


async def test_a_port_that_another_program_has_is_a_problem(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        problems = [f for f in await found("ports", settings(folder, tcp_port=port)) if f.level == "problem"]
    assert [finding.remedy for finding in problems] == ["stop it, or choose another: --tcp-port"]


async def test_the_data_directory_is_its_owners_alone(folder: Path) -> None:
    make(folder)
    assert (await one("data directory", settings(folder))).level == "ok"
    make_readable(folder)
    assert (await one("data directory", settings(folder))).remedy == f"chmod go= {folder}"
    file = write(folder.parent / "file", "")
    assert (await one("data directory", settings(file / "x"))).text.endswith("the first start makes it")


@pytest.mark.parametrize(
    ("line", "level", "word"),
    [
        ("36 1 254:0 / / rw,relatime - ext4 /dev/vda rw", "ok", "ext4"),
        (r"36 1 0:9 / /srv/my\040data rw - 9p share rw", "warning", "virtual machine"),
        (r"36 1 0:9 / /srv/my\040data rw - nfs4 nas:/data rw", "warning", "network"),
        (r"36 1 0:9 / /srv/my\040data rw - vfat /dev/sda1 rw", "warning", "FAT"),
        (r"36 1 0:9 / /srv/my\040data rw - fuse.sshfs me@nas:/ rw", "warning", "user space"),
        (r"36 1 0:9 / /srv/my\040data rw shared:1 - tmpfs tmpfs rw,size=1k", "problem", "memory"),
        (r"36 1 0:9 / /srv/my\040data ro - ext4 /dev/mmcblk0p2 rw", "problem", "read-only"),
        (r"36 1 0:9 / /srv/my\040data rw - ext4 /dev/mmcblk0p2 rw,barrier=0", "problem", "barriers"),
    ],
)
def test_file_systems_that_lose_what_was_synced(line: str, level: str, word: str) -> None:
    root = "1 0 254:0 / / rw - ext4 /dev/vda rw\n"
    after = "\n37 1 0:10 / /srv/my rw - ext4 /dev/vdb rw\n38 1 0:11 / /srv/my\\040data2 rw - tmpfs none rw"
    finding = data.judged(
        data.mount_of(Path("/srv/my data/gateway"), root + line + (after if "my" in line else ""))
    )
    assert (finding.level, word in finding.text) == (level, True)


async def test_memory_is_no_place_for_data() -> None:
    assert (await one("file system", settings(Path("/dev/shm/hydrometer-doctor")))).level == "problem"  # noqa: S108


async def test_the_quota_and_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(folder)
    assert (await one("free space", settings(folder, quota="16MiB"))).level == "ok"
    assert (await one("free space", settings(folder, quota="1000TiB"))).level == "warning"
    write(folder / "photos" / "large", bytes(17 * 1024 * 1024))
    assert (
        "at the quota nothing is taken" in (await one("free space", settings(folder, quota="16MiB"))).remedy
    )
    monkeypatch.setattr("gateway.store.sqlite.engine.quota.DiskQuota.free_bytes", lambda _: 0)
    assert (await one("free space", settings(folder))).level == "problem"


async def test_files_that_were_set_aside_are_named(folder: Path) -> None:
    write(folder / f"{DATABASE_NAME}.damaged-20260304T030000Z", "rotten")
    write(folder / f"{DATABASE_NAME}.before-restore-20260304T030000Z", "old")
    damaged, restored = await found("set aside", settings(folder))
    assert (damaged.level, restored.level) == ("warning", "ok")
    assert "damaged-20260304" in damaged.text


async def test_a_damaged_database_and_one_of_another_version(folder: Path) -> None:
    await fill_with(folder, [ispindel()])
    told = settings(folder)
    assert "1 readings" in (await one("database", told)).text
    database = folder / DATABASE_NAME
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 999")
    assert (await one("database", told)).level == "problem"
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA user_version = 3")
    assert "keeps a copy" in (await one("database", told)).text
    write(database, b"\xff" * 8192)
    assert (await one("database", told)).level == "problem"


async def test_quarantine_and_devices_that_have_fallen_silent(folder: Path) -> None:
    await fill_with(folder, [ispindel(1), "nothing that anybody understands"])
    told = settings(folder)
    quarantined = await one("quarantine", told)
    assert quarantined.text == "1 payload was not understood"
    assert "quarantine list" in quarantined.remedy
    async with opened(folder) as store:
        [summary] = await store.devices.summaries()
    seen_at = summary.last_seen_at or 0
    assert (await one("devices", told, now=seen_at + 1889)).level == "ok"
    late = await one("devices", told, now=seen_at + 2 * 3600)
    assert (late.level, late.text) == (
        "warning",
        f"spindle1 (id {summary.device.id}) has been silent for 2 hours; it should report every 15 minutes",
    )
    assert (await one("devices", told, now=seen_at + 30 * 86_400)).level == "ok"  # it lies in a drawer


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(folder)
    await store.open_read_only()
    try:
        yield store
    finally:
        await store.close()


async def test_a_clock_that_nobody_set_or_that_went_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill_with(folder, [ispindel(1)])
    told = settings(folder)
    assert (await one("clock", told)).level == "ok"
    assert (await one("clock", told, now=1000.0)).level == "problem"
    assert "have arrived" in (await one("clock", told, now=nightly.BELIEVED_FROM + 1)).text
    monkeypatch.setattr(machine, "is_synchronised", lambda: False)
    assert (await one("clock", told)).level == "warning"


def test_the_kernel_says_whether_the_clock_is_set() -> None:
    assert machine.is_synchronised() in {True, False, None}


async def test_pythons_own_http_parser_is_a_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await one("http parser", settings(folder))).level == "ok"
    monkeypatch.setattr(http_parser, "HttpRequestParser", http_parser.HttpRequestParserPy)
    assert (await one("http parser", settings(folder))).level == "problem"


async def test_backups_of_every_night(folder: Path, tmp_path: Path) -> None:
    make(folder)
    assert (await one("backups", settings(folder))).level == "warning"
    usb = tmp_path / "usb"
    told = settings(folder, nightly_backup=usb)
    assert (await one("backups", told)).level == "problem"
    make(usb)
    same_disk, none_yet = await found("backups", told, now=NOW)
    assert (same_disk.level, none_yet.level) == ("warning", "warning")
    write(usb / nightly.made_name(NOW - 3600), "")
    assert [finding.level for finding in await found("backups", told, now=NOW)] == ["warning", "ok"]
    assert [finding.level for finding in await found("backups", told, now=NOW + 2 * 86_400)] == [
        "warning",
        "problem",
    ]


@dataclass
class Asked:
    """A service that answers every request with one status."""

    status: int = 200
    paths: tuple[str, ...] = ()

    async def answer(self, request: web.Request) -> web.Response:
        self.paths += (f"{request.method} {request.path} {request.headers.get('X-API-KEY')}",)
        return web.json_response({}, status=self.status, headers={"Location": "https://other.example/"})


async def test_the_upstream_and_its_key(folder: Path, tmp_path: Path) -> None:
    asked = Asked()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", asked.answer)
    key = write(tmp_path / "brew.key", "hg_secret\n")
    async with TestServer(app) as server:
        told = settings(folder, upstream_url=str(server.make_url("/")), upstream_key_file=key)
        assert (await one("upstream", told)).text.endswith("answers and knows the key")
        assert asked.paths == ("GET /v1/brewsessions hg_secret",)  # nothing is left there
        levels = {}
        for status in (302, 401, 403, 404, 500):
            asked.status = status
            levels[status] = (await one("upstream", told)).level
        assert levels == {302: "problem", 401: "problem", 403: "problem", 404: "problem", 500: "warning"}
    assert "cannot be reached" in (await one("upstream", told)).text
    assert (await one("key files", told)).level == "ok"
    key.chmod(0o644)
    assert (await one("key files", told)).remedy == f"chmod 600 {key}"
    write(key, "")
    assert (await one("key files", told)).level == "problem"
    assert await found("upstream", told) == []


async def test_targets_that_were_added_are_asked_as_well(folder: Path, tmp_path: Path) -> None:
    key = write(tmp_path / "club.key", "hg_secret\n")
    await fill_with(folder, [])
    port = free_port()
    await answer(folder, f"targets add club http://127.0.0.1:{port}", "--key-file", str(key))
    told = settings(folder)
    assert f"http://127.0.0.1:{port} cannot be reached" in (await one("upstream", told)).text
    assert (await one("key files", told)).text == f"{key} is its owner's alone"
    assert "0 of 0 readings wait" in (await found("forwarding", told))[0].text


@asynccontextmanager
async def broker(
    code: int, version: bytes = b"mosquitto version 2.0.11"
) -> AsyncIterator[tuple[int, list[bytes]]]:
    """As much of an MQTT broker as the doctor meets: its port, and what it was sent first."""
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1024))
        writer.write(bytes([0x20, 2, 0, code]))
        if not code:
            await reader.read(1024)
            topic = b"$SYS/broker/version"
            body = len(topic).to_bytes(2, "big") + topic + version
            writer.write(b"\x90\x03\x00\x01\x00" + bytes([0x31, len(body)]) + body)
            await reader.read()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


async def test_a_broker_that_lets_us_in_and_one_that_does_not(folder: Path) -> None:
    told = settings(folder, no_mqtt=False, mqtt_url="mqtt://x")
    async with broker(0) as (port, heard):
        finding = await one("broker", told, Broker("127.0.0.1", port, user="me", password="secret"))
        assert (finding.level, finding.text) == (
            "ok",
            f"127.0.0.1:{port} lets us in: mosquitto version 2.0.11",
        )
        assert b"\x00\x02me\x00\x06secret" in heard[0]
    async with broker(5) as (port, _):
        finding = await one("broker", told, Broker("127.0.0.1", port))
        assert (finding.level, "--mqtt-password-file" in finding.remedy) == ("problem", True)
    finding = await one("broker", told, Broker("127.0.0.1", port))
    assert (finding.level, "cannot be reached" in finding.text) == ("problem", True)


async def test_what_answers_like_no_broker(folder: Path) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1024)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        finding = await one("broker", settings(folder), Broker("127.0.0.1", port))
    assert (finding.level, "no MQTT broker" in finding.text) == ("problem", True)


@pytest.mark.broker
async def test_a_real_mosquitto(folder: Path, tmp_path: Path) -> None:
    if shutil.which("mosquitto") is None or shutil.which("mosquitto_passwd") is None:
        pytest.skip("mosquitto is not installed")
    mosquitto = Mosquitto(tmp_path)
    await asyncio.to_thread(mosquitto.start)
    try:
        url = mosquitto.url
        ours = await one(
            "broker", settings(folder), Broker(url.host, url.port, False, url.user, url.password)
        )
        assert (ours.level, "lets us in: mosquitto version" in ours.text) == ("ok", True)
        stranger = await one("broker", settings(folder), Broker(url.host, url.port))
        assert (stranger.level, "--mqtt-password-file" in stranger.remedy) == ("problem", True)
    finally:
        mosquitto.kill()


def levels_of(tmp_path: Path, text: str) -> dict[str, str]:
    """Level by the setting that the remedy names first."""
    findings = mosquitto_conf.judged(mosquitto_conf.read(write(tmp_path / "mosquitto.conf", text)))
    return {finding.remedy.partition(" ")[0]: finding.level for finding in findings}


def test_the_configuration_that_we_ship_loses_nothing_and_the_default_does(tmp_path: Path) -> None:
    assert levels_of(tmp_path, DEPLOYED.read_text("utf-8")) == {"": "ok"}
    others = {
        "max_queued_messages": "problem",
        "queue_qos0_messages": "problem",
        "max_inflight_messages": "warning",
    }
    assert levels_of(tmp_path, "") == {"persistence": "problem", **others}
    debian = f"persistence true\ninclude_dir {tmp_path / 'conf.d'}\n"
    assert levels_of(tmp_path, debian) == {"autosave_on_changes": "problem", **others}
    write(tmp_path / "conf.d" / "own.conf", DEPLOYED.read_text("utf-8"))
    assert levels_of(tmp_path, debian) == {"": "ok"}
    plugin = "plugin /usr/lib/mosquitto_persist_sqlite.so\n"
    assert levels_of(tmp_path, plugin) == others


async def test_a_broker_elsewhere_has_settings_that_nobody_sees(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = settings(folder, no_mqtt=False)
    monkeypatch.setattr(mosquitto_conf, "FILE", write(tmp_path / "own.conf", DEPLOYED.read_text("utf-8")))
    assert (await one("broker settings", told, Broker("localhost", free_port()))).level == "ok"
    finding = await one("broker settings", told, Broker("192.0.2.1", free_port()))
    assert (finding.level, "another machine" in finding.text) == ("warning", True)


async def test_a_check_that_fails_stops_no_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "MOUNTS", Path("/nowhere"))
    findings = await examine(settings(folder), None, partial(_parts, settings(folder)))
    [failed] = [finding for finding in findings if "could not be checked" in finding.text]
    assert (failed.check, failed.level) == ("file system", "warning")
    assert findings[-1].check == "upstream"


async def test_topics_that_nobody_listens_to_are_named(folder: Path) -> None:
    told = settings(folder, no_mqtt=False)
    async with serving(folder, *FREE_PORTS) as server:
        assert (await one("topics", told)).level == "ok"
        messages = [Message("attic/wort", b"1.050", qos=1)]
        await deliver("127.0.0.1", server.mqtt_port, Login("device", 60), messages)
        finding = await one("topics", told)
    assert (finding.level, "attic/wort (1)" in finding.text) == ("warning", True)
    assert "--mqtt-topic" in finding.remedy


async def test_without_a_gateway_no_topic_is_spoken_of(folder: Path) -> None:
    assert await found("topics", settings(folder, no_mqtt=False)) == []


async def test_keys_that_nobody_uses_or_that_end_soon(folder: Path) -> None:
    told, day = settings(folder), 86_400
    store = SqliteStore(folder)
    await store.open()
    access = Access(store, FakeClock(NOW))
    await access.start()
    used = await access.add("used")
    await access.add("idle")
    await access.add("short", expires_at=int(NOW) + 30 * day)
    access.check(used, "read", "10.0.0.1")
    await access.note()
    await store.close()
    assert (await one("keys", told, now=NOW)).text == "3 in use"
    assert (await one("keys", told, now=NOW + 16 * day)).text == "key short ends in 14 days"
    keep_first_key(folder, "hg_first")
    texts = [finding.text for finding in await found("keys", told, now=NOW + 180 * day)]
    assert texts == [
        f"the first API key is still in {folder / 'first-key'}",
        "key used was not used for 180 days",
        "key idle was not used for 180 days",
        "key short has ended",
        "key short was not used for 180 days",
    ]


async def test_devices_that_share_a_client_id_are_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = {"tiltbridge": ["192.168.1.7", "192.168.1.9"]}
    make(folder)
    monkeypatch.setattr(Context, "is_open", lambda _: True)

    async def ask() -> dict[str, list[str]]:
        return shared

    told = settings(folder)
    context = Context(told, None, SystemClock(), partial(_parts, told), shared_ids=ask)
    [finding] = await topics.client_ids(context)
    assert finding.level == "warning"
    assert "'tiltbridge': 192.168.1.7, 192.168.1.9" in finding.text
    shared.clear()
    assert await topics.client_ids(context) == []
