"""A guarded HTTP client: no redirects, no link-local addresses, none of our own ports, bounded in all."""

import asyncio
import ssl
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from yarl import URL

from gateway import __version__
from gateway.domain.delivery import DeliveryResult
from gateway.errors import ConfigError, in_words
from gateway.outward.guard import Guard, OutwardFailed, Resolve, look_up, no_ports, refusal
from gateway.tls.authorities import verifying_context

if TYPE_CHECKING:
    import aiohttp

DEADLINE_S = 10.0
"""Seconds for a request, from resolving the name to the last byte of the answer."""

CONNECT_S = 3.0
"""Seconds for a connection to one address while there are others to try."""

ANSWER_BYTES = 64 * 1024
"""Bytes that are read of an answer."""

TEXT_BYTES = 8 * 1024
"""Bytes of an answer that are made readable at most."""

SHOWN = 200
"""Characters of an answer that an administrator sees."""

URL_CHARACTERS = 2048
"""Characters of a URL at most."""

USER_AGENT = f"hydrometer-gateway/{__version__}"

PORTS = {"http": 80, "https": 443}
"""The schemes that are taken, and their ports."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request; header names are in lower case. The body is cut at 64 KiB."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def shown(self, secrets: Iterable[str] = ()) -> str:
        """Return the beginning of the body, on one printable line, without these secrets."""
        text = self.text
        for secret in sorted(filter(None, secrets), key=len, reverse=True):
            text = text.replace(secret, "<secret>")
        return text[:SHOWN]

    @property
    def text(self) -> str:
        """Return the body on one printable line, 8 KiB at most: secrets are looked for before it is cut."""
        text = self.body[:TEXT_BYTES].decode("utf-8", "replace")
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())


@dataclass(slots=True)
class _Progress:
    """How far a request is: connected, so that bytes may have left; and the answer as far as it was read."""

    connected: bool = False
    answer: Answer | None = None


class OutwardClient:
    """One HTTP session for all requests outward. `own_ports` returns our own listening ports.

    Every failure is an `OutwardFailed`, which says whether a byte of the request may have left.
    """

    def __init__(
        self, own_ports: Callable[[], Collection[int]] = no_ports, resolve: Resolve = look_up
    ) -> None:
        self.guard = Guard(own_ports, resolve)
        self._session: aiohttp.ClientSession | None = None

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        deadline_s: float = DEADLINE_S,
    ) -> Answer:
        """Send a request to an address that `check_url` takes. A redirect is a failure that names its host.

        An answer that breaks off, or that is longer than 64 KiB, counts by its status; its body is cut.
        """
        try:
            parts = urlsplit(check_url(url))
        except ConfigError as error:
            raise OutwardFailed(str(error), DeliveryResult.PAUSED) from error
        progress = _Progress()
        try:
            async with asyncio.timeout(deadline_s):
                await self._request(method, parts, dict(headers or {}), body, progress)
        except TimeoutError as error:
            if progress.answer is None:
                raise _failed(error, progress) from error
        answer = progress.answer
        if answer is None:  # not to happen: a request without an answer has failed above
            raise OutwardFailed("no answer", DeliveryResult.AMBIGUOUS)
        if 300 <= answer.status < 400:
            where = _host_of(answer.headers.get("location", ""))
            raise OutwardFailed(
                f"HTTP {answer.status} redirects to {where}, which is not followed", DeliveryResult.PAUSED
            )
        return answer

    async def _request(
        self, method: str, parts: SplitResult, headers: dict[str, str], body: bytes, progress: _Progress
    ) -> None:
        import aiohttp

        host, port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        addresses = await self.guard.addresses(host, port)
        context: ssl.SSLContext | bool = True
        if parts.scheme == "https":
            context = await asyncio.to_thread(verifying_context)
        for place, address in enumerate(addresses):
            # The name stays in Host and in TLS; the address is the one that was looked at.
            target = parts._replace(netloc=f"[{address}]:{port}" if ":" in address else f"{address}:{port}")
            last = place == len(addresses) - 1
            try:
                async with self._opened().request(
                    method,
                    URL(target._replace(fragment="").geturl(), encoded=True),
                    data=body or None,
                    headers={
                        "User-Agent": USER_AGENT,
                        "Accept-Encoding": "identity",
                        **headers,
                        "Host": parts.netloc,
                    },
                    allow_redirects=False,
                    ssl=context,
                    server_hostname=host if parts.scheme == "https" else None,
                    # An address that does not answer leaves time for the next.
                    timeout=aiohttp.ClientTimeout(sock_connect=None if last else CONNECT_S),
                    trace_request_ctx=progress,
                ) as response:
                    await _read(response, progress)
                return
            except (aiohttp.ClientError, OSError, ValueError) as error:
                if last or progress.connected:
                    raise _failed(error, progress) from error

    def _opened(self) -> "aiohttp.ClientSession":
        import aiohttp

        if self._session is None:
            trace = aiohttp.TraceConfig()

            async def connected(_session: object, context: object, _params: object) -> None:
                context.trace_request_ctx.connected = True  # type: ignore[attr-defined]

            trace.on_connection_create_end.append(connected)
            self._session = aiohttp.ClientSession(
                # A connection for each request: the name is looked up again, and looked at again.
                connector=aiohttp.TCPConnector(force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trace_configs=[trace],
            )
        return self._session

    async def close(self) -> None:
        """Close the session."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _read(response: "aiohttp.ClientResponse", progress: _Progress) -> None:
    """Read an answer within bounds. Its status is kept even if the body cannot be read."""
    import aiohttp

    headers = {name.lower(): text for name, text in response.headers.items()}
    progress.answer = Answer(response.status, headers, b"")
    if headers.get("content-encoding", "identity").lower() != "identity":
        return  # nothing compressed was asked for, and a megabyte of it can hold a gigabyte
    body = bytearray()
    try:
        async for chunk in response.content.iter_any():
            body += chunk[: ANSWER_BYTES - len(body)]
            progress.answer = Answer(response.status, headers, bytes(body))
            if len(body) == ANSWER_BYTES:
                break
    except (aiohttp.ClientError, OSError):
        pass
    finally:
        response.close()


def _failed(error: BaseException, progress: _Progress) -> OutwardFailed:
    verdict = DeliveryResult.AMBIGUOUS if progress.connected else DeliveryResult.KEPT
    return OutwardFailed(in_words(error), verdict)


def _host_of(location: str) -> str:
    """Return the host that a redirect leads to, without user, path and query: these may be secret."""
    try:
        return urlsplit(location).netloc.rpartition("@")[2][:SHOWN] or "a path on the same host"
    except ValueError:
        return "somewhere unreadable"


def check_url(url: str) -> str:
    """Return the URL; `ConfigError` without http or https, without a host, or with a user or password."""
    if len(url) > URL_CHARACTERS:
        raise ConfigError(f"the address has more than {URL_CHARACTERS} characters")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError("the address has a space or a character in it that no address has")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError("the address is none; it must look like https://example.org/path") from error
    if parts.scheme not in PORTS:
        raise ConfigError("the address must begin with http:// or https://")
    if "@" in parts.netloc:
        raise ConfigError("the address has a user or password in it; secrets belong into a file")
    if not parts.hostname or port == 0:
        raise ConfigError("the address names no host; it must look like https://example.org/path")
    if reason := refusal(parts.hostname):
        raise ConfigError(reason)
    return url
