"""Addresses: peers, neighbours, sources, and the rate at which a source may report."""

import ipaddress
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from gateway.clock import Clock

SOURCES = 10_000
"""The most addresses that are remembered. The address that was quiet longest is forgotten first."""

IPV6_PREFIX_BITS = 64
"""One IPv6 household is one source."""

ADDRESS_CHARACTERS = 64
"""Characters of an address at most, with the name of an interface behind it."""

LOOPBACK = frozenset({"127.0.0.1", "::1"})
"""Addresses of this machine, which have no rate."""

LOCAL_DOMAINS = ("local", "lan", "home", "home.arpa", "fritz.box", "internal")
"""Domains that routers and mDNS put behind the name of a machine."""

LOCAL_SUFFIXES = (".local", ".lan")

SOURCE_RATE, SOURCE_BURST = 2.0, 60.0
"""Readings of one source, over all listeners together: each second in the long run, and at once."""

TOTAL_RATE, TOTAL_BURST = 200.0, 400.0
"""Readings of all sources together, but loopback: each second in the long run, and at once."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The sender of a delivery: its address, as `written_address` writes it.

    Where a trusted proxy forwards, the address is the one that the proxy names. `forwarded` says that a proxy
    which is not trusted forwards for somebody: such a peer is never local.
    """

    address: str
    forwarded: bool = False

    @property
    def source(self) -> str:
        """Return the source of the address, which shares are counted by."""
        return source_of(self.address)

    @property
    def is_loopback(self) -> bool:
        """Return whether the sender is a program on this machine."""
        return self.address in LOOPBACK and not self.forwarded

    @property
    def is_neighbour(self) -> bool:
        """Return whether the sender is on this machine or on the local network."""
        return not self.forwarded and is_local(self.address)


class TokenBuckets:
    """A bucket for each source: `rate` tokens a second, at most `burst` saved up."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, source: str, now: float, cost: float = 1.0) -> float:
        """Take `cost` tokens and return 0. Without them, return the seconds until they are there.

        `now` is monotonic.
        """
        tokens, then = self._buckets.pop(source, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._rate)
        wait = 0.0 if tokens >= cost else (cost - tokens) / self._rate
        self._buckets[source] = (tokens if wait else tokens - cost, now)
        if len(self._buckets) > SOURCES:
            self._buckets.popitem(last=False)
        return wait


class Admission:
    """The rate of readings of each source, over HTTP, TCP and MQTT together. Loopback has none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sources = TokenBuckets(SOURCE_RATE, SOURCE_BURST)
        self._total = TokenBuckets(TOTAL_RATE, TOTAL_BURST)

    def take(self, peer: Peer, cost: float = 1.0) -> float:
        """Take `cost` readings' worth of the peer's rate and return 0, or return the seconds to wait."""
        if peer.is_loopback:
            return 0.0
        now = self._clock.monotonic()
        return self._sources.take(peer.source, now, cost) or self._total.take("", now, cost)


PROXY_SOCKET = "unix socket"
"""The peer of a connection to the Unix socket for a proxy, in place of an address."""


class TrustedProxies:
    """The proxies that are believed when they name the sender of a request.

    `networks` are addresses and networks of proxies; `socket` says that the Unix socket for a proxy counts.
    """

    def __init__(self, networks: Iterable[str] = (), *, socket: bool = False) -> None:
        self._networks = tuple(ipaddress.ip_network(network) for network in networks)
        self._socket = socket

    def __contains__(self, address: str) -> bool:
        """Return whether the address is one of a trusted proxy."""
        if address == PROXY_SOCKET:
            return self._socket
        if not self._networks:
            return False
        try:
            ip = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        return any(ip in network for network in self._networks)


NO_PROXIES = TrustedProxies()


def proxy_network(text: str) -> str:
    """Return the address or network of a trusted proxy. Raise `ValueError` with the right form."""
    try:
        network = ipaddress.ip_network(written_address(text.strip()))
    except ValueError as error:
        raise ValueError(
            f"{text!r} is neither an address nor a network; it must look like 127.0.0.1 or 192.168.1.0/28"
        ) from error
    if not network.prefixlen:
        raise ValueError(f"{text!r} is every address: then any sender could name itself as it likes")
    return str(network)


@lru_cache(maxsize=1024)
def _address_in(text: str) -> str | None:
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return str(mapped or ip)


def address_in(text: str) -> str | None:
    """Return the address that the text is, as it is written everywhere; None if the text is no address.

    IPv6 is in its shortest form. An IPv4 address inside IPv6 is the IPv4 address.
    """
    # Not longer texts, because the last results are remembered, and a stranger may have sent the text.
    return _address_in(text) if len(text) <= ADDRESS_CHARACTERS else None


def written_address(address: str) -> str:
    """Return an address as `address_in` does, and any other text as it is."""
    return address_in(address) or address


@lru_cache(maxsize=1024)
def source_of(address: str) -> str:
    """Return the source of an address: an IPv4 address or `::1` itself, or the /64 of an IPv6 address."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 4 or ip.is_loopback:
        return address
    return str(ipaddress.ip_network(f"{address.split('%')[0]}/{IPV6_PREFIX_BITS}", strict=False))


@lru_cache(maxsize=1024)
def is_local(address: str) -> bool:
    """Return whether the address is loopback, private or link-local.

    Only such addresses need no key to report. An IPv4 address inside IPv6 counts as the IPv4 address.
    """
    try:
        ip = ipaddress.ip_address(written_address(address.split("%")[0]))
    except ValueError:
        return False
    return ip.is_loopback or ip.is_link_local or any(ip in network for network in PRIVATE_NETWORKS)


PRIVATE_NETWORKS = tuple(
    ipaddress.ip_network(network) for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
"""RFC 1918 and RFC 4193. Not `is_private`: it is true of documentation and benchmark ranges, too."""


def sends_key_in_the_clear(base_url: str) -> bool:
    """Return whether the key would leave the local network as plain text."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    local = host == "localhost" or host.endswith(LOCAL_SUFFIXES) or is_local(host)
    return parts.scheme == "http" and not local
