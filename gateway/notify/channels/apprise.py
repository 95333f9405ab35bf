"""Apprise: a package that speaks to a hundred services. It is an extra, and imported at first use."""

import asyncio
import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from gateway.domain.alarm import Severity
from gateway.domain.delivery import DeliveryResult, Outcome
from gateway.network import address_in
from gateway.notify.words import Note
from gateway.outward.guard import Guard, OutwardFailed

DEADLINE_S = 30.0
"""Seconds for all services of a channel together."""

MISSING = "the package apprise is not installed: pip install 'hydrometer-gateway[notify]'"

TYPES: Mapping[Severity, str] = {"info": "info", "warning": "warning", "critical": "failure"}

REFUSED_SCHEMES = frozenset({"file", "syslog", "dbus", "kde", "qt", "gnome", "glib", "macosx", "windows"})
"""Schemes that write on this machine instead of telling a person."""

WEB_SCHEMES = frozenset({"json", "jsons", "xml", "xmls", "form", "forms"})
"""Schemes of plain web requests: their host is one."""


class Apprise:
    """Sends through Apprise. Nobody knows whether a message without an answer has arrived."""

    repeats = False

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def send(self, note: Note, parts: Mapping[str, str], now: float) -> Outcome:
        """Send a message to all addresses of the secret."""
        if importlib.util.find_spec("apprise") is None:
            return Outcome(DeliveryResult.PAUSED, MISSING)
        urls = parts["url"].split("\n")
        try:
            async with asyncio.timeout(DEADLINE_S):
                for url in urls:
                    await self._check(url)
                return await asyncio.to_thread(_sent, note, urls)
        except OutwardFailed as failure:
            return failure.outcome
        except TimeoutError:
            return Outcome(DeliveryResult.AMBIGUOUS, "no answer in time")

    async def _check(self, url: str) -> None:
        """Refuse what no request of ours goes to; `OutwardFailed` says why.

        Apprise looks a name up again, and follows redirects: this stops what is written there, no trick.
        """
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:  # Apprise says that it is no address
            return
        scheme = parts.scheme.lower()
        # Of many other services the place of the host is that of a token, which no name server should see.
        if host and (scheme in WEB_SCHEMES or address_in(host)):
            await self._guard.addresses(host, port or (443 if scheme.endswith("s") else 80))


def _sent(note: Note, urls: list[str]) -> Outcome:
    apprise: Any = importlib.import_module("apprise")
    # Neither configurations nor attachments: both would read files of this machine, or fetch addresses.
    # Nothing is kept on the disk.
    asset = apprise.AppriseAsset(
        app_id="hydrometer-gateway", secure_logging=True, storage_mode=apprise.PersistentStoreMode.MEMORY
    )
    services = []
    for place, url in enumerate(urls, 1):
        if url.partition("://")[0].lower() in REFUSED_SCHEMES:
            return Outcome(DeliveryResult.PAUSED, f"address {place} would write on this machine")
        services.append(apprise.Apprise(asset=asset))
        if not services[-1].add(url):
            return Outcome(DeliveryResult.PAUSED, f"address {place} is none that apprise knows")
    try:
        taken = [
            each.notify(title=note.title, body=note.text, notify_type=TYPES[note.severity])
            for each in services
        ]
    except Exception as error:  # a plug-in may raise anything
        return Outcome(DeliveryResult.AMBIGUOUS, f"apprise failed: {type(error).__name__}")
    if all(taken):
        return Outcome(DeliveryResult.ACCEPTED)
    if any(taken):
        return Outcome(DeliveryResult.AMBIGUOUS, f"{sum(map(bool, taken))} of {len(taken)} addresses took it")
    # A service that is away, mostly: to lose an alarm would be worse than to send it twice.
    return Outcome(DeliveryResult.KEPT, "apprise could not send it")
