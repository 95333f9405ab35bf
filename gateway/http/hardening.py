"""Every answer's headers, the door for strangers' host names, and the rate of requests without a key."""

from collections.abc import Collection

from aiohttp import hdrs, web

from gateway.errors import Forbidden, InvalidInput, RateLimited
from gateway.http.browsers import OwnHosts, shown_host
from gateway.http.middleware import (
    SERVICES,
    Handler,
    base_path_of,
    host_of,
    peer_of,
    scope_of_request,
)
from gateway.network import TokenBuckets
from gateway.services.logins import COOKIE, SECURE_COOKIE

SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every answer: a page of another site can neither guess at an answer nor show it as its own."""

SAFE_LINES = "".join(f"{name}: {value}\r\n" for name, value in SAFE_HEADERS.items()).encode()
"""The same for an answer that is written as bytes."""

HTML_POLICY = "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
"""The policy of every page, beside the page's own: no other site can frame a page or redirect its forms."""

FRAMED_POLICY = HTML_POLICY.replace("'none'", "'self'", 1)
"""The policy of pages inside Home Assistant, which frames them, and whose address they share."""

POLICY = "Content-Security-Policy"

PAGES = "/ui/"
"""The beginning of the path of every page."""

KEYLESS_RATE, KEYLESS_BURST = 5.0, 20.0
"""Requests beside reports that one source may make without a key: each second in the long run, at once."""


def harden(response: web.StreamResponse, policy: str = HTML_POLICY) -> None:
    """Give an answer its headers. No answer names the server's software and version."""
    headers = response.headers
    headers.pop(hdrs.SERVER, None)
    for name, value in SAFE_HEADERS.items():
        headers.setdefault(name, value)
    # Not `content_type`, because parsing the header costs more than all the rest, in every answer.
    if headers.get(hdrs.CONTENT_TYPE, "").startswith("text/html"):
        own = headers.get(POLICY)
        headers[POLICY] = f"{own}; {policy}" if own else policy


async def _prepare(request: web.Request, response: web.StreamResponse) -> None:
    harden(response, FRAMED_POLICY if _is_framed(request) else HTML_POLICY)


def _is_framed(request: web.Request) -> bool:
    try:
        return bool(base_path_of(request))
    except InvalidInput:
        return False  # this is the answer that refuses it


def protect(app: web.Application) -> None:
    """Give every answer of the application its headers."""
    app.on_response_prepare.append(_prepare)


class HardenedResponse(web.Response):
    """An answer outside any application, such as one to bytes that are no request."""

    async def _prepare_headers(self) -> None:
        # Not before: aiohttp adds its name and version here, and asks only applications afterwards.
        await super()._prepare_headers()
        harden(self)


def has_login(request: web.Request) -> bool:
    """Return whether the request comes from a browser that is logged in."""
    if not request.path.startswith(PAGES):
        return False
    secret = request.cookies.get(SECURE_COOKIE) or request.cookies.get(COOKIE)
    return bool(secret) and request.app[SERVICES].logins.find(secret or "") is not None


class Doorkeeper:
    """Looks at every request that is no report: does it name this machine, and does it come too often?

    Reports are exempt, because some firmware has the name of its maker's cloud built in.
    """

    def __init__(self, hosts: OwnHosts, reports: Collection[web.AbstractRoute]) -> None:
        self._hosts = hosts
        self._reports = frozenset(reports)
        self._keyless = TokenBuckets(KEYLESS_RATE, KEYLESS_BURST)

    @web.middleware
    async def admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Pass a request on, or refuse it before its key is looked at."""
        if request.match_info.route not in self._reports:
            self._check(request)
        return await handler(request)

    def _check(self, request: web.Request) -> None:
        services = request.app[SERVICES]
        host = host_of(request)
        # Inside Home Assistant it is the name of Home Assistant, which we do not know. No page of a stranger
        # comes by a name of its own: browsers send the login of Home Assistant to that name alone.
        if not base_path_of(request) and not self._hosts.include(host):
            services.stats.hosts_refused += 1
            name = shown_host(host)
            raise Forbidden(f"this gateway does not go by the name {name}; `--hostname {name}`")
        peer = peer_of(request)
        if scope_of_request(request) is None and not peer.is_loopback and not has_login(request):
            wait = self._keyless.take(peer.source, services.clock.monotonic())
            if wait:
                raise RateLimited(wait)
