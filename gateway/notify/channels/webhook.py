"""Webhooks: a JSON post, or a template of the administrator, signed as by Standard Webhooks."""

import json
from collections.abc import Mapping
from typing import Any

from gateway.domain.delivery import Outcome
from gateway.notify.channels import outcome_of
from gateway.notify.words import Note
from gateway.outward.client import OutwardClient
from gateway.outward.guard import OutwardFailed
from gateway.outward.signing import signed_headers
from gateway.outward.templates import JSON, fill


class Webhook:
    """Posts to an address. `webhook-id` is the id of a message, so that a receiver can drop a copy."""

    repeats = True

    def __init__(self, client: OutwardClient, settings: Mapping[str, Any]) -> None:
        self._client = client
        self._settings = settings

    async def send(self, note: Note, parts: Mapping[str, str], now: float) -> Outcome:
        """Send a message."""
        first, *more = note.items
        if "template" in self._settings:
            content_type = str(self._settings.get("content_type", JSON))
            values = {**first, "title": note.title, "text": note.text, "severity": note.severity}
            body = fill(str(self._settings["template"]), values, content_type)
        else:
            content_type = JSON
            body = json.dumps({**first, **({"more": more} if more else {})}, allow_nan=False).encode()
        headers = {
            **signed_headers(note.id, int(now), body, parts.get("secret", "")),
            "Content-Type": content_type,
        }
        if "token" in parts:
            headers["Authorization"] = f"Bearer {parts['token']}"
        url = parts.get("url") or str(self._settings.get("url", ""))
        try:
            return outcome_of(await self._client.request("POST", url, headers=headers, body=body), now)
        except OutwardFailed as failure:
            return failure.outcome
