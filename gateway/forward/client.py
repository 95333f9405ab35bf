"""The HTTP client for Brewing Data Services: forwarder, mirror and `doctor` send every request with it."""

import asyncio
import ssl
from collections.abc import Callable, Mapping

import aiohttp

from gateway import __version__
from gateway.domain.texts import shown_url
from gateway.forward.answers import SentBody, TargetAnswer, document_of, host_of, read_answer
from gateway.tls.authorities import verifying_context

USER_AGENT = f"hydrometer-gateway/{__version__}"

JSON_TYPE = "application/json"

DETAIL_CHARS = 200
"""Characters kept of a reason, which may quote the service."""

DETAIL_BYTES = 1024 * 1024
"""Bytes of a body that is searched for a failure's detail: parsing more would hold the event loop."""

Key = str | Callable[[], str]
"""An API key, or the function that reads it for each request: a key that is replaced works at once."""


def open_session() -> aiohttp.ClientSession:
    """Make the session for requests to services: it keeps no cookies and decompresses nothing."""
    return aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar())


class ServiceClient:
    """Sends requests to one base URL with one API key. The key goes to that host and to no other."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, key: Key, *, deadline_s: float) -> None:
        self._session = session
        self.base_url = base_url.rstrip("/")
        self.shown = shown_url(self.base_url)
        self._read_key = key if callable(key) else lambda: key
        self._key = ""
        self._deadline_s = deadline_s
        self._context: ssl.SSLContext | None = None

    async def request(
        self,
        path: str,
        limit: int,
        query: Mapping[str, str] | None = None,
        *,
        accept: str = JSON_TYPE,
        body: SentBody | None = None,
    ) -> TargetAnswer:
        """Send a GET, or a POST with `body`, and read at most `limit` bytes of the answer.

        Raise one of `FAILURES` without an answer, and `ConfigError` if the key cannot be read.
        """
        self._key = self._read_key()
        if self._context is None and self.base_url.startswith("https:"):
            self._context = await asyncio.to_thread(verifying_context)
        request = self._session.request(
            "GET" if body is None else "POST",
            f"{self.base_url}{path}",
            data=body,
            params=query,
            headers={
                "X-API-KEY": self._key,
                "Accept": accept,
                "Accept-Encoding": "identity",
                "User-Agent": USER_AGENT,
            },
            # Not followed, because the key would go to whatever host the service names.
            allow_redirects=False,
            # None of aiohttp's, because one deadline covers everything from host name to last byte.
            timeout=aiohttp.ClientTimeout(),
            ssl=self._context or True,
        )
        async with asyncio.timeout(self._deadline_s), request as response:
            return await read_answer(response, limit)

    def reason(self, answer: TargetAnswer) -> str:
        """Return the status, and the trouble or the service's own detail, as one line without the key."""
        detail: object = answer.trouble
        if 300 <= answer.status < 400:
            detail = f"redirects to {host_of(answer.headers.get('location', ''))}, which is not followed"
            return self.hide_key(f"HTTP {answer.status} {detail}")
        if not detail and len(answer.body or b"") <= DETAIL_BYTES:
            detail = document_of(answer.body).get("detail")
        parts = [f"HTTP {answer.status}" if answer.status else "", detail if isinstance(detail, str) else ""]
        return self.hide_key(": ".join(part for part in parts if part))

    def hide_key(self, text: str) -> str:
        """Return one printable line without the key: a service may repeat the key in its answer."""
        hidden = text.replace(self._key, "<key>") if self._key else text
        return "".join(char if char.isprintable() else " " for char in hidden)[:DETAIL_CHARS]
