"""HTTP for devices: takes a reading, answers after the commit, in words that firmware understands.

Always `200 OK` with a small JSON body for what was stored or quarantined (devices section 3.1): firmware
treats 201 and 204 as failure, and no device does better on a 4xx. 503 only when nothing could be stored.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from urllib.parse import quote, urlencode

from aiohttp import hdrs, web

from gateway.clock import Clock
from gateway.connections import LOOPBACK
from gateway.domain.device import LABEL_CHARACTERS
from gateway.domain.key import KEY_PREFIX
from gateway.domain.payload import Payload
from gateway.drivers import BY_NAME, DRIVERS, Driver
from gateway.drivers.addresses import label_of
from gateway.drivers.wire import PARAMETERS, clean
from gateway.errors import Forbidden, RateLimited, TooLarge, Unauthorized
from gateway.limits import TokenBuckets, is_local, source_of
from gateway.services.access import Access
from gateway.services.intake import Intake, Taken
from gateway.web import KEY_HEADER, client_address, read_body

BODY_BYTES = 64 * 1024
"""A device's post at most; the largest known is under 4 KiB."""

LIST_BYTES = 1024 * 1024
"""A list of readings at most: pytilt's of a day and more, which it posts whole once it reaches us."""

SOURCE_RATE, SOURCE_BURST = 2.0, 60.0
"""Posts a second of one address in the long run, and at once: a bridge posts for every Tilt it hears."""

TOTAL_RATE, TOTAL_BURST = 200.0, 400.0
"""The same for all addresses together, loopback excepted."""

ANSWER = {"result": "success", "message": "success"}
"""The Tilt app and Home Assistant look at `result`, clients of Brewer's Friend at `message`."""

HINT = {"message": "success", "detail": "hydrometer-gateway takes readings here: POST, or GET with a query"}
"""What a person sees who opens a device path in a browser."""

TOKEN_HEADERS = ("X-THINGSPEAKAPIKEY", KEY_HEADER, "X-Webhook-Token", "X-Auth-Token", "X-PYTILT-KEY")
"""Where firmware puts the key of a service that it takes us for."""

KEY_HEADERS = (KEY_HEADER, "X-Webhook-Token", hdrs.AUTHORIZATION)
"""Where a key of ours may stand; in the last one behind `Token` or `Bearer`."""

KEY_QUERY_MEMBERS = ("key", "api_key", "apikey", "token", "id")
"""Where a key may stand in a query: many a firmware, and the clouds of vendors, can set nothing else."""

PAUSE_MEMBER = "next_request_ms"
"""How long Bricks' devices sleep, in ms: what the user has set goes before what their driver says."""

_ANSWER_BYTES = json.dumps(ANSWER).encode()
_JSON = {hdrs.CONTENT_TYPE: "application/json"}


class DevicePath(NamedTuple):
    """A path for devices: the driver it names, or the one it usually means, and the status of its answer."""

    path: str
    driver: str | None = None
    hint: str | None = None
    status: int = 200


class HttpIngest:
    """Device paths: `/ingest/<driver>`, `/ingest` and `/` where the content decides, and the drivers' own.

    A key may follow in the path (`/ingest/<driver>/<key>`, `/ingest/<key>`), because much firmware can set
    a path but no header.
    """

    def __init__(self, intake: Intake, access: Access, clock: Clock) -> None:
        self._intake = intake
        self._access = access
        self._clock = clock
        self._sources = TokenBuckets(SOURCE_RATE, SOURCE_BURST)
        self._total = TokenBuckets(TOTAL_RATE, TOTAL_BURST)

    def routes(self) -> list[web.RouteDef]:
        """The paths of our own: what documentation tells people to use."""
        return self._routes(own_paths())

    def alias_routes(self) -> list[web.RouteDef]:
        """Our own with a key, those built into firmware, those that users of other servers know."""
        return self._routes(aliases())

    def _routes(self, paths: Iterator[DevicePath]) -> list[web.RouteDef]:
        """POST, PUT and GET: BrewPiLess, GravityMon and RAPT can be set to any."""
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

    async def take(self, path: DevicePath, request: web.Request) -> web.Response:
        """One delivery of one device."""
        driver = BY_NAME.get(path.driver or path.hint or "")
        in_headers = _parameters(driver, request.headers)
        if request.method == hdrs.METH_GET and not request.query_string and not in_headers:
            return web.json_response(HINT)  # somebody looks at it with a browser: nothing arrived
        source = client_address(request)
        self._admit(request, source)
        address = request.match_info
        body = await _body_of(request)
        if body and (beside := _joined(_parameters(driver, request.query), in_headers)):
            body = b"%b%b\n%b" % (PARAMETERS, beside.encode(), body)
        payload = Payload(
            body=body,
            received_at=self._clock.now(),
            channel=f"http {path.path}",
            driver=path.driver,
            source=source,
            query=_joined(request.rel_url.raw_query_string, in_headers),
            label=clean(label_of(address) or request.query.get("name", "")[:LABEL_CHARACTERS]),
            hint=path.hint,
            token=_token(request),
        )
        taken = await self._intake.take(payload)
        if path.status == 204:  # InfluxDB's answer has no body
            return web.Response(status=204)
        return web.Response(body=_answer(taken, driver), headers=_JSON, status=path.status)

    def _admit(self, request: web.Request, source: str) -> None:
        """Let in whoever may report: neighbours without a key, others with one, nobody too often."""
        if request.headers.get("Sec-Fetch-Site") == "cross-site":
            raise Forbidden("web pages of other sites cannot report")
        if not is_local(source):
            try:
                self._access.check(_presented_key(request), "ingest")
            except Unauthorized:
                self._spend(source)
                raise
        if source in LOOPBACK:
            return
        self._spend(source)

    def _spend(self, source: str) -> None:
        now = self._clock.monotonic()
        wait = self._sources.take(source_of(source), now) or self._total.take("", now)
        if wait:
            raise RateLimited(wait)


