"""MQTT: events of alarms on the user's broker, for automations; QoS 1, never retained."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gateway.domain.delivery import DeliveryResult, Outcome
from gateway.notify.words import Note
from gateway.outward.guard import OutwardFailed

Publish = Callable[[str, bytes], Awaitable[None]]
"""Publishes at QoS 1 and returns after the acknowledgement; `OutwardFailed` without one."""

TOPIC = "hydrometer_gateway/{instance}/event"


class Mqtt:
    """Publishes events. The id of an event is in its payload."""

    repeats = True

    def __init__(self, publish: Publish | None, settings: Mapping[str, Any], instance: str) -> None:
        self._publish = publish
        self._topic = str(settings.get("topic", TOPIC.format(instance=instance)))

    async def send(self, note: Note, parts: Mapping[str, str], now: float) -> Outcome:
        """Publish a message."""
        if self._publish is None:
            return Outcome(DeliveryResult.PAUSED, "there is no broker: start the gateway with --mqtt-url")
        first, *more = note.items
        document = {"event_type": first["kind"], **first, **({"more": more} if more else {})}
        try:
            await self._publish(self._topic, json.dumps(document, allow_nan=False).encode())
        except OutwardFailed as failure:
            return failure.outcome
        return Outcome(DeliveryResult.ACCEPTED)
