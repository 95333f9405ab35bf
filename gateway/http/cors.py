"""CORS (the Fetch standard): pages of other origins may use the API from a browser if the owner named them.

Without a named origin, no answer has a header of CORS. `*` is no origin: `/healthz` needs no key and names
addresses of the local network, which a strange page must not read. `null` is no origin either: every
sandboxed frame sends it. Device paths have no CORS.
"""

from collections.abc import Collection

from aiohttp import hdrs, web

from gateway.http.middleware import KEY_HEADER, Handler

OPEN_PATHS = frozenset({"/healthz", "/openapi.json"})
KEPT_PATHS = ("/v1/", "/manage/")
"""Beginnings of paths that need a key. The rest need not exist, so that a page can read the 404."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
"""Methods of all endpoints together, so that a page that uses a wrong method can read the 405."""

REQUEST_HEADERS = (KEY_HEADER, hdrs.CONTENT_TYPE)
ANSWER_HEADERS = (hdrs.ALLOW, hdrs.CONTENT_DISPOSITION, hdrs.ETAG, hdrs.RETRY_AFTER)
"""Headers of answers that a page may read beyond the standard ones."""

MAX_AGE_S = 7200
"""Seconds until a browser asks again. Browsers accept a day at most, Chromium no more than this."""


def allow(app: web.Application, origins: Collection[str]) -> None:
    """Let the application answer pages of these origins, ahead of all other middleware."""
    allowed = frozenset(origins)

    async def mark(request: web.Request, response: web.StreamResponse) -> None:
        if not _is_api(request.path):
            return
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)  # for every origin, because a cache may keep the answer
        origin = request.headers.get(hdrs.ORIGIN)
        if origin in allowed:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = ", ".join(ANSWER_HEADERS)

    @web.middleware
    async def preflight(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a preflight. A browser sends it without the key, before the request that has the key."""
        asks = request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
        if not (asks and _is_api(request.path) and request.headers.get(hdrs.ORIGIN) in allowed):
            return await handler(request)
        return web.Response(
            status=204,
            headers={
                hdrs.ACCESS_CONTROL_ALLOW_METHODS: ", ".join(METHODS),
                hdrs.ACCESS_CONTROL_ALLOW_HEADERS: ", ".join(REQUEST_HEADERS),
                hdrs.ACCESS_CONTROL_MAX_AGE: str(MAX_AGE_S),
            },
        )

    app.on_response_prepare.append(mark)
    app.middlewares.insert(0, preflight)


def _is_api(path: str) -> bool:
    return path in OPEN_PATHS or path.startswith(KEPT_PATHS)
