"""CORS (the Fetch standard): pages of other origins that the owner has named may report and use the API.

Without a named origin, no answer has a header of CORS. `*` is no origin: device paths need no key, and a
strange page must not report. `null` is no origin either: every sandboxed frame sends it.
"""

from collections.abc import Collection

from aiohttp import hdrs, web

from gateway.http.middleware import KEY_HEADER, Handler

OPEN_PATHS = frozenset({"/healthz", "/openapi.json"})
KEPT_PATHS = ("/v1/", "/manage/")
"""Beginnings of paths that need a key. The rest need not exist, so that a page can read the 404."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
"""Methods of all endpoints together, so that a page that uses a wrong method can read the 405."""

REQUEST_HEADERS = (KEY_HEADER, hdrs.CONTENT_TYPE, hdrs.IF_NONE_MATCH)
ANSWER_HEADERS = (hdrs.ALLOW, hdrs.CONTENT_DISPOSITION, hdrs.ETAG, hdrs.RETRY_AFTER)
"""Headers of answers that a page may read beyond the standard ones."""

MAX_AGE_S = 7200
"""Seconds until a browser asks again. Browsers accept a day at most, Chromium no more than this."""


def allow(app: web.Application, origins: Collection[str], reports: Collection[web.AbstractRoute]) -> None:
    """Let the application answer pages of these origins, ahead of all other middleware.

    `reports` are the routes of device paths. There, answers to firmware stay as they are.
    """
    allowed, reporting = frozenset(origins), frozenset(reports)

    async def mark(request: web.Request, response: web.StreamResponse) -> None:
        origin = request.headers.get(hdrs.ORIGIN)
        if not _is_api(request.path) and (origin is None or not await reports_to(request)):
            return
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)  # for every origin, because a cache may keep the answer
        if origin in allowed:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = ", ".join(ANSWER_HEADERS)

    @web.middleware
    async def preflight(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a preflight. A browser sends it without the key, before the request that has the key."""
        asks = request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
        if not asks or request.headers.get(hdrs.ORIGIN) not in allowed:
            return await handler(request)
        if not (_is_api(request.path) or await reports_to(request)):
            return await handler(request)
        return web.Response(
            status=204,
            headers={
                hdrs.ACCESS_CONTROL_ALLOW_METHODS: ", ".join(METHODS),
                hdrs.ACCESS_CONTROL_ALLOW_HEADERS: ", ".join(REQUEST_HEADERS),
                hdrs.ACCESS_CONTROL_MAX_AGE: str(MAX_AGE_S),
            },
        )

    async def reports_to(request: web.Request) -> bool:
        """Return whether a request, or the request that a preflight asks for, goes to a device path."""
        if request.match_info.route in reporting:
            return True
        method = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD, "")
        if request.method != hdrs.METH_OPTIONS or method not in METHODS:
            return False
        return (await app.router.resolve(request.clone(method=method))).route in reporting

    app.on_response_prepare.append(mark)
    app.middlewares.insert(0, preflight)


def _is_api(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(KEPT_PATHS)
