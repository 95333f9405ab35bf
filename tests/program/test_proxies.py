"""A real nginx with the shipped file in front of a real gateway: the Internet is never this machine."""

import asyncio
import os
import re
import shutil
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from gateway.network import SOURCE_BURST
from gateway.services.wrong_keys import WRONG_KEY_BURST
from tests.faults.gateways import free_port
from tests.patience import PATIENCE_S
from tests.program.program import HTTP_ONLY, PROJECT, Server, answer, ispindel, serving

DEPLOY = PROJECT / "deploy"
SYSTEM_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
NGINX, CADDY = shutil.which("nginx", path=SYSTEM_PATH), shutil.which("caddy", path=SYSTEM_PATH)

CADDYFILE = DEPLOY / "caddy" / "Caddyfile"

LAN, PUBLIC, OTHER = "192.168.1.37", "8.8.8.8", "9.9.9.9"
SENDER_HEADER = "X-Test-Sender"
"""A header by which a test says where a request comes from, as if nginx had accepted it from there."""

MAIN = """daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; {user}
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    set_real_ip_from 127.0.0.1; real_ip_header {header};
    include {folder}/site.conf;
}}
"""


class Nginx:
    """The proxy in front of a gateway, by the shipped file but for ports, TLS, and reports allowed."""

    def __init__(self, port: int, http: aiohttp.ClientSession) -> None:
        self._port = port
        self._http = http
        self._number = 0

    async def ask(self, path: str, sender: str, key: str = "", **headers: str) -> int:
        sent = {SENDER_HEADER: sender, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if key:
            sent["X-API-KEY"] = key
        async with self._http.get(f"http://127.0.0.1:{self._port}{path}", headers=sent) as answer:
            await answer.read()
            return answer.status

    async def report(self, sender: str, key: str = "", **headers: str) -> int:
        """Report a reading that is new."""
        self._number += 1
        sent = {SENDER_HEADER: sender, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if key:
            sent["X-API-KEY"] = key
        url, body = f"http://127.0.0.1:{self._port}/ingest", ispindel(self._number)
        async with self._http.post(url, data=body, headers=sent) as answer:
            return answer.status


def replaced(text: str, *pairs: tuple[str, str]) -> str:
    for shipped, ours in pairs:
        assert shipped in text, shipped
        text = text.replace(shipped, ours)
    return text


def configure(folder: Path, port: int, upstream: str) -> Path:
    """Write nginx's files; return the main one."""
    shipped = (DEPLOY / "nginx" / "hydrometer-gateway.conf").read_text()
    site = replaced(
        re.sub(r"\n *ssl_\w+ .*", "", shipped),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("    listen [::]:443 ssl;\n", ""),
        ("server 127.0.0.1:8080;", f"server {upstream};"),
        ("    #location ~ ^/ingest", "    location ~ ^/ingest"),
    )
    folder.mkdir()
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user, header=SENDER_HEADER))
    (folder / "site.conf").write_text(site)
    return folder / "nginx.conf"


@asynccontextmanager
async def nginx(folder: Path, upstream: str) -> AsyncIterator[Nginx]:
    port = free_port()
    async with started(configure(folder, port, upstream), port), aiohttp.ClientSession() as http:
        yield Nginx(port, http)


@asynccontextmanager
async def started(configuration: Path, port: int) -> AsyncIterator[None]:
    """Run nginx by its main file, from the moment when it accepts connections."""
    if NGINX is None:
        pytest.skip("nginx is not installed")
    folder = configuration.parent
    arguments = ("-p", folder, "-c", configuration, "-e", folder / "error.log")
    process = await asyncio.create_subprocess_exec(NGINX, *arguments, stderr=PIPE)
    try:
        await accepts(port, process)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def accepts(port: int, process: asyncio.subprocess.Process) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and process.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
    assert process.stderr is not None
    if process.returncode is None:
        process.kill()
    pytest.fail(f"the proxy did not start: {await process.stderr.read()!r}")


async def sources(server: Server) -> list[str]:
    """The sources of the stored readings."""
    listed = await answer(server.data, "readings --last 1000 --json")
    return [line["ip"] for line in listed.objects]


async def test_without_trusted_proxy_the_internet_is_not_this_machine(tmp_path: Path) -> None:
    async with (
        serving(tmp_path / "data", *HTTP_ONLY) as server,
        nginx(tmp_path / "nginx", f"127.0.0.1:{server.port}") as front,
    ):
        key = server.first_key or ""
        for sender in (PUBLIC, LAN, "127.0.0.1"):
            assert await front.report(sender) == 401
            assert await front.report(sender, key) == 200
        assert await front.ask("/v1/recipes", PUBLIC, key) == 200
        codes = [await front.ask("/v1/recipes", f"{PUBLIC}{n % 9}", "hg_no") for n in range(16)]
        assert codes[-1] == 429, "without the option, one bound is for all"
        assert await front.ask("/v1/recipes", PUBLIC, key) == 200
        assert set(await sources(server)) == {"127.0.0.1"}
        [line] = [line for line in server.errors if "forwards for others" in line]
        assert "127.0.0.1 forwards for others; `--trusted-proxy 127.0.0.1` or `--require-key`" in line


