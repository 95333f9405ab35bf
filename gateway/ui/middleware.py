"""The way to a page: login, rights, the protection of every form, errors as pages, and headers."""

import asyncio
import gzip
import hashlib
import hmac
import logging
import math
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from aiohttp import BodyPartReader, hdrs, web

from gateway.domain.audit import acting, page_actor
from gateway.errors import (
    Forbidden,
    GatewayError,
    InvalidInput,
    NotFound,
    RateLimited,
    StoreUnavailable,
    Unauthorized,
)
from gateway.http.gzipped import GZIP, takes_gzip
from gateway.http.hardening import POLICY
from gateway.http.middleware import (
    RETRY_AFTER_S,
    SERVICES,
    STATUS,
    base_path_of,
    host_of,
    peer_of,
    read_body,
    scheme_of,
)
from gateway.http.peers import FORWARDING_HEADERS
from gateway.services.logins import COOKIE, LIFE_S, SECURE_COOKIE, Login
from gateway.ui.pages import ROOT, TOKEN_FIELD, Answer, Moved, Page, Part, Row, Visit
from gateway.ui.rendering import render_page, render_part
from gateway.ui.viewer import viewer_of

log = logging.getLogger(__name__)

FORM_BYTES = 1024 * 1024
"""Bytes of a form without files: the longest notes with every character as three escapes."""

PUBLIC_FORM_BYTES = 16 * 1024
"""Bytes of a form that needs no login: a key, and the page to go on to."""

FORM_FIELDS = 2000
"""Fields of a form at most."""

TOKEN_BYTES = 256
"""Bytes of the token in an upload at most."""

SALT_BYTES = 8

