"""Pages of other origins that the owner has named may use the API from a browser (CORS, the Fetch standard).

Without an origin nothing of this is in any answer. `*` is none: `/healthz` needs no key and names addresses
of the local network, which no page of the whole web that the owner visits has to know. Nor is `null`, which
every sandboxed frame sends. Device paths stay as they are.
"""

from collections.abc import Collection

from aiohttp import hdrs, web

from gateway.http.middleware import KEY_HEADER, Handler

OPEN_PATHS = frozenset({"/healthz", "/openapi.json"})
KEPT_PATHS = ("/v1/", "/manage/")
"""How those begin that need a key; what follows need not exist, so that a page can read the 404."""

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
"""Of all endpoints together: a page that asks for a wrong one reads the 405."""

REQUEST_HEADERS = (KEY_HEADER, hdrs.CONTENT_TYPE)
ANSWER_HEADERS = (hdrs.ALLOW, hdrs.CONTENT_DISPOSITION, hdrs.ETAG, hdrs.RETRY_AFTER)
"""What a page may read beyond what every page may."""

MAX_AGE_S = 7200
"""For so long a browser need not ask again; none believes more than a day, Chromium no more than this."""


def allow(app: web.Application, origins: Collection[str]) -> None:
    """Have the application answer pages of these origins, before any other middleware that it has."""
    allowed = frozenset(origins)

    async def mark(request: web.Request, response: web.StreamResponse) -> None:
        if not _is_api(request.path):
            return
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)  # whether this one is named or not: caches may keep it
        origin = request.headers.get(hdrs.ORIGIN)
        if origin in allowed:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = ", ".join(ANSWER_HEADERS)

    @web.middleware
    async def preflight(request: web.Request, handler: Handler) -> web.StreamResponse:
        """A browser asks without the key, before it sends what only a key lets pass."""
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
