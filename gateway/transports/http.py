"""HTTP for devices: take a reading, answer after the commit, in words that firmware understands.

Always `200 OK` with a small JSON body for a stored or quarantined payload (devices section 3.1): firmware
treats 201 and 204 as failure, and no device does better on a 4xx. 503 only when nothing could be stored.
"""

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple
from urllib.parse import quote, urlencode

from aiohttp import hdrs, web

from gateway.clock import Clock
from gateway.domain.key import KEY_PREFIX, ApiKey, without_keys
from gateway.domain.payload import Payload
from gateway.domain.texts import LABEL_CHARACTERS
from gateway.drivers import BY_NAME, DRIVERS, Driver
from gateway.drivers.addresses import label_of
from gateway.drivers.base import Exchange
from gateway.drivers.wire import PARAMETERS, clean
from gateway.errors import Forbidden, RateLimited, TooLarge, Unauthorized
from gateway.http.browsers import NOT_FOR_BROWSERS, ReportRules, page_of
from gateway.http.connections import Shares
from gateway.http.middleware import KEY_HEADER, PAGE, base_path_of, peer_of, read_body
from gateway.http.short_way import JSON, PlainPath, ShortWay
from gateway.intake.intake import Intake
from gateway.intake.ordinary import Taken
from gateway.logs import RareLines
from gateway.network import Admission, Peer
from gateway.services.access import Access
from gateway.stats import Stats

log = logging.getLogger(__name__)

BODY_BYTES = 64 * 1024
"""Bytes of a device's post at most; the largest known is under 4 KiB."""

LIST_BYTES = 1024 * 1024
"""Bytes of a list of readings at most: pytilt posts the readings of a day and more at once."""

ANSWER = {"result": "success", "message": "success"}
"""The common answer: the Tilt app and Home Assistant read `result`, clients of Brewer's Friend `message`."""

HINT = {"message": "success", "detail": "hydrometer-gateway takes readings here: POST, or GET with a query"}
"""The answer for a browser that opens a device path."""

BROWSER_PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Not for browsers</title>'
    f"<p>{NOT_FOR_BROWSERS[0].upper()}{NOT_FOR_BROWSERS[1:]}.</p></html>"
)
"""The answer for a browser that would report by opening an address."""

WRITE_KEY_HEADER = "X-THINGSPEAKAPIKEY"
"""The header in which ThingSpeak's library sends a key for each device."""

KEY_HEADERS = (KEY_HEADER, "X-Webhook-Token", hdrs.AUTHORIZATION)
"""Headers that may hold one of our keys, alone or behind a word like `Token` or `Bearer`."""

NO_PARAMETERS: frozenset[str] = frozenset()

KEY_QUERY_MEMBERS = ("key", "api_key", "apikey", "token", "id")
"""Parameters that may hold a key: much firmware, and the clouds of vendors, can set nothing else."""

PAUSE_MEMBER = "next_request_ms"
"""The sleep of Bricks' devices, in ms: the user's setting goes before the driver's value."""

_ANSWER_BYTES = json.dumps(ANSWER).encode()


class DevicePath(NamedTuple):
    """A path for devices: the driver that it names, or usually means (`hint`), and its answer."""

    path: str
    driver: str | None = None
    hint: str | None = None
    status: int = 200
    numbered: bool = False

    @property
    def family(self) -> Driver | None:
        """Return the driver that the path names or usually means."""
        return BY_NAME.get(self.driver or self.hint or "")

    def payload(self, body: bytes, received_at: float, source: str) -> Payload:
        """Return the payload of a body without a query, a label or a key beside it."""
        return Payload(body, received_at, f"http {self.path}", self.driver, source, hint=self.hint)


class Sender(NamedTuple):
    """The sender of a delivery, and the ingest key that came with the delivery."""

    peer: Peer
    key: ApiKey | None


