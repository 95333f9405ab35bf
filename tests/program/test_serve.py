"""`serve` from its first line to its last: zero configuration, listeners, taken ports, one at a time."""

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from gateway import __version__
from gateway.cli.client import ask_running
from gateway.processes import Holder, port_holder
from gateway.store.sqlite.engine.database import LOCK_NAME, lock_directory

from .program import (
    FREE_PORTS,
    HTTP_ONLY,
    LOCAL,
    OWN_NAME,
    Server,
    ended,
    environment,
    ispindel,
    launch,
    post,
    process,
    run,
    serving,
    start,
)

LOCK_HELD_S = 1.5
"""Longer than a start takes to find out."""

ANY_PORTS = {"GATEWAY_PORT": "0", "GATEWAY_MQTT_PORT": "0"}


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.mark.parametrize("given_by", ["home", "xdg", "systemd"])
async def test_nothing_needs_to_be_configured(tmp_path: Path, given_by: str) -> None:
    env = {"HOME": str(tmp_path), **ANY_PORTS}
    data = tmp_path / ".local" / "share" / "hydrometer-gateway"
    if given_by == "xdg":
        env["XDG_DATA_HOME"] = str(tmp_path / "xdg")
        data = tmp_path / "xdg" / "hydrometer-gateway"
    elif given_by == "systemd":
        data = tmp_path / "state"
        env["STATE_DIRECTORY"] = str(data)
    server = Server(await launch("serve", env=env), data)
    await server.start()
    try:
        assert server.ready, (server.lines, server.errors)
        assert f"Data in {data}" in server.lines
        async with aiohttp.ClientSession() as http:
            hosts = ["127.0.0.1", *(["[::1]"] if socket.has_dualstack_ipv6() else [])]
            for number, host in enumerate(hosts):
                url = f"http://{host}:{server.port}/ingest"
                async with http.post(url, data=ispindel(angle=str(number)).encode()) as response:
                    assert response.status == 200
        socket.create_connection(("127.0.0.1", server.mqtt_port), 5).close()
        listed = await run("readings", "--json", env=env)
        assert len(listed.lines) == len(hosts)
    finally:
        assert (await server.stop())[0] == 0


async def test_a_journal_never_gets_the_first_key(tmp_path: Path) -> None:
    async with serving(tmp_path, *FREE_PORTS) as server, aiohttp.ClientSession() as http:
        assert "hg_" not in "".join([*server.lines, *server.errors])
        [told] = [line for line in server.lines if line.startswith("Created the owner account.")]
        assert f" {tmp_path / 'first-key'}; `hydrometer-gateway keys first` shows it " in told
        assert server.first_key is not None
        headers = {"X-API-KEY": server.first_key}
        async with http.get(server.url + "/v1/fermentation/1", headers=headers) as response:
            assert response.status == 404
        assert (await server.stop())[0] == 0
        assert server.first_key not in "".join(server.errors)
    async with serving(tmp_path, *FREE_PORTS) as again:
        assert again.first_key is None
        assert "hg_" not in "".join([*again.lines, *again.errors])
        assert not [line for line in again.lines if "API key" in line]