GZIP_BYTES, GZIP_LEVEL = 1024, 6
"""The least size of a page that is compressed, and the level: pages are small, and phones are slow."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'"
)

PAGE_HEADERS = {
    POLICY: PAGE_POLICY,
    # Not `no-referrer`, because browsers then send `Origin: null` with a form, which is refused.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    hdrs.VARY: "Cookie, Accept-Language, Accept-Encoding",
}

RELOAD_S = 5
"""Seconds until a page is asked for again while the store is away."""


class Desk:
    """The place that takes each request for a page: it checks, calls the view, and writes the answer."""

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows
        self._notices: dict[int, str] = {}

    async def serve(self, row: Row, request: web.Request) -> web.StreamResponse:
        """Answer a request for the page of a row."""
        services, peer = request.app[SERVICES], peer_of(request)
        secret = secret_of(request)
        login = services.logins.find(secret) if secret else None
        may_look = login is None and services.page.lan_view and is_in_sight(request)
        viewer = viewer_of(login, request.headers.get(hdrs.ACCEPT_LANGUAGE, ""), may_look=may_look)
        visit = Visit(request, services, viewer, self._rows, render_part)
        if login is not None:
            visit.token = new_token(secret)
        try:
            changes = row.method == hdrs.METH_POST or row.scope == "admin"
            # A neighbour who looks without a key can log in to do more, so that no key is called too narrow.
            if not row.public and (not viewer.may_look or (changes and login is None)):
                return await self._to_login(visit)
            self._check_rights(row, visit)
            with acting(page_actor(viewer.key_name, viewer.account_id, peer.source)):
                if row.method == hdrs.METH_POST:
                    await self._take_form(row, visit, secret, login)
                answer = await row.view(visit)
            return await self._answer(row, visit, answer)
        except (web.HTTPException, ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            return await self._failed(row, visit, error)

    async def _to_login(self, visit: Visit) -> web.Response:
        """Send a visitor without a login to the login page, which leads back."""
        request = visit.request
        if "fetch" in request.headers.get("X-Requested-With", ""):
            return web.Response(status=401, text=visit.t("error.logged_out"))
        if request.method == hdrs.METH_POST:
            # A page, not the way to the login, because going back in the browser shows what was typed.
            values = {"text": visit.t("error.logged_out"), "login": visit.url("login")}
            return await self._page(visit, Page("error.html", visit.t("error.title.401"), values, status=401))
        target = visit.url("login", query={"next": visit.here()})
        return web.Response(status=303, headers={hdrs.LOCATION: target, hdrs.CACHE_CONTROL: "no-store"})

    def _check_rights(self, row: Row, visit: Visit) -> None:
        viewer = visit.viewer
        if row.public:
            return
        if row.scope == "admin" and not viewer.may_change:
            raise Forbidden(visit.t("error.scope"))
        if row.owner_only and not viewer.is_owner:
            raise Forbidden(visit.t("error.owner"))

    async def _take_form(self, row: Row, visit: Visit, secret: str, login: Login | None) -> None:
        """Read the fields of a form, if it comes from a page of ours with a token of this login."""
        check_origin(visit)
        request = visit.request
        if row.upload_bytes and request.content_type.startswith("multipart/"):
            visit.multipart, visit.upload_bytes = await request.multipart(), row.upload_bytes
            first = await visit.multipart.next()
            given = b""
            if isinstance(first, BodyPartReader) and first.name == TOKEN_FIELD:
                given = await first.read_chunk(TOKEN_BYTES)
                while await first.read_chunk():
                    pass
            token = given.decode("ascii", "replace")
        else:
            body = await read_body(request, PUBLIC_FORM_BYTES if row.public else FORM_BYTES)
            try:
                pairs = parse_qsl(
                    body.decode(), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELDS
                )
            except ValueError:
                raise InvalidInput(visit.t("error.form")) from None
            visit.fields.extend(pairs)
            token = visit.fields.pop(TOKEN_FIELD, "")
        if not row.public and (login is None or not token_fits(secret, token)):
            raise Forbidden(visit.t("error.token"))

    async def _answer(self, row: Row, visit: Visit, answer: Answer) -> web.StreamResponse:
        if isinstance(answer, Moved):
            if answer.notice and visit.viewer.login is not None:
                self._notices[visit.viewer.login.id] = answer.notice
            return web.Response(status=303, headers={**PAGE_HEADERS, hdrs.LOCATION: answer.url})
        if isinstance(answer, Part):
            return packed(visit.request, render_part(visit, answer), 200, no_store=row.no_store)
        if isinstance(answer, Page):
            return await self._page(visit, answer, no_store=row.no_store)
        if not answer.prepared:
            answer.headers.setdefault("Referrer-Policy", "same-origin")
        return answer

    async def _page(self, visit: Visit, page: Page, *, no_store: bool = False) -> web.Response:
        login = visit.viewer.login
        notice = self._notices.pop(login.id, "") if login is not None else ""
        banner = await visit.include("banner", element="div") if visit.viewer.may_look else ""
        brewery = visit.services.page.brewery
        html = render_page(visit, page, notice=notice, banner=banner, brewery=brewery)
        response = packed(visit.request, html, page.status, no_store=no_store)
        response.headers.update(page.headers)
        if login is not None:
            # On each page, because the browser forgets the cookie so many days after it got it.
            give_cookie(response, secret_of(visit.request), visit.request)
        return response

    async def _failed(self, row: Row, visit: Visit, error: Exception) -> web.Response:
        """Return the page of an error. A bug gets a number that stands in the log as well."""
        headers: dict[str, str] = {}
        if isinstance(error, GatewayError):
            status = STATUS.get(type(error), (500, ""))[0]
            text = str(error)
            if isinstance(error, NotFound) and text == str(NotFound()):
                text = visit.t("error.not_found")
            elif isinstance(error, Unauthorized):
                text = visit.t("error.logged_out")
        else:
            number = secrets.token_hex(4)
            log.error("ui: %s failed, number %s", row.name, number, exc_info=error)
            status, text = 500, visit.t("error.bug", number=number)
        if isinstance(error, RateLimited):
            headers[hdrs.RETRY_AFTER] = str(max(1, math.ceil(error.retry_after_s)))
        elif isinstance(error, StoreUnavailable):
            headers[hdrs.RETRY_AFTER] = str(RETRY_AFTER_S[type(error)])
            if visit.request.method == hdrs.METH_GET:
                headers["Refresh"] = str(RELOAD_S)
        title = visit.t(f"error.title.{status}") if visit.words.has(f"error.title.{status}") else ""
        values = {"text": text, "login": visit.url("login") if status == 401 else ""}
        page = Page("error.html", title or visit.t("error.title.500"), values, status=status, headers=headers)
        return await self._page(visit, page)


def packed(request: web.Request, html: str, status: int, *, no_store: bool = False) -> web.Response:
    """Return HTML as an answer, compressed if that is worth it."""
    body = html.encode()
    headers = {
        **PAGE_HEADERS,
        hdrs.CONTENT_TYPE: "text/html; charset=utf-8",
        hdrs.CACHE_CONTROL: "no-store" if no_store else "private, no-cache",
    }
    if len(body) >= GZIP_BYTES and takes_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, "")):
        body = gzip.compress(body, GZIP_LEVEL, mtime=0)
        headers[hdrs.CONTENT_ENCODING] = GZIP
    return web.Response(status=status, body=body, headers=headers)


def secret_of(request: web.Request) -> str:
    """Return the secret in the cookie of a request, or an empty text."""
    return request.cookies.get(SECURE_COOKIE) or request.cookies.get(COOKIE, "")


def give_cookie(response: web.Response, secret: str, request: web.Request) -> None:
    """Let the browser send the secret with each request for a page that begins on a page of ours."""
    secure = scheme_of(request) == "https"
    response.set_cookie(
        SECURE_COOKIE if secure else COOKIE,
        secret,
        max_age=LIFE_S,
        path=f"{base_path_of(request)}{ROOT}",
        secure=secure,
        httponly=True,
        samesite="Strict",
    )


def take_cookie(response: web.Response, request: web.Request) -> None:
    """Let the browser forget the secret."""
    path = f"{base_path_of(request)}{ROOT}"
    for name in (SECURE_COOKIE, COOKIE):
        if name in request.cookies:
            secure = name == SECURE_COOKIE
            response.del_cookie(name, path=path, secure=secure, httponly=True, samesite="Strict")


def is_in_sight(request: web.Request) -> bool:
    """Return whether a neighbour itself asks, and no proxy for somebody who may be anywhere."""
    forwarded = any(name in request.headers for name in FORWARDING_HEADERS)
    return peer_of(request).is_neighbour and not forwarded


def check_origin(visit: Visit) -> None:
    """Raise `Forbidden` unless a page of this very host sent the form."""
    request = visit.request
    source = request.headers.get(hdrs.ORIGIN) or request.headers.get(hdrs.REFERER, "")
    parts = urlsplit(source)
    host = host_of(request)
    if not host or parts.scheme not in {"http", "https"} or parts.netloc.lower() != host.lower():
        raise Forbidden(visit.t("error.origin"))


def new_token(secret: str) -> str:
    """Make the token of a page's forms. Its salt is new on each page, so that compression leaks nothing."""
    salt = secrets.token_hex(SALT_BYTES)
    return f"{salt}{_mark(secret, salt)}"


def token_fits(secret: str, token: str) -> bool:
    """Return whether a token belongs to the login with this secret."""
    salt, mark = token[: 2 * SALT_BYTES], token[2 * SALT_BYTES :]
    return hmac.compare_digest(mark.encode(), _mark(secret, salt).encode())


def _mark(secret: str, salt: str) -> str:
    return hmac.new(secret.encode(), salt.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
