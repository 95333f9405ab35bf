"""Shared parts of HTTP: application keys, errors as answers, the key check, bodies with a limit."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import hdrs, web

from gateway.domain.audit import acting, key_actor
from gateway.domain.key import Scope
from gateway.errors import (
    AlreadySent,
    Forbidden,
    GatewayError,
    InvalidInput,
    NameTaken,
    NotFound,
    NotInstalled,
    QuotaFull,
    RateLimited,
    ShareUsedUp,
    StoreUnavailable,
    TooLarge,
    Unauthorized,
    UnsupportedMedia,
)
from gateway.http.both_ends import FIXED_DETAIL, INTERNAL_ERROR
from gateway.http.peers import Proxies, connected_address, forwarded_host, forwarded_scheme
from gateway.network import Peer
from gateway.services.build import Services
from gateway.services.knocks import KnockKind, Knocks

log = logging.getLogger(__name__)

SERVICES: web.AppKey[Services] = web.AppKey("services")
KNOCKS: web.AppKey[Knocks] = web.AppKey("knocks")
"""The memory of refused attempts. An application without it forgets them."""

PROXIES: web.AppKey[Proxies] = web.AppKey("proxies")
"""The proxies that name the sender. An application without them believes none."""

PAGE: web.AppKey[str] = web.AppKey("page")
"""The path of the first page for browsers, in an application that has pages."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request: an account and its scopes.

    Only a caller on the Unix socket is `everywhere`: it finds a record id of any account, and its account is
    the owner's unless the request names another. Its `key_name` is empty.
    """

    account_id: int
    scopes: frozenset[Scope]
    everywhere: bool = False
    account_named: bool = True
    key_name: str = ""

    def may_see(self, account_id: int) -> bool:
        """Return whether a record of that account exists for the caller."""
        return self.everywhere or account_id == self.account_id

    def account_beside(self, account_id: int) -> int:
        """Return the account of a new record that goes with a record of `account_id`, such as its recipe."""
        return self.account_id if self.account_named else account_id


CALLER: web.RequestKey[Caller] = web.RequestKey("caller")
"""The caller of a request that needs a key, or that came over the socket."""

PEER: web.RequestKey[Peer] = web.RequestKey("peer")
"""The sender of a request; ask `peer_of`."""

KEY_HEADER = "X-API-KEY"
BEARER = "Bearer "

METRICS_PATH = "/metrics"
HEALTH_PATH = "/healthz"

WATCHED = frozenset({METRICS_PATH, "/manage/status", "/manage/families"})
"""Paths for which a key with the scope `read` is enough."""

RETRY_AFTER_S: dict[type[GatewayError], int] = {StoreUnavailable: 5, QuotaFull: 60, ShareUsedUp: 600}
"""Seconds that a caller is asked to wait when its data cannot be taken, by the reason."""

REFUSAL_S = 0.25
"""Seconds that a request over its rate waits for its refusal."""

STATUS: dict[type[GatewayError], tuple[int, str]] = {
    InvalidInput: (400, "failure"),
    Unauthorized: (401, "unauthorized"),
    Forbidden: (403, "failure"),
    NotFound: (404, "not-found"),
    NameTaken: (409, "failure"),
    AlreadySent: (409, "failure"),
    TooLarge: (413, "failure"),
    UnsupportedMedia: (415, "failure"),
    RateLimited: (429, "rate-limit"),
    NotInstalled: (501, "failure"),
    StoreUnavailable: (503, "failure"),
    QuotaFull: (503, "failure"),
    ShareUsedUp: (503, "failure"),
}
"""Error class to status and `message`; the error's own text is the `detail`."""

KNOCK_OF: dict[type[GatewayError], KnockKind] = {
    Unauthorized: KnockKind.KEY,
    Forbidden: KnockKind.FORBIDDEN,
    TooLarge: KnockKind.TOO_LARGE,
    RateLimited: KnockKind.TOO_OFTEN,
}
"""Refusals that leave nothing behind, and that a person who sets a device up has to see."""

PEOPLE = "Mozilla/"
"""How every browser calls itself, and no device: its missing icons are no attempts to report."""

PAGE_PATH = "/ui"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def error_response(
    status: int, message: str, detail: str, headers: dict[str, str] | None = None
) -> web.Response:
    """Return an answer with the error body: a JSON object with exactly `message` and `detail`."""
    return web.json_response({"message": message, "detail": detail}, status=status, headers=headers)


def error_members(error: GatewayError) -> tuple[int, dict[str, str]]:
    """Return the status and the error body that the table gives for a `GatewayError`."""
    status, message = STATUS.get(type(error), (500, "failure"))
    return status, {"message": message, "detail": FIXED_DETAIL.get(type(error), str(error))}


def answer_to(error: GatewayError) -> web.Response:
    """Return the answer that the table gives for a `GatewayError`."""
    status, members = error_members(error)
    headers: dict[str, str] = {}
    if isinstance(error, RateLimited):
        headers[hdrs.RETRY_AFTER] = str(max(1, math.ceil(error.retry_after_s)))
    elif status == 503:
        headers[hdrs.RETRY_AFTER] = str(RETRY_AFTER_S[type(error)])
    return web.json_response(members, status=status, headers=headers)


def failed(method: str, pattern: str, error: Exception) -> web.Response:
    """Log a bug with its traceback, and return the answer to the request that met it."""
    log.error("web: %s %s failed", method, pattern, exc_info=error)
    return error_response(500, "failure", INTERNAL_ERROR)


