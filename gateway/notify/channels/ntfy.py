"""ntfy: one JSON post to the root of the server. The topic is a password: who knows it may read along."""

import json
from collections.abc import Mapping
from typing import Any

from gateway.domain.alarm import Severity
from gateway.domain.delivery import Outcome
from gateway.notify.channels import outcome_of
from gateway.notify.words import Note
from gateway.outward.client import OutwardClient
from gateway.outward.guard import OutwardFailed
from gateway.services.channel_settings import NTFY_SERVER

MESSAGE_CHARACTERS = 1000
"""Characters of a message at most: the server makes a file of a longer one."""

PRIORITIES: Mapping[Severity, int] = {"info": 2, "warning": 4, "critical": 5}

TAGS: Mapping[Severity, str] = {"info": "beer", "warning": "warning", "critical": "rotating_light"}


class Ntfy:
    """Sends to a topic. The newest servers replace a message of the same id on the phone."""

    repeats = True

    def __init__(self, client: OutwardClient, settings: Mapping[str, Any]) -> None:
        self._client = client
        self._server = str(settings.get("server", NTFY_SERVER))

    async def send(self, note: Note, parts: Mapping[str, str], now: float) -> Outcome:
        """Send a message."""
        text = note.text
        if len(text) > MESSAGE_CHARACTERS:
            text = text[: MESSAGE_CHARACTERS - 1] + "…"
        document = {
            "topic": parts["topic"],
            "title": note.title,
            "message": text,
            "priority": PRIORITIES[note.severity],
            "tags": [TAGS[note.severity]],
            "sequence_id": note.id,
        }
        if note.click:
            document["click"] = note.click
        headers = {"Content-Type": "application/json"}
        if "token" in parts:
            headers["Authorization"] = f"Bearer {parts['token']}"
        try:
            body = json.dumps(document).encode()
            return outcome_of(
                await self._client.request("POST", self._server, headers=headers, body=body), now
            )
        except OutwardFailed as failure:
            return failure.outcome