async def test_on_a_terminal_the_first_key_is_shown_once_and_kept_nowhere(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    arguments = ("--config", os.devnull, "--data-dir", str(tmp_path), *HTTP_ONLY)
    child = await launch("serve", *arguments, stdout=theirs)
    os.close(theirs)
    shown = ""
    while "Ready" not in shown:
        shown += (await asyncio.to_thread(os.read, ours, 65_536)).decode()
    child.terminate()
    assert (await ended(child)).status == 0
    os.close(ours)
    assert len(re.findall(r"shown this once: hg_[A-Za-z0-9_-]{43}\s", shown)) == 1
    assert not (tmp_path / "first-key").exists()


async def test_one_line_for_each_listener(tmp_path: Path) -> None:
    async with serving(tmp_path, *FREE_PORTS) as server:
        [http] = [line for line in server.lines if line.startswith("HTTP on ")]
        assert f"Page on http://127.0.0.1:{server.port}/ui/" in server.lines
        [mqtt] = [line for line in server.lines if line.startswith("MQTT on ")]
    assert http.startswith(f"HTTP on http://127.0.0.1:{server.port} ")
    assert mqtt == (
        f"MQTT on mqtt://127.0.0.1:{server.mqtt_port} "
        "(from this machine alone; local devices alone, without a key)"
    )
    assert server.lines[-1] == "Ready."


async def test_a_taken_http_port_is_one_line(tmp_path: Path, taken: int) -> None:
    options = ("--host", "127.0.0.1", "--port", str(taken), "--mqtt-port", "0")
    server = await start(tmp_path, *options)
    assert await server.wait() == 1
    told = [line for line in server.errors if line.startswith("hydrometer-gateway: ")]
    holder = f"{OWN_NAME} (process {os.getpid()})"
    assert told == [
        f"hydrometer-gateway: HTTP: port {taken} on 127.0.0.1 is already in use by {holder}; "
        "stop the other program or choose another with --port"
    ]
    assert len(server.errors) == 1


async def test_the_holder_of_a_port_has_its_whole_name(tmp_path: Path) -> None:
    """The kernel keeps 15 characters of it."""
    program = tmp_path / "the-only-brewery-program"
    program.write_text(
        f"#!{sys.executable}\n"
        "import socket\n"
        "listener = socket.create_server(('127.0.0.1', 0))\n"
        "print(listener.getsockname()[1], flush=True)\n"
        "listener.accept()\n"
    )
    program.chmod(0o755)
    child = await asyncio.create_subprocess_exec(program, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    port = int(await child.stdout.readline())
    found = port_holder(port)
    child.kill()
    await child.wait()
    assert found == Holder(child.pid, program.name)


async def test_taken_ports_for_devices_leave_http_alone(tmp_path: Path, taken: int) -> None:
    async with (
        serving(tmp_path, *LOCAL, "--mqtt-port", str(taken), "--tcp-port", str(taken)) as server,
        aiohttp.ClientSession() as http,
    ):
        assert server.found(rf"^(No TCP: port {taken} .*in use by .*; .*--tcp-port.*)$")
        assert server.found(rf"^(No MQTT: port {taken} .*in use by .*; .*--mqtt-url.*--mqtt-port.*)$")
        assert await post(http, server, ispindel()) == 200
        async with http.get(server.url + "/healthz") as response:
            assert (await response.json())["parts"]["mqtt"] == "trouble"
        assert str(taken) in (await ask_running(tmp_path, "/healthz"))["parts"]["mqtt"]
        assert (await server.stop())[0] == 0


async def test_the_second_daemon_on_the_same_data_gives_up(tmp_path: Path) -> None:
    async with serving(tmp_path, *HTTP_ONLY) as first, aiohttp.ClientSession() as http:
        second = await start(tmp_path, *HTTP_ONLY)
        assert await second.wait() == 1
        [said] = second.errors
        assert re.fullmatch(
            f"hydrometer-gateway: a gateway runs already with {tmp_path} "
            rf"\(process {first.process.pid}, since [0-9:-]+( [0-9:]+)?\); commands work beside it",
            said,
        )
        assert second.lines == []
        assert await post(http, first, ispindel()) == 200
        assert (await process(tmp_path, "sessions add --batchcode A")).out == "1\n"


async def test_a_daemon_waits_for_a_command_to_let_go(tmp_path: Path) -> None:
    held = lock_directory(tmp_path / LOCK_NAME)
    asyncio.get_running_loop().call_later(LOCK_HELD_S, os.close, held)
    async with serving(tmp_path, *HTTP_ONLY) as server:
        assert (await server.stop())[0] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--port", "99999"), "port: 65535 is the most that it can be"),
        (("--upstream-url", "brew.example"), "upstream_url: must look like https://host (without the /v1)"),
        (("--upstream-url", "http://h:99999"), "upstream_url: must look like https://host (without the /v1)"),
        (("--upstream-url", "http://h"), "an upstream URL needs --upstream-key-file"),
        (
            ("--upstream-url", "http://h", "--upstream-key-file", "/nowhere"),
            "there is no upstream key file ",
        ),
        (
            ("--upstream-url", "http://h", "--upstream-key-file", "/dev/null"),
            "does not hold one line with a key",
        ),
        (("--mqtt-url", "mqtt://h:99999", "--port", "0"), "an MQTT URL looks like mqtt://"),
        (
            ("--host", "nowhere.invalid", "--port", "0"),
            "cannot listen on nowhere.invalid port 0: no such name",
        ),
        (("--log-level", "loud"), "log_level: it has to be 'debug'"),
    ],
)
async def test_what_cannot_work_is_one_line(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    finished = await process(tmp_path, ("serve", *options))
    assert finished.status == 1
    [line] = finished.err.splitlines()
    assert line.startswith("hydrometer-gateway: ")
    assert message in line


async def test_the_file_configures_a_real_start(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    lines = {"data_dir": str(tmp_path / "data"), "host": "127.0.0.1", "port": 1, "no_mqtt": True}
    config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items()))
    env = {"GATEWAY_PORT": "0", "GATEWAY_CONFIG": str(config)}
    server = Server(await launch("serve", env=env), tmp_path)
    await server.start()
    assert server.ready, server.errors
    assert not [line for line in server.lines if "MQTT" in line]
    added = await run("sessions", "add", env={**env, "GATEWAY_SESSIONS_ADD_BATCHCODE": "B7"})
    assert added.out == "1\n"
    config.write_text('data_dir = "x"\nprot = 1\n')
    refused = await run("sessions", "list", env=env)
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith("hydrometer-gateway: unknown key 'prot' in the configuration file")
    assert (await server.stop())[0] == 0


async def test_help_and_version_need_nothing() -> None:
    assert (await run("--help")).status == 0
    finished = await ended(await launch("--version"))
    assert (finished.status, finished.out) == (0, f"{__version__}\n")
    assert "GATEWAY_PORT" not in environment()
