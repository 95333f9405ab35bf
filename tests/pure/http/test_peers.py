"""The sender of a request behind proxies: whose word counts, and what of it."""

import asyncio
import socket
from types import SimpleNamespace

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from gateway.errors import InvalidInput
from gateway.http.peers import Proxies, address_of, forwarded_host, forwarded_scheme
from gateway.network import PROXY_SOCKET, Peer, TrustedProxies, proxy_network
from tests.cases import each

LOCAL, LAN = "127.0.0.1", "192.168.1.10"
TRUSTED = TrustedProxies([LOCAL, LAN, "10.0.0.0/28", "fd00::/64"], socket=True)

Headers = list[tuple[str, str]]


def request(found: Headers, address: str = LOCAL) -> web.BaseRequest:
    return make_mocked_request("GET", "/", headers=CIMultiDict(found)).clone(remote=address)


def xff(*values: str) -> Headers:
    return [("X-Forwarded-For", value) for value in values]


def rfc(*values: str) -> Headers:
    return [("Forwarded", value) for value in values]


@each(
    "address, found, peer",
    [
        (LOCAL, [], Peer(LOCAL)),
        (LOCAL, xff("8.8.8.8"), Peer("8.8.8.8")),
        (LOCAL, xff("192.168.1.37"), Peer("192.168.1.37")),
        (LOCAL, xff("192.168.1.37, 8.8.8.8"), Peer("8.8.8.8")),
        (LOCAL, xff("127.0.0.1, 8.8.8.8"), Peer("8.8.8.8")),
        (LOCAL, xff("8.8.8.8", "192.168.1.10, 10.0.0.3"), Peer("8.8.8.8")),
        (LOCAL, xff("8.8.8.8, 10.0.0.16"), Peer("10.0.0.16")),
        (LOCAL, xff("garbage, 8.8.8.8"), Peer("8.8.8.8")),
        (LOCAL, xff("8.8.8.8:51234"), Peer("8.8.8.8")),
        (LOCAL, xff("2001:DB8::1"), Peer("2001:db8::1")),
        (LOCAL, xff("[2001:db8::1]"), Peer("2001:db8::1")),
        (LOCAL, xff("[2001:db8::1]:443"), Peer("2001:db8::1")),
        (LOCAL, xff("::ffff:192.168.1.37"), Peer("192.168.1.37")),
        (LOCAL, xff("[::ffff:8.8.8.8]:80"), Peer("8.8.8.8")),
        (LOCAL, xff("8.8.8.8, ::ffff:10.0.0.3"), Peer("8.8.8.8")),
        (LOCAL, xff("10.0.0.2, 10.0.0.3"), Peer("10.0.0.2")),
        (LOCAL, rfc("for=8.8.8.8"), Peer("8.8.8.8")),
        (LOCAL, rfc('For="[2001:db8::1]:4711";proto=https;by=10.0.0.1'), Peer("2001:db8::1")),
        (LOCAL, rfc("for=9.9.9.9, for=8.8.8.8;by=10.0.0.1", "for=10.0.0.1"), Peer("8.8.8.8")),
        (LOCAL, rfc('for="8.8.8.8:80"; host="brew.example, x"'), Peer("8.8.8.8")),
        ("fd00::7", xff("8.8.8.8"), Peer("8.8.8.8")),
        # The proxy's own machine: this one, if the proxy is here; else it is a neighbour like others.
        (LOCAL, xff(LOCAL), Peer(LOCAL)),
        (LAN, xff(LOCAL), Peer(LAN)),
        (LAN, xff("::1"), Peer(LAN)),
        # A header that names nobody whom the proxy vouches for.
        (LOCAL, [("X-Real-IP", "192.168.1.37")], Peer(LOCAL, forwarded=True)),
        (LOCAL, [("X-Real-IP", "192.168.1.37"), *xff("8.8.8.8")], Peer("8.8.8.8")),
        # Not trusted: the peer itself, and never local.
        ("127.0.0.2", xff("192.168.1.37"), Peer("127.0.0.2", forwarded=True)),
        ("192.168.1.37", rfc("for=unknown"), Peer("192.168.1.37", forwarded=True)),
        ("8.8.8.8", [("X-Real-IP", "127.0.0.1")], Peer("8.8.8.8", forwarded=True)),
        ("127.0.0.2", [*xff("x"), *rfc("y")], Peer("127.0.0.2", forwarded=True)),
        ("", xff("127.0.0.1"), Peer("", forwarded=True)),
        # The Unix socket for a proxy.
        (PROXY_SOCKET, [], Peer("")),
        (PROXY_SOCKET, xff("8.8.8.8"), Peer("8.8.8.8")),
        (PROXY_SOCKET, xff("127.0.0.1"), Peer(LOCAL)),
        (PROXY_SOCKET, [("X-Real-IP", "127.0.0.1")], Peer("", forwarded=True)),
    ],
)
def test_the_sender(address: str, found: Headers, peer: Peer) -> None:
    assert Proxies(TRUSTED).peer(request(found, address)) == peer


