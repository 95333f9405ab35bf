"""Proxies over real sockets: who a sender is, and what that sender may do without a key.

127.0.0.1 is this machine and the proxy of the owner; other addresses of 127.0.0.0/8 play neighbours.
"""

import asyncio
import json
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gateway import endpoints
from gateway.clock import SystemClock
from gateway.domain.payload import Payload
from gateway.http.endpoint import Call, Endpoint, Media, Query
from gateway.http.middleware import host_of, scheme_of
from gateway.intake.ordinary import Done
from gateway.network import SOURCE_BURST
from gateway.services.build import build_services
from gateway.services.wrong_keys import WRONG_KEY_BURST
from gateway.store.sqlite.store import SqliteStore
from tests.program.program import ispindel
from tests.system.test_listening import Bench
from tests.system.transports.conftest import wait_for

PROXY, NEIGHBOUR = "127.0.0.1", "127.0.0.2"
PUBLIC, LAN = "8.8.8.8", "192.168.1.37"


class Gateway(Bench):
    """The listeners of a gateway, with a store that can be looked into."""

    store: SqliteStore
    key = ""

    async def ask(
        self, path: str = "/ingest", key: str = "", sender: str = PROXY, **headers: str
    ) -> tuple[int, int]:
        """Report a new reading, or get another path; return the status and the seconds to wait."""
        [port] = self.ports("HTTP on ")
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            sent["X-API-KEY"] = key
        report = ispindel(self.number(), name="spindle", gravity="12.5") if path == "/ingest" else None
        connector = aiohttp.TCPConnector(local_addr=(sender, 0))
        async with (
            aiohttp.ClientSession(connector=connector) as http,
            http.request(
                "POST" if report else "GET", f"http://127.0.0.1:{port}{path}", data=report, headers=sent
            ) as answer,
        ):
            await answer.read()
            return answer.status, int(answer.headers.get("Retry-After", 0))

    async def status_of(self, *arguments: Any, **options: Any) -> int:
        return (await self.ask(*arguments, **options))[0]

    async def until_429(self, burst: float, *arguments: Any, **options: Any) -> list[int]:
        """Ask until one is refused for its rate: on a busy machine more of it is there again meanwhile."""
        codes: list[int] = []
        while 429 not in codes:
            assert len(codes) < 10 * burst, "no rate"
            codes.append(await self.status_of(*arguments, **options))
        return codes

    def number(self) -> int:
        self._number = getattr(self, "_number", 0) + 1
        return self._number

    async def sources(self) -> list[str]:
        """The sources of all stored readings, oldest first."""
        lines = self.store.readings.json_lines(last=1000, device_id=None, session_id=None)
        return [json.loads(line)["ip"] async for line in lines]


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    store = SqliteStore(tmp_path)
    await store.open()
    services = build_services(store, tmp_path, SystemClock())
    await services.access.start()
    await services.intake.start()
    gateway = Gateway(services, tmp_path)
    gateway.store = store
    gateway.key = await services.access.add("proxy", frozenset({"ingest"}))
    yield gateway
    await gateway.stop()
    await store.close()