class HttpIngest:
    """Device paths: `/ingest/<driver>`, the drivers' own, and `/ingest` and `/`, where the content decides.

    A key may follow in the path (`/ingest/<driver>/<key>`, `/ingest/<key>`), because much firmware can set
    a path but no header.
    """

    def __init__(
        self,
        intake: Intake,
        access: Access,
        clock: Clock,
        admission: Admission,
        rules: ReportRules | None = None,
        stats: Stats | None = None,
        *,
        require_key: bool = False,
    ) -> None:
        """`require_key` says that neighbours and this machine need an ingest key, too."""
        self._require_key = require_key
        self._intake = intake
        self._access = access
        self._clock = clock
        self._admission = admission
        self._rules = rules or ReportRules()
        self._stats = stats or Stats()
        self._arriving = Shares(1)
        self._long = asyncio.Lock()
        self._pages = RareLines(clock.monotonic)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of our own paths, which the documentation names."""
        return self._routes(own_paths())

    def alias_routes(self) -> list[web.RouteDef]:
        """Return the routes with a key in the path, of paths built into firmware, and of other servers."""
        exchanges = [
            web.route(hdrs.METH_ANY, exchange.path + end, partial(self.exchange, exchange))
            for driver in DRIVERS
            for exchange in driver.exchanges
            for end in ("", "/")
        ]
        return [*self._routes(aliases()), *exchanges]

    def short_way(self) -> ShortWay | None:
        """Return the short way for plain posts; None where nothing is taken without a key."""
        if self._require_key:
            return None
        first: dict[str, DevicePath] = {}
        for path in (*own_paths(), *aliases()):
            first.setdefault(path.path, path)  # as the router does
        plain = {
            path.path.encode(): PlainPath(path.path, path.payload, partial(_answer, driver=path.family))
            for path in first.values()
            if _is_plain(path)
        }
        return ShortWay(plain, _ANSWER_BYTES, self._intake, self._admission, self._clock)

    def _routes(self, paths: Iterator[DevicePath]) -> list[web.RouteDef]:
        # POST, PUT and GET, because BrewPiLess, GravityMon and RAPT can be set to any of them.
        return [
            route
            for path in paths
            for handler in [partial(self.take, path)]
            for route in (
                web.post(path.path, handler),
                web.put(path.path, handler),
                web.get(path.path, handler, allow_head=False),
            )
        ]

    async def exchange(self, exchange: Exchange, request: web.Request) -> web.Response:
        """Answer a request of firmware that is no report. It stores nothing."""
        sender = self._admit(request)
        if isinstance(sender, web.Response):
            return sender
        peer, key = sender
        payload = Payload(
            body=await read_body(request, BODY_BYTES),
            received_at=self._clock.now(),
            channel=f"http {exchange.path}",
            source=peer.address,
            query=without_keys(request.rel_url.raw_query_string),
            key=key,
        )
        return web.json_response({**ANSWER, **exchange.answer(payload)})

    async def take(self, path: DevicePath, request: web.Request) -> web.Response:
        """Take one delivery of one device."""
        driver = path.family
        names = driver.parameters if driver is not None else NO_PARAMETERS
        in_headers = _parameters(names, request.headers) if names else ""
        if request.method == hdrs.METH_GET and not request.query_string and not in_headers:
            # A person opened the path in a browser: no reading.
            first = request.app.get(PAGE) if path.path == "/" else None
            if first is not None and "text/html" in request.headers.get(hdrs.ACCEPT, ""):
                return web.Response(status=303, headers={hdrs.LOCATION: base_path_of(request) + first})
            return web.json_response(HINT)
        sender = self._admit(request)
        if isinstance(sender, web.Response):
            return sender
        if (request.content_length or 0) > BODY_BYTES:
            # One at a time of each source, because a body that trickles in must keep nobody else waiting.
            async with self._arriving.hold(sender.peer.address):
                body = await read_body(request, LIST_BYTES)
            if not body.lstrip().startswith(b"["):
                raise TooLarge(f"the body is larger than {BODY_BYTES} bytes")
            # One by one, because each may be thousands of readings, with all the memory that they need.
            async with self._long:
                taken = await self._store(path, request, sender, body)
        else:
            body = await read_body(request, BODY_BYTES)
            if names and body and (beside := _joined(_parameters(names, request.query), in_headers)):
                body = b"%b%b\n%b" % (PARAMETERS, beside.encode(), body)
            taken = await self._store(path, request, sender, body, in_headers)
        if path.status == 204:  # InfluxDB's answer has no body
            return web.Response(status=204)
        if path.numbered:
            # ThingSpeak's number of an entry: 0 if nothing was taken, else the second of its arrival. It
            # grows over restarts, as theirs does, and fits into the 32 bits that the library has for it.
            is_taken = taken.reports or taken.quarantined is not None
            return web.Response(text=str(max(1, int(self._clock.now())) if is_taken else 0))
        return web.Response(body=_answer(taken, driver), headers=JSON, status=path.status)

    async def _store(
        self, path: DevicePath, request: web.Request, sender: Sender, body: bytes, in_headers: str = ""
    ) -> Taken:
        # Payloads are kept for years and shown in lists, but keys never are.
        address, query = request.match_info, without_keys(request.rel_url.raw_query_string)
        # The key of the service that the device takes us for goes before one of our keys.
        token = request.match_info.get("token", "")
        if not token or token.startswith(KEY_PREFIX):
            token = clean(request.headers.get(WRITE_KEY_HEADER, "")) or token
        payload = path.payload(body, self._clock.now(), sender.peer.address)
        payload.query = _joined(query, in_headers) if in_headers else query
        payload.label = clean(label_of(address) or request.query.get("name", "")[:LABEL_CHARACTERS])
        payload.token = without_keys(token)
        payload.key = sender.key
        return await self._intake.take(payload)

    def _admit(self, request: web.Request) -> Sender | web.Response:
        """Admit neighbours without a key, others with a key; refuse an address that posts too often.

        Return a page for a person whose browser reported. Refuse other reports of web pages without a key.
        """
        peer = peer_of(request)
        reason = self._rules.refusal(request.method, request.headers)
        key = self._key(request, peer, needed=reason is None and (self._require_key or not peer.is_neighbour))
        if reason is not None and key is None:
            self._stats.pages_refused += 1
            if count := self._pages.due(peer.source):
                page = page_of(request.headers)
                log.warning(
                    "http: reports of web pages refused: %d, the last of %s from %s",
                    count,
                    page,
                    peer.address,
                )
            if reason == NOT_FOR_BROWSERS:
                return web.Response(text=BROWSER_PAGE, content_type="text/html", status=403)
            raise Forbidden(reason)
        if wait := self._admission.take(peer):
            raise RateLimited(wait)
        return Sender(peer, key)

    def _key(self, request: web.Request, peer: Peer, *, needed: bool) -> ApiKey | None:
        """Return the ingest key of a delivery. Without one, return None, or raise if one is needed.

        A neighbour's wrong key counts, but refuses no delivery: a reading is worth more than a tidy setting,
        and the same delivery without a key would be taken, too.
        """
        headers = [
            request.headers[name].rpartition(" ")[2] for name in KEY_HEADERS if name in request.headers
        ]
        texts = [*headers, request.match_info.get("token", "")]
        texts += [request.query.get(name, "") for name in KEY_QUERY_MEMBERS]
        # The text that looks like one of our keys, because a proxy may add headers of its own.
        ours = next((text for text in texts if text.startswith(KEY_PREFIX)), "")
        if not needed and not ours:
            return None
        presented = ours or (headers[0] if headers else "")
        try:
            return self._access.admit(presented, "ingest", peer)
        except (Unauthorized, RateLimited):
            if needed:
                raise
            return None


def own_paths() -> Iterator[DevicePath]:
    """Yield `/`, `/ingest`, and each driver's `/ingest/<name>`."""
    yield DevicePath("/")
    yield DevicePath("/ingest")
    for driver in DRIVERS:
        yield DevicePath(f"/ingest/{driver.name}", driver=driver.name, status=driver.status)