@each(
    "found",
    [
        xff("unknown"),
        xff(""),
        xff("8.8.8.8,"),
        xff("8.8.8.8, , 10.0.0.3"),
        xff("8.8.8"),
        xff("8.8.8.8:"),
        xff("8.8.8.8:port"),
        xff("2001:db8::1]"),
        xff("fe80::1%eth0"),
        xff("8.8.8.8 9.9.9.9"),
        xff("８.8.8.8"),
        xff("hg_a"),
        [*xff("8.8.8.8"), *rfc("for=8.8.8.8")],
        rfc("for=unknown"),
        rfc("for=_hidden"),
        rfc("proto=https"),
        rfc("for=8.8.8.8, proto=https"),
        rfc("for=8.8.8.8;for=9.9.9.9"),
        rfc("for"),
        rfc('for="8.8.8.8'),
        rfc("for=8.8.8.8 by=1.1.1.1"),
        rfc(""),
    ],
)
def test_a_trusted_proxy_that_names_nobody_is_refused(found: Headers) -> None:
    with pytest.raises(InvalidInput):
        Proxies(TRUSTED).peer(request(found))


@each(
    "peer, is_loopback, is_neighbour",
    [
        (Peer("127.0.0.1"), True, True),
        (Peer("::1"), True, True),
        (Peer("192.168.1.37"), False, True),
        (Peer("8.8.8.8"), False, False),
        (Peer("127.0.0.1", forwarded=True), False, False),
        (Peer("192.168.1.37", forwarded=True), False, False),
        (Peer(""), False, False),
        (Peer(PROXY_SOCKET), False, False),
    ],
)
def test_a_stranger_behind_a_proxy_is_nowhere_local(
    peer: Peer, is_loopback: bool, is_neighbour: bool
) -> None:
    assert (peer.is_loopback, peer.is_neighbour) == (is_loopback, is_neighbour)


@each(
    "name, family, address",
    [
        (("127.0.0.2", 50_000), socket.AF_INET, "127.0.0.2"),
        (("::ffff:10.0.0.1", 50_000, 0, 0), socket.AF_INET6, "10.0.0.1"),
        ("", socket.AF_UNIX, PROXY_SOCKET),
        # A client that has gone before it is accepted has no name, and must not pass for the proxy.
        (None, socket.AF_INET, ""),
        (None, socket.AF_INET6, ""),
    ],
)
def test_the_address_at_the_other_end(name: object, family: socket.AddressFamily, address: str) -> None:
    there = asyncio.BaseTransport({"peername": name, "socket": SimpleNamespace(family=family)})
    assert address_of(there) == address


@each(
    "found, host, scheme",
    [
        ([], "", ""),
        ([("X-Forwarded-Host", "brew.example"), ("X-Forwarded-Proto", "https")], "brew.example", "https"),
        ([("X-Forwarded-Host", "evil.example, brew.example")], "brew.example", ""),
        (
            [("X-Forwarded-Host", "a"), ("X-Forwarded-Host", "b"), ("X-Forwarded-Proto", "HTTPS")],
            "b",
            "https",
        ),
        (rfc('for=8.8.8.8;host="brew.example:8443";proto=https'), "brew.example:8443", "https"),
        ([("X-Forwarded-Proto", "gopher")], "", ""),
    ],
)
def test_the_nearest_proxy_names_host_and_scheme(found: Headers, host: str, scheme: str) -> None:
    sent = request(found)
    assert (forwarded_host(sent), forwarded_scheme(sent)) == (host, scheme)


@each(
    "text, network",
    [
        ("127.0.0.1", "127.0.0.1/32"),
        (" 10.0.0.0/28 ", "10.0.0.0/28"),
        ("::ffff:10.0.0.1", "10.0.0.1/32"),
        ("fd00::/64", "fd00::/64"),
        ("nginx", None),
        ("192.168.1.5/24", None),
        ("0.0.0.0/0", None),
        ("::/0", None),
        ("", None),
    ],
)
def test_a_trusted_proxy_is_an_address_or_a_network(text: str, network: str | None) -> None:
    if network is None:
        with pytest.raises(ValueError, match=r"must look like|every address"):
            proxy_network(text)
    else:
        assert proxy_network(text) == network
