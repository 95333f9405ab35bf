"""Requests outward, over real sockets: refused addresses, redirects, bounds, and what a failure means."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.delivery import DeliveryResult
from gateway.errors import ConfigError
from gateway.outward import client as outward
from gateway.outward.client import ANSWER_BYTES, OutwardClient, check_url
from gateway.outward.guard import OutwardFailed
from gateway.tls.self_signed import CERTIFICATE_NAME, KEY_NAME, make
from tests.receivers import Receiver, Reply

HERE = "127.0.0.1"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver().listening() as listening:
        yield listening


@pytest.fixture
async def client() -> AsyncIterator[OutwardClient]:
    made = OutwardClient()
    yield made
    await made.close()


async def failure(client: OutwardClient, url: str, *, deadline_s: float = 10.0) -> OutwardFailed:
    with pytest.raises(OutwardFailed) as caught:
        await client.request("POST", url, body=b"{}", deadline_s=deadline_s)
    return caught.value


class NameServer:
    """Answers with one list of addresses after the other; the last one stays."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, _host: str, _port: int) -> list[str]:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_an_answer_and_what_was_sent(receiver: Receiver, client: OutwardClient) -> None:
    receiver.script = [Reply(201, b"line one\n\x1b[31mtwo", {"X-One": "1"})]
    answer = await client.request(
        "POST", f"{receiver.url}/a?b=c%2Fd", headers={"Content-Type": "application/json"}, body=b'{"a":1}'
    )
    assert (answer.status, answer.headers["x-one"], answer.shown()) == (201, "1", "line one [31mtwo")
    [request] = receiver.requests
    assert (request.method, request.path, request.body) == ("POST", "/a?b=c%2Fd", b'{"a":1}')
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://example.org/", "http:// or https://"),
        ("file:///etc/passwd", "http:// or https://"),
        ("//example.org", "http:// or https://"),
        ("http://user:word@example.org/", "user or password"),
        ("http://user@example.org/", "user or password"),
        ("http:///path", "no host"),
        ("http://example.org:0/", "no host"),
        ("http://example.org:99999/", "is none"),
        ("http://[::1", "is none"),
        ("http://exa mple.org/", "a space"),
        ("http://example.org/\r\nX: y", "a space or a character"),
        ("http://169.254.169.254/latest", "link-local"),
        ("http://[fe80::1]/", "link-local"),
        ("http://[fe80::1%25eth0]/", "link-local"),
        ("http://[febf::1]/", "link-local"),
        ("http://[::ffff:169.254.169.254]/", "link-local"),
        ("http://[::ffff:a9fe:a9fe]/", "link-local"),
        (f"http://example.org/{'x' * 3000}", "characters"),
    ],
)
async def test_addresses_that_are_refused(client: OutwardClient, url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_url(url)
    failed = await failure(client, url)
    assert failed.verdict is DeliveryResult.PAUSED


@pytest.mark.parametrize("spelling", ["2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.16689662"])
async def test_link_local_addresses_in_other_spellings(client: OutwardClient, spelling: str) -> None:
    """The C library reads all of these as 169.254.169.254."""
    assert socket.inet_ntoa(socket.inet_aton(spelling)) == "169.254.169.254"
    failed = await failure(client, f"http://{spelling}/")
    assert failed.verdict is DeliveryResult.PAUSED
    assert "link-local" in str(failed)


@pytest.mark.parametrize("address", ["169.254.0.1", "::ffff:169.254.0.1", "fe80::1", "fe80::1%lo"])
async def test_names_that_lead_to_link_local_addresses(receiver: Receiver, address: str) -> None:
    client = OutwardClient(resolve=NameServer([address]))
    failed = await failure(client, f"http://metadata.lan:{receiver.port}/")
    assert "link-local" in str(failed)
    assert failed.verdict is DeliveryResult.PAUSED
    await client.close()


async def test_a_name_server_that_answers_otherwise_the_second_time(receiver: Receiver) -> None:
    """The address that was looked at is connected to: the name is not looked up a second time."""
    other = Receiver()
    async with other.listening(host="127.0.0.2", port=receiver.port):
        names = NameServer(["127.0.0.1"], ["127.0.0.2"], ["169.254.169.254"])
        client = OutwardClient(resolve=names)
        await client.request("POST", f"http://rebinding.lan:{receiver.port}/", body=b"1")
        assert (names.asked, receiver.connections, other.connections) == (1, 1, 0)
        assert receiver.requests[0].headers["host"] == f"rebinding.lan:{receiver.port}"
        # Each request looks again: a connection that is kept would go on to what was right once.
        await client.request("POST", f"http://rebinding.lan:{receiver.port}/", body=b"2")
        assert (names.asked, receiver.connections, other.connections) == (2, 1, 1)
        assert "link-local" in str(await failure(client, f"http://rebinding.lan:{receiver.port}/"))
        await client.close()


async def test_the_system_is_asked_once(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """aiohttp does not look the name up again behind our back."""
    asked: list[object] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: object, *more: object, **named: object) -> object:
        asked.append(host)
        if host == "brewery.lan":
            return real("127.0.0.1" if asked.count(host) == 1 else "169.254.1.1", *more, **named)  # type: ignore[arg-type]
        return real(host, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    client = OutwardClient()
    answer = await client.request("GET", f"http://brewery.lan:{receiver.port}/")
    assert answer.status == 200
    assert asked.count("brewery.lan") == 1
    await client.close()


async def test_our_own_ports(receiver: Receiver) -> None:
    client = OutwardClient(own_ports=lambda: {receiver.port})
    own = socket.gethostbyname(socket.gethostname())
    for host in (HERE, "localhost", "127.9.9.9", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", own):  # noqa: S104
        failed = await failure(client, f"http://{host}:{receiver.port}/")
        assert failed.verdict is DeliveryResult.PAUSED, host
        assert "one of this gateway" in str(failed), host
    assert receiver.connections == 0
    await client.close()
    other = OutwardClient(own_ports=lambda: {receiver.port + 1})
    assert (await other.request("GET", receiver.url)).status == 200
    await other.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(receiver: Receiver, client: OutwardClient, status: int) -> None:
    other = Receiver()
    async with other.listening():
        receiver.script = [
            Reply(status, headers={"Location": f"http://u:secret@127.0.0.1:{other.port}/in?k=secret"})
        ]
        failed = await failure(client, receiver.url)
        assert str(failed) == (f"HTTP {status} redirects to 127.0.0.1:{other.port}, which is not followed")
        assert failed.verdict is DeliveryResult.PAUSED
        assert other.connections == 0


async def test_an_address_that_does_not_listen_leaves_the_next(receiver: Receiver) -> None:
    client = OutwardClient(resolve=NameServer(["127.0.0.9", "169.254.9.9", "127.0.0.1"]))
    answer = await client.request("POST", f"http://two.lan:{receiver.port}/", body=b"x")
    assert (answer.status, len(receiver.requests)) == (200, 1)
    await client.close()


async def test_nothing_left_where_nobody_listens(client: OutwardClient) -> None:
    with socket.socket() as free:
        free.bind((HERE, 0))
        failed = await failure(client, f"http://{HERE}:{free.getsockname()[1]}/")
    assert (failed.verdict, str(failed)) == (DeliveryResult.KEPT, "nobody listens there")


async def test_nothing_left_without_a_name(client: OutwardClient) -> None:
    failed = await failure(client, "http://does-not-exist.invalid/")
    assert failed.verdict is DeliveryResult.KEPT


async def test_a_byte_may_have_left(receiver: Receiver, client: OutwardClient) -> None:
    receiver.script = [Reply(cut=True), Reply(hang=True), Reply(raw=b"SSH-2.0-OpenSSH\r\n\r\n")]
    assert (await failure(client, receiver.url)).verdict is DeliveryResult.AMBIGUOUS
    assert (await failure(client, receiver.url, deadline_s=0.3)).verdict is DeliveryResult.AMBIGUOUS
    assert (await failure(client, receiver.url)).verdict is DeliveryResult.AMBIGUOUS
    assert len(receiver.requests) == 3


async def test_an_answer_counts_by_its_status_even_if_it_breaks_off(
    receiver: Receiver, client: OutwardClient
) -> None:
    receiver.script = [
        Reply(raw=b"HTTP/1.1 202 Yes\r\nContent-Length: 10\r\n\r\nabc"),
        Reply(raw=b"HTTP/1.1 202 Yes\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"),
        Reply(500, b"x" * (3 * ANSWER_BYTES)),
    ]
    assert (await client.request("POST", receiver.url)).body == b"abc"
    assert (await client.request("POST", receiver.url)).body == b""
    long = await client.request("POST", receiver.url)
    assert (long.status, len(long.body), len(long.shown())) == (500, ANSWER_BYTES, 200)


async def test_the_deadline_holds_for_an_answer_that_drips(client: OutwardClient) -> None:
    ended = asyncio.Event()

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Yes\r\nContent-Length: 1000000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b".")
            await asyncio.sleep(0.01)
        writer.close()
        ended.set()

    server = await asyncio.start_server(drip, HERE, 0)
    port = server.sockets[0].getsockname()[1]
    began = asyncio.get_running_loop().time()
    answer = await client.request("POST", f"http://{HERE}:{port}/", deadline_s=0.5)
    assert answer.status == 200
    assert asyncio.get_running_loop().time() - began < 5
    await ended.wait()
    server.close()


async def test_tls_is_verified_by_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, ["brewery.lan"], 2)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / CERTIFICATE_NAME, tmp_path / KEY_NAME)
    seen: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: seen.append(name)
    trusting = ssl.create_default_context(cafile=str(tmp_path / CERTIFICATE_NAME))
    monkeypatch.setattr(outward, "verifying_context", lambda: trusting)
    receiver = Receiver()
    async with receiver.listening(context):
        client = OutwardClient(resolve=NameServer([HERE]))
        answer = await client.request("POST", f"https://brewery.lan:{receiver.port}/", body=b"{}")
        assert answer.status == 200
        assert receiver.requests[0].headers["host"] == f"brewery.lan:{receiver.port}"
        assert seen == ["brewery.lan"]
        failed = await failure(client, f"https://other.lan:{receiver.port}/")
        assert str(failed) == "its certificate is for another name: is the address right?"
        assert failed.verdict is DeliveryResult.KEPT
        assert len(receiver.requests) == 1
        await client.close()