def aliases() -> Iterator[DevicePath]:
    """Yield our own paths with a slash or a key at the end, and the drivers' paths with both endings."""
    for own in own_paths():
        if own.path != "/":
            for end in ("/", "/{token:hg_[^/]+}"):
                yield own._replace(path=own.path + end)
    for driver in DRIVERS:
        for path in driver.paths:
            for end in ("", "/"):
                yield DevicePath(
                    path + end, hint=driver.name, status=driver.status, numbered=path in driver.numbered
                )


def _is_plain(path: DevicePath) -> bool:
    """Return whether a post to the path needs nothing but its body, and gets the common kind of answer."""
    parameters = NO_PARAMETERS if path.family is None else path.family.parameters
    return "{" not in path.path and path.status == 200 and not path.numbered and not parameters


def _parameters(names: frozenset[str], values: Mapping[str, str]) -> str:
    """Return the parameters of these names among headers or members of a query, as a query."""
    own = [(name, _decode(text)) for name, text in values.items() if name.lower().lstrip("@") in names]
    return urlencode(own, quote_via=quote)


def _decode(text: str) -> str:
    """Decode a header as UTF-8, or else as ISO-8859-1, the former encoding of HTTP."""
    if text.isascii():
        return text
    raw = text.encode("utf-8", "surrogateescape")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _joined(*queries: str) -> str:
    return "&".join(query for query in queries if query)


def _answer(taken: Taken, driver: Driver | None) -> bytes:
    """Return the common answer with the members that the device's own firmware reads."""
    replies = [report.reply for report in taken.reports if report.reply is not None]
    if not taken.reports and driver is not None and driver.reply is not None:
        replies = [driver.reply]
    if not replies:
        return _ANSWER_BYTES
    answer = {**ANSWER, **replies[0]}
    if taken.interval_s is not None and PAUSE_MEMBER in answer:
        answer[PAUSE_MEMBER] = taken.interval_s * 1000
    return json.dumps(answer).encode()
