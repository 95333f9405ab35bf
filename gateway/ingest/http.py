"""HTTP for devices: takes a reading, answers after the commit, in words that firmware understands.

Always `200 OK` with a small JSON body for what was stored or quarantined (devices section 3.1): firmware
treats 201 and 204 as failure, and no device does better on a 4xx. 503 only when nothing could be stored.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from aiohttp import hdrs, web

from gateway.clock import Clock
from gateway.domain.device import LABEL_CHARACTERS
from gateway.domain.key import KEY_PREFIX
from gateway.domain.payload import Payload
from gateway.drivers import DRIVERS
from gateway.drivers.addresses import label_of
from gateway.errors import Forbidden, RateLimited, Unauthorized
from gateway.limits import TokenBuckets, is_local, source_of
from gateway.services.access import Access
from gateway.services.intake import Intake, Taken
from gateway.web import KEY_HEADER, client_address, read_body

BODY_BYTES = 64 * 1024
"""A device's post at most; the largest known is under 4 KiB."""

SOURCE_RATE, SOURCE_BURST = 2.0, 60.0
"""Posts a second of one address in the long run, and at once: a bridge posts for every Tilt it hears."""

TOTAL_RATE, TOTAL_BURST = 200.0, 400.0
"""The same for all addresses together, loopback excepted."""

ANSWER = {"result": "success", "message": "success"}
"""The Tilt app and Home Assistant look at `result`, clients of Brewer's Friend at `message`."""

HINT = {"message": "success", "detail": "hydrometer-gateway takes readings here: POST, or GET with a query"}
"""What a person sees who opens a device path in a browser."""

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
        if request.method == hdrs.METH_GET and not request.query_string:
            return web.json_response(HINT)  # somebody looks at it with a browser: nothing arrived
        source = client_address(request)
        self._admit(request, source)
        address = request.match_info
        payload = Payload(
            body=await read_body(request, BODY_BYTES),
            received_at=self._clock.now(),
            channel=f"http {path.path}",
            driver=path.driver,
            source=source,
            query=request.rel_url.raw_query_string,
            label=label_of(address) or request.query.get("name", "")[:LABEL_CHARACTERS],
            hint=path.hint,
            token=address.get("token", ""),
        )
        taken = await self._intake.take(payload)
        if path.status == 204:  # InfluxDB's answer has no body
            return web.Response(status=204)
        return web.Response(body=_answer(taken), headers=_JSON, status=path.status)

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
        if source in {"127.0.0.1", "::1"}:
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


def _presented_key(request: web.Request) -> str:
    """The key of a caller from elsewhere: a header, or a part of path or query that looks like ours."""
    if (key := request.headers.get(KEY_HEADER)) is not None:
        return key
    told = [request.match_info.get("token", ""), *(request.query.get(name, "") for name in KEY_QUERY_MEMBERS)]
    return next((text for text in told if text.startswith(KEY_PREFIX)), "")


def _answer(taken: Taken) -> bytes:
    """The common answer, and what the device's own firmware looks for."""
    for report in taken.reports:
        if report.reply is not None:
            answer = {**ANSWER, **report.reply}
            if taken.interval_s is not None and PAUSE_MEMBER in answer:
                answer[PAUSE_MEMBER] = taken.interval_s * 1000
            return json.dumps(answer).encode()
    return _ANSWER_BYTES
