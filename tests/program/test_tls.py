"""TLS of a gateway of its own process: its pair, renewal under load, a terminal that is closed."""

import asyncio
import itertools
import os
import pty
import shutil
import signal
import ssl
import sys
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from gateway.tls.certificate import UNUSABLE
from sample_devices.transports.mqtt import DISCONNECT, connect_packet, publish_packet
from sample_devices.wire.report import Login, Message
from tests.payloads import ispindel
from tests.program.program import (
    FREE_PORTS,
    HTTP_ONLY,
    PROJECT,
    Server,
    _on,
    answer,
    command,
    environment,
    post,
    process,
    serving,
    until,
)

LINES = 100
"""Messages of each run of mosquitto_pub."""

RATE = 100
"""Readings that are sent each second."""


async def made(folder: Path) -> tuple[Path, Path]:
    """A pair by the command, as a process of its own."""
    finished = await process(folder, "tls self-signed --name brew.example")
    assert finished.status == 0, finished.err
    return folder / "tls.crt", folder / "tls.key"


def options(pair: tuple[Path, Path]) -> tuple[str, ...]:
    certificate, key = map(str, pair)
    return ("--tls-cert", certificate, "--tls-key", key, "--tls-port", "0", "--mqtt-tls-port", "0")


def safe_url(server: Server) -> str:
    url = server.found(r"^HTTPS on (https://\S+)")
    assert url, server.lines
    return url


def mqtts_port(server: Server) -> int:
    port = server.found(r"^MQTT on mqtts://\S+:(\d+) ")
    assert port, server.lines
    return int(port)


def browser(certificate: Path, **more: object) -> aiohttp.ClientSession:
    """A client that trusts this certificate and no other."""
    context = ssl.create_default_context(cafile=certificate)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, **more))  # type: ignore[arg-type]


def copy(source: tuple[Path, Path], target: tuple[Path, Path]) -> None:
    for here, there in zip(source, target, strict=True):
        shutil.copyfile(here, there)


async def hang_up(server: Server, words: str) -> None:
    """Ask for a renewal, and wait for the line of the log that says how it went."""
    before = len(server.errors)
    server.process.send_signal(signal.SIGHUP)
    await until(lambda: any(words in line for line in server.errors[before:]))


async def test_renewal_under_load_loses_nothing(tmp_path: Path) -> None:
    data, used = tmp_path / "data", (tmp_path / "c.pem", tmp_path / "k.pem")
    first, second = await made(tmp_path / "first"), await made(tmp_path / "second")
    copy(first, used)
    both = tmp_path / "both.pem"
    both.write_bytes(first[0].read_bytes() + second[0].read_bytes())
    async with serving(data, *FREE_PORTS, *options(used)) as server:
        taken, numbers, stop = 0, itertools.count(), asyncio.Event()

        async def send(http: aiohttp.ClientSession) -> None:
            nonlocal taken
            while not stop.is_set():
                body = ispindel(angle=f"{next(numbers) / 100:.2f}").encode()
                async with http.post(f"{safe_url(server)}/ingest", data=body) as response:
                    assert response.status == 200
                taken += 1
                await asyncio.sleep(4 / RATE)

        async def publish() -> None:
            """Publish by MQTT over TLS at QoS 1: every visit is a handshake, a reading and its PUBACK."""
            nonlocal taken
            trust, port = ssl.create_default_context(cafile=both), mqtts_port(server)
            while not stop.is_set():
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
                writer.write(connect_packet(Login("publisher", 60)))
                assert await reader.readexactly(4) == b"\x20\x02\x00\x00"
                body = ispindel(angle=f"{next(numbers) / 100:.2f}").encode()
                writer.write(publish_packet(Message("hydrometer/spindle1", body), 1))
                assert await reader.readexactly(4) == b"\x40\x02\x00\x01"
                taken += 1
                writer.write(DISCONNECT)
                writer.close()
                await asyncio.sleep(4 / RATE)

        # Half of them over connections that stay, half with a handshake for each reading.
        async with browser(both) as kept, browser(both, force_close=True) as fresh:
            senders = [asyncio.create_task(send(http)) for http in (kept, kept, fresh, fresh)]
            senders.append(asyncio.create_task(publish()))
            await until(lambda: taken > RATE)
            for halves, words in (
                ((second[0].read_bytes(), used[1].read_bytes()), "does not belong to"),
                ((second[0].read_bytes()[:300], second[1].read_bytes()), "only a part of one"),
                ((b"", b""), "holds no certificate"),
            ):
                for path, half in zip(used, halves, strict=True):
                    path.write_bytes(half)
                await hang_up(server, words)
                examined = await command(data, "doctor --json", *FREE_PORTS, *options(used))
                red = [said["text"] for said in examined.objects if said["level"] == "problem"]
                assert any(text.startswith(f"the running gateway {UNUSABLE}") for text in red)
            copy(second, used)
            await hang_up(server, "new connections get the certificate for brew.example")
            so_far = taken
            await until(lambda: taken > so_far + RATE)
            stop.set()
            await asyncio.gather(*senders)
        async with browser(second[0]) as http, http.get(f"{safe_url(server)}/healthz") as response:
            assert response.status == 200
        assert (await server.stop())[0] == 0
    stored = await answer(data, "readings --json --last 100000")
    assert len(stored.lines) == taken > 2 * RATE


