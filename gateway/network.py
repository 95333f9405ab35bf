"""Addresses: who is a neighbour, what counts as one source, and how often a source may ask."""

import ipaddress
from collections import OrderedDict
from functools import lru_cache
from urllib.parse import urlsplit

SOURCES = 10_000
"""Addresses remembered; the one that was quiet longest is forgotten first."""

IPV6_PREFIX_BITS = 64
"""One IPv6 household is one source."""


LOOPBACK = frozenset({"127.0.0.1", "::1"})
"""Not bounded as one source: a reverse proxy on this machine speaks for everybody."""

LOCAL_SUFFIXES = (".local", ".lan")


class TokenBuckets:
    """A bucket per source: `rate` tokens a second, at most `burst` saved up."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, source: str, now: float) -> float:
        """0 where a token was there, else the seconds until the next one; `now` is monotonic."""
        tokens, then = self._buckets.pop(source, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
        self._buckets[source] = (tokens if wait else tokens - 1, now)
        if len(self._buckets) > SOURCES:
            self._buckets.popitem(last=False)
        return wait


def source_of(address: str) -> str:
    """What counts as one source: an IPv4 address, or the /64 of an IPv6 one."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 4:
        return address
    return str(ipaddress.ip_network(f"{address.split('%')[0]}/{IPV6_PREFIX_BITS}", strict=False))


@lru_cache(maxsize=1024)
def is_local(address: str) -> bool:
    """Whether the address is loopback, private or link-local: the only ones that need no key to report.

    An IPv4 address inside IPv6 counts as the IPv4 one.
    """
    try:
        ip = ipaddress.ip_address(address.split("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_loopback or ip.is_link_local or any(ip in network for network in PRIVATE_NETWORKS)


PRIVATE_NETWORKS = tuple(
    ipaddress.ip_network(network) for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
"""RFC 1918 and RFC 4193. Not `is_private`: that also says yes to documentation and benchmark ranges."""


def sends_key_in_the_clear(base_url: str) -> bool:
    """Whether the key would cross more than the local network as plain text."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    local = host == "localhost" or host.endswith(LOCAL_SUFFIXES) or is_local(host)
    return parts.scheme == "http" and not local