@web.middleware
async def errors_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn exceptions of a handler into the error body. A bug becomes a 500 and a traceback in the log."""
    try:
        return await handler(request)
    except GatewayError as error:
        _note_knock(request, KNOCK_OF.get(type(error)))
        if isinstance(error, RateLimited):
            # With its connection held. A source has few, so it cannot make us refuse thousands a second.
            await asyncio.sleep(REFUSAL_S)
        return answer_to(error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        if error.status == 404:
            _note_knock(request, KnockKind.PATH)
            return answer_to(NotFound())
        allow = error.headers.get(hdrs.ALLOW)
        if allow and request.method == hdrs.METH_OPTIONS:
            return web.Response(status=204, headers={hdrs.ALLOW: f"{allow},{hdrs.METH_OPTIONS}"})
        return error_response(error.status, "failure", error.reason, {hdrs.ALLOW: allow} if allow else None)
    except ConnectionError:
        raise  # the client went away: nobody to answer, nothing to log
    except Exception as error:
        # The pattern and not the path: a key may be part of that.
        resource = request.match_info.route.resource
        return failed(request.method, resource.canonical if resource else "?", error)


def _note_knock(request: web.Request, kind: KnockKind | None) -> None:
    """Note an attempt that leaves nothing else behind. Requests of the page and of browsers are none."""
    knocks, path = request.app.get(KNOCKS), request.path
    if kind is None or knocks is None or path == PAGE_PATH or path.startswith(f"{PAGE_PATH}/"):
        return
    if request.headers.get(hdrs.USER_AGENT, "").startswith(PEOPLE):
        return
    with suppress(InvalidInput):  # a proxy that names nobody: the refusal is the same without a knock
        knocks.add(kind, peer_of(request).address, path)


@web.middleware
async def key_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Find the sender, and check the key if one is needed, before path, query and body."""
    peer = peer_of(request)  # for every path: forwarding headers that contradict each other are refused
    scope = scope_of_request(request)
    if scope is not None:
        presented = request.headers.get(KEY_HEADER, "") or _bearer(request)
        key = request.app[SERVICES].access.admit(presented, scope, peer, devices=False)
        request[CALLER] = Caller(key.account_id, key.scopes, key_name=key.name)
        with acting(key_actor(key.name, key.account_id, peer.source)):
            return await handler(request)
    return await handler(request)


def _bearer(request: web.Request) -> str:
    """Return the bearer token of a request for `/metrics`: Prometheus puts a key there."""
    given = request.headers.get(hdrs.AUTHORIZATION, "")
    return given[len(BEARER) :] if request.path == METRICS_PATH and given.startswith(BEARER) else ""


def scope_of(method: str, path: str) -> Scope | None:
    """Return the scope that a request needs, or None if it needs no key.

    Every path below `/v1` and `/manage` needs a key, known or not.
    """
    if path in WATCHED:
        return "read"
    if path == "/manage" or path.startswith("/manage/"):
        return "admin"
    if path == "/v1" or path.startswith("/v1/"):
        return "read" if method in READING_METHODS else "ingest"
    return None


class KeyedRow:
    """A row of a table of endpoints: its bound method is the handler, and its `scope` is what a key needs."""

    __slots__ = ()

    scope: Scope | None


def scope_of_request(request: web.Request) -> Scope | None:
    """Return the scope that the key of a request needs, or None if no key is looked at."""
    row = getattr(request.match_info.handler, "__self__", None)
    scope = row.scope if isinstance(row, KeyedRow) else scope_of(request.method, request.path)
    if scope is None and request.path == HEALTH_PATH and request.headers.get(KEY_HEADER):
        return "read"  # without a key the page has words only, with one its figures as well
    return scope


READING_METHODS = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})


async def read_body(request: web.Request, limit: int) -> bytes:
    """Read the whole body; `TooLarge` beyond `limit` bytes, `UnsupportedMedia` if it is compressed.

    The server never decompresses: one megabyte of gzip can hold a gigabyte.
    """
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise UnsupportedMedia("compressed bodies are not taken")
    length = request.content_length
    if length is not None and length > limit:
        raise TooLarge(f"the body is larger than {limit} bytes")
    try:
        return await (_at_most(request, limit) if length is None else request.content.read())
    except RuntimeError as error:  # aiohttp's error for a connection without keep-alive that ends too soon
        raise ConnectionResetError(str(error)) from error


async def _at_most(request: web.Request, limit: int) -> bytes:
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > limit:
            raise TooLarge(f"the body is larger than {limit} bytes")
    return bytes(body)


def peer_of(request: web.Request) -> Peer:
    """Return the sender of a request, as a trusted proxy names it. It is found once a request."""
    peer = request.get(PEER)
    if peer is None:
        proxies = request.app.get(PROXIES) or Proxies()
        peer = request[PEER] = proxies.peer(request)
    return peer


def host_of(request: web.Request) -> str:
    """Return the host and port that the client asked for, or an empty text if it named none."""
    proxies = request.app.get(PROXIES)
    if proxies is not None and connected_address(request) in proxies.trusted:
        return forwarded_host(request) or request.headers.get(hdrs.HOST, "")
    return request.headers.get(hdrs.HOST, "")


def base_path_of(request: web.Request) -> str:
    """Return the path below which the browser sees all of ours, or an empty text.

    Only inside Home Assistant there is one. Redirects, links and cookies begin with it.
    """
    proxies = request.app.get(PROXIES)
    return "" if proxies is None else proxies.base_path(request)


def scheme_of(request: web.Request) -> str:
    """Return `https` if the client's own connection is encrypted, if need be up to a trusted proxy."""
    proxies = request.app.get(PROXIES)
    if proxies is not None and connected_address(request) in proxies.trusted:
        return forwarded_scheme(request) or request.scheme
    return request.scheme
