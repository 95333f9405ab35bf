"""The sender of a request, where a proxy may stand between: headers of proxies, and who may set them.

A proxy that the owner trusts names the sender. Anybody else who sends such a header forwards for a stranger:
that peer is nowhere local. No firmware sends one of these headers.
"""

import logging
import re
import socket
from asyncio import BaseTransport
from collections.abc import Iterator

from aiohttp import hdrs, web

from gateway.clock import Clock
from gateway.errors import InvalidInput
from gateway.logs import RareLines
from gateway.network import (
    LOOPBACK,
    NO_PROXIES,
    PROXY_SOCKET,
    Peer,
    TrustedProxies,
    address_in,
    written_address,
)
from gateway.stats import Stats

log = logging.getLogger(__name__)

FORWARDING_HEADERS = (hdrs.X_FORWARDED_FOR, hdrs.FORWARDED, "X-Real-IP")
"""Headers of a forwarded request. `X-Real-IP` names nobody: a client could send it through the proxy."""

PART = "proxy"
"""The name of this part on the status page, where `doctor` reads about a proxy that is not trusted."""

BASE_PATH_HEADER = "X-Ingress-Path"

HERE = "127.0.0.1"

_PAIR = re.compile(r'[ \t]*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]+))[ \t]*')
"""A parameter of `Forwarded` (RFC 7239), whose value is quoted or not."""

_BASE_PATH = re.compile(r"(?=.{1,200}\Z)(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
"""A path of names that need no escape: it becomes a part of addresses and of a cookie."""

_NAMED = re.compile(
    r"\[(?P<v6>[0-9A-Fa-f:.]+)\](?::\d{1,5})?|(?P<v4>[0-9.]+)(?::\d{1,5})?|(?P<bare>[0-9A-Fa-f:.]+)"
)
"""An address with or without a port. IPv6 with a port has brackets."""


class Proxies:
    """Finds the sender of each request. Proxies that are not trusted have a line in the log, once an hour."""

    def __init__(
        self,
        trusted: TrustedProxies = NO_PROXIES,
        clock: Clock | None = None,
        stats: Stats | None = None,
        *,
        ingress: TrustedProxies = NO_PROXIES,
    ) -> None:
        self.trusted = trusted
        self._ingress = ingress
        self._stats = stats
        self._lines = RareLines(clock.monotonic) if clock is not None else None

    def peer(self, request: web.BaseRequest) -> Peer:
        """Return the sender of a request; `InvalidInput` if a trusted proxy names none that can be read."""
        address = connected_address(request)
        if not any(name in request.headers for name in FORWARDING_HEADERS):
            return Peer("" if address == PROXY_SOCKET else address)
        if address in self.trusted:
            return self._named(address, request)
        self._note(address)
        return Peer(address, forwarded=True)

    def base_path(self, request: web.BaseRequest) -> str:
        """Return the path below which a browser sees all of ours, or an empty text.

        Home Assistant names it, after it has logged its user in. It is believed from that proxy alone: others
        pass on what a stranger sends. `InvalidInput` if it is no plain path.
        """
        path = request.headers.get(BASE_PATH_HEADER, "").rstrip("/")
        if not path or connected_address(request) not in self._ingress:
            return ""
        if _BASE_PATH.fullmatch(path) is None:
            raise InvalidInput(f"the header {BASE_PATH_HEADER} names no path")
        return path

    def _named(self, address: str, request: web.BaseRequest) -> Peer:
        """Walk the addresses from the right, past trusted proxies, to the first other one."""
        if hdrs.FORWARDED in request.headers and hdrs.X_FORWARDED_FOR in request.headers:
            raise InvalidInput("the request has both Forwarded and X-Forwarded-For: the proxy must set one")
        named = list(_names(request))
        source = HERE if address == PROXY_SOCKET else address
        if not named:
            return Peer("" if address == PROXY_SOCKET else address, forwarded=True)
        for text in reversed(named):
            found = _address(text)
            # Loopback as another machine names it is that machine, not this one.
            source = source if found in LOOPBACK else found
            if found not in self.trusted:
                break
        return Peer(source)

    def _note(self, address: str) -> None:
        if self._lines is None or self._stats is None or not self._lines.due(address):
            return
        words = f"{address} forwards for others; `--trusted-proxy {address}` or `--require-key`"
        if address not in LOOPBACK:
            words += "; any device can send such headers, so trust only a proxy of yours"
        log.warning("http: %s", words)
        self._stats.say(PART, words)


def address_of(transport: BaseTransport) -> str:
    """Return the address of a connection's other end, or `PROXY_SOCKET`, or an empty text if it has gone."""
    name = transport.get_extra_info("peername")
    if name:
        return written_address(str(name[0]))
    # By the family of the socket, not by the missing name: a TCP client that has gone has no name either.
    there = transport.get_extra_info("socket")
    return PROXY_SOCKET if there is not None and there.family == socket.AF_UNIX else ""


def connected_address(request: web.BaseRequest) -> str:
    """Return the address at the other end of a request's connection, as `address_of` does."""
    if request.remote:
        return written_address(request.remote)
    return address_of(request.transport) if request.transport is not None else ""


def forwarded_host(request: web.BaseRequest) -> str:
    """Return the host that the nearest proxy names, or an empty text."""
    return _last(request, hdrs.X_FORWARDED_HOST) or _of_nearest(request).get("host", "")


def forwarded_scheme(request: web.BaseRequest) -> str:
    """Return `http` or `https` as the nearest proxy says, or an empty text."""
    scheme = (_last(request, hdrs.X_FORWARDED_PROTO) or _of_nearest(request).get("proto", "")).lower()
    return scheme if scheme in {"http", "https"} else ""


def _last(request: web.BaseRequest, name: str) -> str:
    return ",".join(request.headers.getall(name, ())).rpartition(",")[2].strip()


def _of_nearest(request: web.BaseRequest) -> dict[str, str]:
    return _elements(request)[-1] if hdrs.FORWARDED in request.headers else {}


def _names(request: web.BaseRequest) -> Iterator[str]:
    """Yield the senders that the proxies name, the nearest last."""
    for text in request.headers.getall(hdrs.X_FORWARDED_FOR, ()):
        yield from text.split(",")
    if hdrs.FORWARDED in request.headers:
        for element in _elements(request):
            yield element.get("for", "")


def _elements(request: web.BaseRequest) -> list[dict[str, str]]:
    """Return the parameters of each proxy in `Forwarded`, the nearest last."""
    text, place = ",".join(request.headers.getall(hdrs.FORWARDED)), 0
    elements: list[dict[str, str]] = [{}]
    while place < len(text):
        pair = _PAIR.match(text, place)
        if pair is None or pair[1].lower() in elements[-1]:
            raise InvalidInput("the header Forwarded cannot be read")
        elements[-1][pair[1].lower()] = re.sub(r"\\(.)", r"\1", pair[2]) if pair[3] is None else pair[3]
        place = pair.end() + 1
        if text[pair.end() : place] == ",":
            elements.append({})
        elif text[pair.end() : place] not in {"", ";"}:
            raise InvalidInput("the header Forwarded cannot be read")
    return elements


def _address(text: str) -> str:
    """Return the address that a proxy names, without a port."""
    found = _NAMED.fullmatch(text.strip())
    address = None if found is None else address_in(found["v6"] or found["v4"] or found["bare"])
    if address is None:
        raise InvalidInput("the proxy names a sender that is no address")
    return address