async def test_a_trusted_proxy_names_each_visitor(tmp_path: Path) -> None:
    trust = ("--trusted-proxy", "127.0.0.1")
    async with (
        serving(tmp_path / "data", *HTTP_ONLY, *trust) as server,
        nginx(tmp_path / "nginx", f"127.0.0.1:{server.port}") as front,
    ):
        key = server.first_key or ""
        assert await front.report(PUBLIC) == 401
        for claimed in ({"X_Forwarded_For": LAN}, {"X_Real_IP": LAN}, {"Forwarded": f"for={LAN}"}):
            assert await front.report(PUBLIC, **claimed) == 401
        assert await front.report(PUBLIC, key) == 200
        codes = [await front.ask("/v1/recipes", OTHER, "hg_no") for _ in range(int(WRONG_KEY_BURST) + 2)]
        assert (codes[: int(WRONG_KEY_BURST)], codes[-1]) == ([401] * int(WRONG_KEY_BURST), 429)
        assert await front.ask("/v1/recipes", "7.7.7.7", "hg_no") == 401
        assert await front.ask("/v1/recipes", OTHER, key) == 200
        # Many more than the burst, because the rate goes on while a busy machine takes its time.
        codes = [200]
        while codes[-1] == 200 and len(codes) < 5 * SOURCE_BURST:
            codes.append(await front.report(LAN))
        assert len(codes) > SOURCE_BURST
        assert codes[-1] == 429
        assert await front.report("192.168.1.38") == 200
        assert set(await sources(server)) == {PUBLIC, LAN, "192.168.1.38"}
        assert await front.ask("/v1", PUBLIC, key) == 404
        for path in ("/", "/healthz", "/docs", "/openapi.json", "/metrics", "/v1x", "/manager"):
            assert await front.ask(path, PUBLIC, key) == 404
        assert not [line for line in server.errors if "forwards for others" in line]


async def test_the_unix_socket_behind_nginx(tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    async with (
        serving(tmp_path / "data", *HTTP_ONLY, "--http-socket", str(path)) as server,
        nginx(tmp_path / "nginx", f"unix:{path}") as front,
    ):
        key = server.first_key or ""
        assert await front.report(LAN) == 200
        assert await front.report(PUBLIC) == 401
        assert await front.report(PUBLIC, key) == 200
        assert await front.ask("/v1/recipes", PUBLIC, key) == 200
        assert await front.ask("/v1/recipes", PUBLIC) == 401
        assert await sources(server) == [LAN, PUBLIC]
        assert (await server.stop())[0] == 0
    assert not path.exists()


@asynccontextmanager
async def caddy(folder: Path, *arguments: str | Path) -> AsyncIterator[asyncio.subprocess.Process]:
    if CADDY is None:
        pytest.skip("caddy is not installed")
    environment = {"PATH": SYSTEM_PATH, "HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        CADDY, *arguments, "--adapter", "caddyfile", stdout=PIPE, stderr=PIPE, env=environment
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def test_caddy_takes_the_shipped_file(tmp_path: Path) -> None:
    async with caddy(tmp_path, "validate", "--config", CADDYFILE) as process:
        out, err = await process.communicate()
    assert (process.returncode, out.decode().strip()) == (0, "Valid configuration"), err.decode()


async def test_caddy_names_each_visitor(tmp_path: Path) -> None:
    """By the shipped file but for ports and TLS. A visitor cannot name itself."""
    trust, port = ("--trusted-proxy", "127.0.0.1"), free_port()
    async with serving(tmp_path / "data", *HTTP_ONLY, *trust) as server:
        text = replaced(
            CADDYFILE.read_text(),
            ("brew.example {", f"http://127.0.0.1:{port} {{"),
            ("127.0.0.1:8080", f"127.0.0.1:{server.port}"),
        )
        (tmp_path / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text)
        async with caddy(tmp_path, "run", "--config", tmp_path / "Caddyfile") as process:
            await accepts(port, process)
            url, claimed = f"http://127.0.0.1:{port}", {"X-API-KEY": "hg_no", "X-Forwarded-For": PUBLIC}
            codes: dict[str, list[int]] = {}
            for visitor in ("127.0.0.2", "127.0.0.3"):
                connector = aiohttp.TCPConnector(local_addr=(visitor, 0))
                async with aiohttp.ClientSession(connector=connector) as http:
                    for _ in range(12):
                        async with http.get(f"{url}/v1/recipes", headers=claimed) as answer:
                            codes.setdefault(visitor, []).append(answer.status)
                    async with http.get(f"{url}/healthz") as answer:
                        assert answer.status == 404
            assert [(found[0], found[-1]) for found in codes.values()] == [(401, 429)] * 2
        wrong = [line for line in server.errors if "does not fit" in line]
        assert [line.split()[2] for line in wrong] == ["127.0.0.2", "127.0.0.3"]