@pytest.mark.broker
@pytest.mark.skipif(shutil.which("mosquitto_pub") is None, reason="there is no mosquitto_pub on this machine")
async def test_mosquitto_pub_over_tls_in_all_versions(tmp_path: Path) -> None:
    pair = await made(tmp_path / "data")

    async def publish(port: int, version: str, qos: int) -> str:
        topic = f"hydrometer/{version}-{qos}"
        child = await asyncio.create_subprocess_exec(
            *("mosquitto_pub", "-h", "127.0.0.1", "-p", str(port), "--cafile", str(pair[0])),
            *("-V", version, "-q", str(qos), "-t", topic, "-l"),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        lines = (ispindel(name=topic, angle=f"{20 + number / 10:.1f}") + "\n" for number in range(LINES))
        _, errors = await child.communicate("".join(lines).encode())
        return f"{topic}: {errors.decode()}" if child.returncode else ""

    async with serving(tmp_path / "data", *FREE_PORTS, *options(pair)) as server:
        runs = [(version, qos) for version in ("mqttv31", "mqttv311", "mqttv5") for qos in (0, 1, 2)]
        failed = await asyncio.gather(*(publish(mqtts_port(server), *each) for each in runs))
        assert [words for words in failed if words] == []

        async def all_stored() -> bool:
            lines = (await answer(server.data, "readings --json --last 100000")).lines
            return len(lines) == LINES * len(runs)

        await until(all_stored)
        assert (await server.stop())[0] == 0


async def test_without_plain_http_commands_and_doctor_find_the_gateway(tmp_path: Path) -> None:
    pair = await made(tmp_path / "data")
    given = (*FREE_PORTS, *options(pair), "--tls-only", "--http-host", "127.0.0.2", "--http-host", "::1")
    async with (
        serving(tmp_path / "data", *given) as server,
        browser(pair[0]) as http,
        aiohttp.ClientSession() as plain,
    ):
        assert await post(plain, server, ispindel()) == 200
        async with plain.get(f"{server.url}/v1/recipes") as response:
            assert response.status == 404
        headers = {"X-API-KEY": server.first_key or ""}
        safe = safe_url(server).replace("127.0.0.2", "[::1]")
        async with http.get(f"{safe}/manage/status", headers=headers) as response:
            assert response.status == 200
        assert (await answer(server.data, "readings --json")).lines
        examined = await command(server.data, "doctor --json", *given)
        assert [said for said in examined.objects if said["level"] == "problem"] == []
        found = [(said["about"], said["text"]) for said in examined.objects]
        assert [about for about, text in found if text.startswith("listening on https://127.0.0.2:")] == [
            "HTTPS"
        ]
        assert any(text.startswith("certificate for brew.example, ends on ") for _, text in found), found


async def test_a_signal_without_a_certificate_changes_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, *HTTP_ONLY) as server, aiohttp.ClientSession() as http:
        await hang_up(server, "nothing to read again")
        assert await post(http, server, ispindel()) == 200
        assert (await server.stop())[0] == 0


async def test_a_terminal_that_is_closed_ends_the_gateway(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    child = await asyncio.create_subprocess_exec(
        *("setsid", "--ctty", sys.executable, "-m", "gateway", "serve", *_on(tmp_path), *HTTP_ONLY),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=PROJECT,
        env=environment(),
    )
    os.close(theirs)
    try:
        shown = b""
        while b"Ready." not in shown:
            shown += await asyncio.to_thread(os.read, ours, 65_536)
    finally:
        os.close(ours)
        with suppress(TimeoutError):
            async with asyncio.timeout(20):
                await child.wait()
        if child.returncode is None:
            child.kill()
    assert child.returncode == 0
