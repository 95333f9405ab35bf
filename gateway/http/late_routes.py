"""Routes that are made at the first request for one of them: most gateways idle, and never need them."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import Any

from aiohttp import web
from aiohttp.web_urldispatcher import AbstractResource, MatchInfoError, UrlDispatcher
from yarl import URL

from gateway.late import Replaced, check_program

ROOT = "/"


class LateRoutes(AbstractResource):
    """The routes of paths whose first segment is one of `segments`. `make` imports and returns them.

    aiohttp asks last of all, because the resource stands for the root of all paths.
    """

    def __init__(self, segments: Collection[str], make: Callable[[], list[web.RouteDef]]) -> None:
        super().__init__()
        self._segments = frozenset(segments)
        self._make = make
        self._making = asyncio.Lock()
        self._router: UrlDispatcher | None = None

    @property
    def canonical(self) -> str:
        """The root of the paths."""
        return ROOT

    async def resolve(self, request: web.Request) -> tuple[Any, set[str]]:
        """Return the route of a request, or the methods of its path. The first one waits."""
        if request.path.split("/")[1] not in self._segments:
            return None, set()
        try:
            router = self._router or await self._first()
        except Replaced as error:
            return MatchInfoError(web.HTTPServiceUnavailable(reason=str(error))), set()
        found = await router.resolve(request)
        refusal = found.http_exception
        if refusal is None:
            return found, set()
        return None, refusal.allowed_methods if isinstance(refusal, web.HTTPMethodNotAllowed) else set()

    async def _first(self) -> UrlDispatcher:
        async with self._making:
            if self._router is None:
                check_program()
                # In a thread, because the imports take a quarter of a second, on a Pi more than one.
                self._router = await asyncio.to_thread(self._made)
            return self._router

    def _made(self) -> UrlDispatcher:
        router = UrlDispatcher()
        router.add_routes(self._make())
        return router

    def __iter__(self) -> Iterator[web.AbstractRoute]:
        """Make the routes at once, for a caller that lists them."""
        if self._router is None:
            self._router = self._made()
        return iter(self._router.routes())

    def __len__(self) -> int:
        return len(list(iter(self)))

    def url_for(self, **kwargs: str) -> URL:
        """Return the root: the routes themselves know their addresses."""
        return URL(ROOT)

    def add_prefix(self, prefix: str) -> None:
        """Refuse a prefix, because the routes have whole paths."""
        raise NotImplementedError

    def get_info(self) -> Any:
        """Describe the resource, as aiohttp's own ones do."""
        return {"path": ROOT}

    def raw_match(self, path: str) -> bool:
        """Return False: no second resource may share the routes."""
        return False