def own_paths() -> Iterator[DevicePath]:
    """`/`, `/ingest`, and each driver's `/ingest/<name>`."""
    yield DevicePath("/")
    yield DevicePath("/ingest")
    for driver in DRIVERS:
        yield DevicePath(f"/ingest/{driver.name}", driver=driver.name, status=driver.status)


def aliases() -> Iterator[DevicePath]:
    """Our own with a slash or a key at the end, and the drivers' other paths, with a slash and without."""
    for own in own_paths():
        if own.path != "/":
            for end in ("/", "/{token:hg_[^/]+}"):
                yield own._replace(path=own.path + end)
    for driver in DRIVERS:
        for path in driver.paths:
            for end in ("", "/"):
                yield DevicePath(path + end, hint=driver.name, status=driver.status)


async def _body_of(request: web.Request) -> bytes:
    """The whole body; only a list of readings may be long."""
    body = await read_body(request, LIST_BYTES)
    if len(body) > BODY_BYTES and not body.lstrip().startswith(b"["):
        raise TooLarge(f"the body is larger than {BODY_BYTES} bytes")
    return body


def _parameters(driver: Driver | None, said: Mapping[str, str]) -> str:
    """The driver's parameters among headers or members of a query, as a query; empty where there are none."""
    if driver is None or not driver.parameters:
        return ""
    own = [(name, value) for name, value in said.items() if name.lower().lstrip("@") in driver.parameters]
    return urlencode(own, quote_via=quote)


def _joined(*queries: str) -> str:
    return "&".join(query for query in queries if query)


def _presented_key(request: web.Request) -> str:
    """The key of a caller from elsewhere: in a header, or a part of path or query that looks like ours."""
    if (key := _first_of(request, KEY_HEADERS)) != "":
        return key
    told = [request.match_info.get("token", ""), *(request.query.get(name, "") for name in KEY_QUERY_MEMBERS)]
    return next((text for text in told if text.startswith(KEY_PREFIX)), "")


def _token(request: web.Request) -> str:
    """The key of a service that it takes us for, in the path or a header; one of ours only where none is."""
    told = [request.match_info.get("token", ""), _first_of(request, TOKEN_HEADERS)]
    return next((text for text in told if text and not text.startswith(KEY_PREFIX)), "") or told[0]


def _first_of(request: web.Request, headers: Sequence[str]) -> str:
    """The first of these headers that is there, without a word in front of it; empty where none is."""
    said = next((request.headers[name] for name in headers if name in request.headers), "")
    return said.rpartition(" ")[2]


def _answer(taken: Taken, driver: Driver | None) -> bytes:
    """The common answer, and what the device's own firmware looks for."""
    replies = [report.reply for report in taken.reports if report.reply is not None]
    if not taken.reports and driver is not None and driver.reply is not None:
        replies = [driver.reply]
    if not replies:
        return _ANSWER_BYTES
    answer = {**ANSWER, **replies[0]}
    if taken.interval_s is not None and PAUSE_MEMBER in answer:
        answer[PAUSE_MEMBER] = taken.interval_s * 1000
    return json.dumps(answer).encode()
