"""Web pages in a browser of the owner's network: reports that they must not make, and names of this machine.

A page of any site can make the browser send requests to the gateway, from inside the network and without a
question to its user. Browsers mark such requests by headers that no page can change, and no firmware sends
those headers.
"""

import re
import socket
from collections.abc import Collection, Iterable, Mapping

from aiohttp import hdrs

from gateway.config import HOST_NAME
from gateway.network import LOCAL_DOMAINS, address_in, is_local

SHOWN_CHARACTERS = 80
"""Characters of a sender's header that a sentence repeats."""

LOCAL_ENDS = tuple(f".{domain}" for domain in LOCAL_DOMAINS)

OTHER_SITES = frozenset({"cross-site", "same-site"})

NOT_FOR_PAGES = "web pages of other sites cannot report"
NOT_FOR_BROWSERS = "a browser cannot report; use POST, or a key in the path"

_ORIGIN = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>\[[^\]/]*\]|[^:/?#@]*)(?::[0-9]*)?")
_HOST = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::[0-9]*)?")


class OwnHosts:
    """The names that this machine goes by: its addresses, its host name, and the names that are given."""

    def __init__(self, names: Iterable[str] = (), machine: str | None = None) -> None:
        machine = _plain(socket.gethostname() if machine is None else machine)
        short = machine.partition(".")[0]
        self._names = {"localhost", machine, *map(_plain, names)}
        if short:
            self._names |= {short, *(f"{short}.{domain}" for domain in LOCAL_DOMAINS)}
        self._names.discard("")

    def add(self, names: Iterable[str]) -> None:
        """Add names, such as those of a new certificate; `*.` stands for one label."""
        self._names.update(name for name in map(_plain, names) if name)

    def include(self, host: str) -> bool:
        """Return whether a Host header names this machine, or may name it: no host at all does (HTTP/1.0).

        Every name without a dot and every name in a local domain may: no name server of the Internet gives
        them an address, so no page of a stranger can come under them.
        """
        match = _HOST.fullmatch(host.strip())
        if match is None:
            return False
        name = _plain(match["host"])
        return not name or address_in(name) is not None or self._has(name) or _is_homely(name)

    def include_page(self, host: str) -> bool:
        """Return whether pages of this host may report.

        Not of every address, as in `include`, because a stranger's server has an address, too.
        """
        name = _plain(host)
        address = address_in(name)
        return self._has(name) if address is None else is_local(address)

    def _has(self, name: str) -> bool:
        return name in self._names or f"*.{name.partition('.')[2]}" in self._names


class ReportRules:
    """The rules for requests to device paths: `origins` are pages that the owner has allowed."""

    def __init__(self, origins: Collection[str] = (), hosts: OwnHosts | None = None) -> None:
        self.origins = frozenset(origins)
        self._hosts = hosts or OwnHosts()

    def refusal(self, method: str, headers: Mapping[str, str]) -> str | None:
        """Return None if no web page has made the request, else the reason for a refusal.

        A request with a valid key of ours needs no look at its headers: a foreign page does not know one.
        """
        origin = headers.get(hdrs.ORIGIN)
        if origin is not None and origin in self.origins:
            return None
        # Browsers send this header to https and localhost only, so it cannot be the only rule.
        if headers.get("Sec-Fetch-Site", "").strip().lower() in OTHER_SITES:
            return NOT_FOR_PAGES
        if origin is not None:
            if self._is_foreign(origin):
                return NOT_FOR_PAGES
        elif self._is_foreign(headers.get(hdrs.REFERER, "")):
            return NOT_FOR_PAGES
        # A page can leave out Referer, and a GET has no Origin. Its User-Agent no page can change.
        if method == hdrs.METH_GET and headers.get(hdrs.USER_AGENT, "").startswith("Mozilla/"):
            return NOT_FOR_BROWSERS
        return None

    def _is_foreign(self, url: str) -> bool:
        """Return whether an Origin or a Referer names a web page that may not report.

        Other schemes than http and https are apps, such as `capacitor`: no web page can take one.
        """
        url = url.strip().lower()
        if url == "null":
            return True
        if not url.startswith(("http:", "https:")):
            return False
        match = _ORIGIN.match(url)
        if match is None or url[match.end() : match.end() + 1] not in {"", "/", "?", "#"}:
            return True
        return match[0] not in self.origins and not self._hosts.include_page(match["host"])


def page_of(headers: Mapping[str, str]) -> str:
    """Return the page that made a request, for the log, without the path and the query of its address."""
    named = headers.get(hdrs.ORIGIN) or headers.get(hdrs.REFERER) or ""
    match = _ORIGIN.match(named.strip().lower())
    return (match[0] if match else "a site that no header names")[:SHOWN_CHARACTERS]


def shown_host(host: str) -> str:
    """Return the name in a Host header for a sentence, without the port and within a bound."""
    match = _HOST.fullmatch(host.strip())
    return (match["host"] if match else host)[:SHOWN_CHARACTERS]


def _is_homely(name: str) -> bool:
    """Return whether the name is one of the home network: without a dot, or in a local domain."""
    return HOST_NAME.fullmatch(name) is not None and ("." not in name or name.endswith(LOCAL_ENDS))


def _plain(name: str) -> str:
    return name.strip().strip("[]").rstrip(".").lower()
