"""Addresses: neighbours, sources, and a limit on the requests of a source."""

import ipaddress
from collections import OrderedDict
from functools import lru_cache
from urllib.parse import urlsplit

SOURCES = 10_000
"""The most addresses that are remembered. The address that was quiet longest is forgotten first."""

IPV6_PREFIX_BITS = 64
"""One IPv6 household is one source."""


LOOPBACK = frozenset({"127.0.0.1", "::1"})
"""Addresses without a limit: a reverse proxy on this machine speaks for everybody."""

LOCAL_SUFFIXES = (".local", ".lan")


class TokenBuckets:
    """A bucket for each source: `rate` tokens a second, at most `burst` saved up."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, source: str, now: float) -> float:
        """Take a token and return 0. Without one, return the seconds until the next; `now` is monotonic."""
        tokens, then = self._buckets.pop(source, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._rate
        self._buckets[source] = (tokens if wait else tokens - 1, now)
        if len(self._buckets) > SOURCES:
            self._buckets.popitem(last=False)
        return wait


def source_of(address: str) -> str:
    """Return the source of an address: an IPv4 address itself, or the /64 of an IPv6 address."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 4:
        return address
    return str(ipaddress.ip_network(f"{address.split('%')[0]}/{IPV6_PREFIX_BITS}", strict=False))


@lru_cache(maxsize=1024)
def is_local(address: str) -> bool:
    """Return whether the address is loopback, private or link-local.

    Only such addresses need no key to report. An IPv4 address inside IPv6 counts as the IPv4 address.
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
"""RFC 1918 and RFC 4193. Not `is_private`: it is true of documentation and benchmark ranges, too."""


def sends_key_in_the_clear(base_url: str) -> bool:
    """Return whether the key would leave the local network as plain text."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    local = host == "localhost" or host.endswith(LOCAL_SUFFIXES) or is_local(host)
    return parts.scheme == "http" and not local
