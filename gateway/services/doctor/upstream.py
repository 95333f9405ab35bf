"""Services that are forwarded to or mirrored: reached, and the key is good; leaves nothing behind there."""

from collections.abc import Sequence
from urllib.parse import urlsplit

import aiohttp

from gateway.errors import ConfigError
from gateway.failures import in_words
from gateway.limits import is_local
from gateway.services.doctor.finding import Case, Finding, ok, problem, warning
from gateway.services.doctor.services import services

ANSWER_S = 15.0
"""Seconds for name, connection, TLS and answer together."""

PROBE = "/v1/brewsessions"
"""Endpoint 8 of the specification: a list, which needs a key and changes nothing."""

ANSWERS: dict[int, tuple[str, str]] = {
    401: ("does not know the key", "make a new key there and write it into the key file"),
    403: ("does not let this key in", "give the key the right to read and to import there"),
    404: ("has no such API", "the URL is https://host, without /v1"),
}
"""What a status means, and what to do."""


async def reached(case: Case) -> Sequence[Finding]:
    """Each service that is configured."""
    configured = await services(case)
    if not configured:
        return [ok("none is configured: readings stay here")]
    found: list[Finding] = []
    for service in configured:
        try:
            key = service.key()
        except ConfigError:
            continue  # the key files have a finding of their own
        found.append(await _answer(service.url, key))
        if _sends_in_the_clear(service.url):
            found.append(warning(f"{service.url}: anyone on the way can read the key", "use https://"))
    return found


def _sends_in_the_clear(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme == "http" and host != "localhost" and not is_local(host)


async def _answer(base: str, key: str) -> Finding:
    headers = {"X-API-KEY": key, "Accept": "application/json"}
    timeout = aiohttp.ClientTimeout(total=ANSWER_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as client,
            client.get(
                f"{base}{PROBE}", params={"limit": "1"}, headers=headers, allow_redirects=False
            ) as response,
        ):
            return _judged(base, response.status, response.headers.get("Location", ""))
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        text = f"{base} cannot be reached: {in_words(error)}"
        return warning(text, "readings wait until it can; look at the network and the URL")


def _judged(base: str, status: int, location: str) -> Finding:
    if 200 <= status < 300:
        return ok(f"{base} answers and knows the key")
    if 300 <= status < 400:
        return problem(
            f"{base} redirects to {location[:200]!r}, which is not followed",
            "name that address instead",
        )
    if status in ANSWERS:
        what, remedy = ANSWERS[status]
        return problem(f"{base} {what} (HTTP {status})", remedy)
    return warning(f"{base} answers with HTTP {status}", "readings wait; look again later")
