"""HTTP for devices: takes a reading, answers after the commit, in words that firmware understands.

Always `200 OK` with a small JSON body for what was stored or quarantined (devices section 3.1): firmware
treats 201 and 204 as failure, and no device does better on a 4xx. 503 only when nothing could be stored.
"""

import json
from functools import partial

from aiohttp import hdrs, web

from gateway.clock import Clock
from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.drivers import BY_NAME
from gateway.errors import Forbidden, RateLimited, Unauthorized
from gateway.limits import TokenBuckets, is_local, source_of
from gateway.services.access import Access
from gateway.services.intake import Intake
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

_ANSWER_BYTES = json.dumps(ANSWER).encode()
_JSON = {hdrs.CONTENT_TYPE: "application/json"}


class HttpIngest:
    """Device paths: `/ingest/<driver>`, and `/ingest` and `/` where the content decides.

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
        """Every device path, POST and GET: GravityMon and RAPT can be set to either."""
        drivers: list[str | None] = [None, *BY_NAME]
        return [
            route
            for driver in drivers
            for path in _paths(driver)
            for handler in [partial(self.take, driver)]
            for route in (web.post(path, handler), web.get(path, handler, allow_head=False))
        ]

    async def take(self, driver: str | None, request: web.Request) -> web.Response:
        """One delivery of one device; `driver` is the one that the path names."""
        if request.method == hdrs.METH_GET and not request.query_string:
            return web.json_response(HINT)  # somebody looks at it with a browser: nothing arrived
        source = client_address(request)
        self._admit(request, source)
        payload = Payload(
            body=await read_body(request, BODY_BYTES),
            received_at=self._clock.now(),
            channel=f"http /ingest/{driver}" if driver else "http /ingest",
            driver=driver,
            source=source,
            query=request.rel_url.raw_query_string,
        )
        taken = await self._intake.take(payload)
        return web.Response(body=_answer(taken.reports), headers=_JSON)

    def _admit(self, request: web.Request, source: str) -> None:
        """Let in whoever may report: neighbours without a key, others with one, nobody too often."""
        if request.headers.get("Sec-Fetch-Site") == "cross-site":
            raise Forbidden("web pages of other sites cannot report")
        if not is_local(source):
            try:
                key = request.headers.get(KEY_HEADER) or request.match_info.get("key", "")
                self._access.check(key, "ingest")
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


def _paths(driver: str | None) -> list[str]:
    """The driver's own paths, or the shared ones; a key may be the last word of each."""
    if driver is None:
        return ["/", "/ingest", "/ingest/", "/ingest/{key:hg_[^/]+}"]
    return [f"/ingest/{driver}", f"/ingest/{driver}/", f"/ingest/{driver}/{{key:hg_[^/]+}}"]


def _answer(reports: tuple[Report, ...]) -> bytes:
    """The common answer, and what the device's own firmware looks for."""
    for report in reports:
        if report.reply is not None:
            return json.dumps({**ANSWER, **report.reply}).encode()
    return _ANSWER_BYTES