@pytest.mark.parametrize("header", ["X_Forwarded_For", "X_Real_IP", "Forwarded"])
async def test_a_proxy_that_is_not_trusted_makes_nobody_local(
    gateway: Gateway, header: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S4: from loopback and from a neighbour, a forwarded report needs a key."""
    await gateway.start(no_tcp=True)
    for sender in (PROXY, NEIGHBOUR):
        assert await gateway.status_of(sender=sender, **{header: "192.168.1.37"}) == 401
        assert await gateway.status_of(sender=sender, **{header: "nonsense"}) == 401
        assert await gateway.status_of(sender=sender, key=gateway.key, **{header: "nonsense"}) == 200
        assert await gateway.status_of(sender=sender) == 200
    assert await gateway.sources() == [PROXY, PROXY, NEIGHBOUR, NEIGHBOUR]
    [line, neighbours] = [line for line in caplog.messages if "forwards for others" in line]
    assert neighbours.endswith("trust only a proxy of yours"), "a stranger's header is no reason to trust him"
    words = "127.0.0.1 forwards for others; `--trusted-proxy 127.0.0.1` or `--require-key`"
    assert line == f"http: {words}"
    assert "forwards for others" in gateway.parts.stats.parts["proxy"]
    assert not gateway.parts.stats.in_trouble


async def test_a_proxy_that_is_not_trusted_has_the_rate_of_a_neighbour(gateway: Gateway) -> None:
    """S5: loopback loses its exemption, a right key or not."""
    await gateway.start(no_tcp=True)
    codes = await gateway.until_429(SOURCE_BURST, key=gateway.key, X_Forwarded_For="8.8.8.8")
    assert codes[: int(SOURCE_BURST)] == [200] * int(SOURCE_BURST)
    assert await gateway.status_of() == 200


async def test_a_trusted_proxy_names_the_sender(gateway: Gateway) -> None:
    await gateway.start(no_tcp=True, trusted_proxy=[PROXY])
    assert await gateway.status_of(X_Forwarded_For=LAN) == 200
    assert await gateway.status_of(X_Forwarded_For=f"{LAN}, {PUBLIC}") == 401
    assert await gateway.status_of(X_Forwarded_For=PUBLIC, key=gateway.key) == 200
    assert await gateway.status_of(Forwarded=f"for={LAN}") == 200
    assert await gateway.status_of(sender=NEIGHBOUR, X_Forwarded_For=LAN) == 401
    assert await gateway.sources() == [LAN, PUBLIC, LAN]
    for path in ("/ingest", "/healthz", "/elsewhere"):
        assert await gateway.status_of(path, X_Forwarded_For="unknown") == 400
        assert await gateway.status_of(path, X_Forwarded_For=LAN, Forwarded=f"for={LAN}") == 400


async def test_host_and_scheme_are_those_that_a_trusted_proxy_names(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[str, str]] = []

    async def noted(call: Call[Query, None]) -> web.Response:
        found.append((host_of(call.request), scheme_of(call.request)))
        return web.Response()

    endpoint = Endpoint("GET", "/v1/noted", noted, "What the request was", Query, Media(("text/plain",)))
    monkeypatch.setattr(endpoints, "ENDPOINTS", (endpoint,))
    await gateway.start(no_tcp=True, trusted_proxy=[PROXY], hostname=["brew.example"])
    key = await gateway.parts.access.add("reader", frozenset({"read"}))
    named = {"X_Forwarded_Host": "brew.example", "X_Forwarded_Proto": "https"}
    assert await gateway.status_of("/v1/noted", key, Host="10.0.0.1", **named) == 200
    assert await gateway.status_of("/v1/noted", key, sender=NEIGHBOUR, Host="10.0.0.1", **named) == 200
    assert await gateway.status_of("/v1/noted", key, Host="10.0.0.1") == 200
    assert found == [("brew.example", "https"), ("10.0.0.1", "http"), ("10.0.0.1", "http")]
    assert await gateway.status_of("/v1/noted", key, X_Forwarded_Host="evil.example") == 403


async def test_rate_and_wrong_keys_count_for_the_named_address(gateway: Gateway) -> None:
    """S6: wrong keys and readings beyond the rate harm their own source, not the proxy."""
    await gateway.start(no_tcp=True, trusted_proxy=[PROXY])
    for path, burst, wrong in (
        ("/v1/recipes", WRONG_KEY_BURST, "hg_wrong"),
        ("/ingest", WRONG_KEY_BURST, "hg_wrong"),
    ):
        sender = f"9.9.9.{len(path)}"
        codes = await gateway.until_429(burst, path, wrong, X_Forwarded_For=sender)
        assert codes[: int(burst)] == [401] * int(burst)
        assert await gateway.status_of(path, wrong, X_Forwarded_For=PUBLIC) == 401
        assert await gateway.status_of("/ingest", gateway.key, X_Forwarded_For=sender) == 200
    await gateway.until_429(SOURCE_BURST, X_Forwarded_For=LAN)
    assert await gateway.status_of(X_Forwarded_For="192.168.1.38") == 200


async def test_a_neighbours_wrong_key_counts_and_loses_no_reading(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    await gateway.start(no_tcp=True)
    for _ in range(3):
        assert await gateway.status_of(sender=NEIGHBOUR, key="hg_mistyped") == 200
    assert await gateway.status_of(sender=NEIGHBOUR, key="of another service") == 200
    assert len(await gateway.sources()) == 4
    assert gateway.parts.stats.wrong_keys == 3
    assert caplog.messages.count(f"keys: {NEIGHBOUR} sent a key that does not fit") == 1


async def test_with_require_key_nobody_reports_without_one(gateway: Gateway) -> None:
    await gateway.start(require_key=True, trusted_proxy=[PROXY])
    reader = await gateway.parts.access.add("reader", frozenset({"read"}))
    for sender, named in ((PROXY, {}), (NEIGHBOUR, {}), (PROXY, {"X_Forwarded_For": LAN})):
        assert await gateway.status_of(sender=sender, **named) == 401
        assert await gateway.status_of(sender=sender, key=reader, **named) == 401
        assert await gateway.status_of(sender=sender, key=gateway.key, **named) == 200
    assert len(await gateway.sources()) == 3
    assert "TCP is off, because --require-key is on: TCP can send no key" in gateway.said
    assert not gateway.ports("TCP on ")
    assert "tcp" not in gateway.parts.stats.parts


async def test_the_key_of_a_delivery_goes_with_it(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str | None] = []
    take = gateway.parts.intake.take_now

    def noted(payload: Payload, done: Done) -> bool:
        taken.append(payload.key.name if payload.key else None)
        return take(payload, done)

    monkeypatch.setattr(gateway.parts.intake, "take_now", noted)
    await gateway.start(no_tcp=True, trusted_proxy=[PROXY])
    for sender, named in ((PROXY, {}), (NEIGHBOUR, {}), (PROXY, {"X_Forwarded_For": PUBLIC})):
        assert await gateway.status_of(sender=sender, key=gateway.key, **named) == 200
    assert await gateway.status_of(sender=NEIGHBOUR, key="hg_mistyped") == 200
    assert await gateway.status_of(sender=NEIGHBOUR) == 200
    assert taken == ["proxy", "proxy", "proxy", None, None]


async def test_a_trusted_proxy_may_have_many_connections(gateway: Gateway) -> None:
    await gateway.start(no_tcp=True, trusted_proxy=[NEIGHBOUR])
    [port] = gateway.ports("HTTP on ")
    stats = gateway.parts.stats
    for sender, allowed in ((NEIGHBOUR, 40), ("127.0.0.3", 32)):
        writers = []
        for _ in range(40):
            _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(sender, 0))
            writers.append(writer)
        await wait_for(lambda: stats.connections + stats.connections_refused == 40)
        assert (stats.connections, stats.connections_refused) == (allowed, 40 - allowed)
        for writer in writers:
            writer.close()
        await wait_for(lambda: not stats.connections)


async def test_the_socket_for_a_proxy(gateway: Gateway, tmp_path: Path) -> None:
    """Whoever is forwarded there counts as named; whoever is not is nobody, and needs a key."""
    path = tmp_path / "http.sock"
    await gateway.start(no_tcp=True, http_socket=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    assert f"HTTP for a proxy on {path}" in gateway.said
    codes: list[int] = []
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as http:
        for named in ({}, {"X-Forwarded-For": LAN}, {"X-Forwarded-For": PUBLIC}, {"X-Real-IP": LAN}):
            for key in ("", gateway.key):
                report = ispindel(gateway.number(), name="spindle", gravity="12.5")
                headers = {**named, **({"X-API-KEY": key} if key else {})}
                async with http.post("http://gateway/ingest", data=report, headers=headers) as answer:
                    codes.append(answer.status)
        async with http.get("http://localhost/manage/keys") as answer:
            codes.append(answer.status)
    assert codes == [401, 200, 200, 200, 401, 200, 401, 200, 401]
    assert await gateway.sources() == ["", LAN, LAN, PUBLIC, ""]
    # By TCP, nothing of this holds.
    assert await gateway.status_of(X_Forwarded_For=LAN) == 401
    await gateway.stop()
    assert not path.exists()


async def test_the_proxys_socket_has_no_share_of_connections(gateway: Gateway, tmp_path: Path) -> None:
    path, stats = tmp_path / "http.sock", gateway.parts.stats
    await gateway.start(no_tcp=True, http_socket=path)
    writers = [(await asyncio.open_unix_connection(path))[1] for _ in range(40)]
    await wait_for(lambda: stats.connections == 40)
    assert not stats.connections_refused
    for writer in writers:
        writer.close()


async def test_a_socket_that_a_killed_gateway_left_is_replaced(gateway: Gateway, tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    await gateway.start(no_tcp=True, http_socket=path)
    assert gateway.parts.stats.parts["http socket"] == f"listening on {path}"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("file", "exists and is no socket"),
        ("used", "is in use"),
        ("no/such", "no such file"),
        ("x" * 200, "long"),
        ("control.sock", "own"),
    ],
)
async def test_a_socket_that_cannot_be_had_leaves_the_rest_alone(
    gateway: Gateway, tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "file").write_text("precious")
    with socket.socket(socket.AF_UNIX) as used:
        used.bind(str(tmp_path / "used"))
        used.listen()
        await gateway.start(no_tcp=True, http_socket=tmp_path / name)
        assert words in gateway.parts.stats.parts["http socket"]
        assert gateway.parts.stats.in_trouble == {"http socket"}
        assert await gateway.status_of() == 200
        await gateway.stop()
    assert (tmp_path / "file").read_text() == "precious"
    assert (tmp_path / "used").exists()
