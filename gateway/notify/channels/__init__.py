"""Ways to tell a person, one kind a file.

Each module has a class with `send(note, parts, now)`: it sends a message with the parts of the channel's
secret, and returns how that ended. It raises nothing that the network or a server can cause.
"""

from collections.abc import Mapping
from typing import Protocol

from gateway.domain.delivery import DeliveryResult, Outcome
from gateway.forward.backoff import parse_retry_after
from gateway.notify.words import Note
from gateway.outward.client import Answer

PAUSED_STATUSES = frozenset({401, 403, 404, 405, 410, 415})
"""Statuses of a wrong address, key or kind of message: a person must act."""

KEPT_STATUSES = frozenset({408, 425, 429, 503})
"""Statuses with which a message has surely not been taken, and may be taken later."""


class Sends(Protocol):
    """A way to tell a person.

    `repeats`: after an ending in doubt a message is sent again until the ending is known, because the
    receiver sees by its id that it is the same one. Else it is sent again once.
    """

    repeats: bool

    async def send(self, note: Note, parts: Mapping[str, str], now: float) -> Outcome:
        """Send a message; `now` is Unix seconds."""


def outcome_of(answer: Answer, now: float) -> Outcome:
    """Return the end of a request by its answer, with what it says, which the sender cuts."""
    status = answer.status
    reason = f"HTTP {status}: {answer.text}" if answer.text else f"HTTP {status}"
    wait = parse_retry_after(answer.headers.get("retry-after"), now)
    if 200 <= status < 300:
        return Outcome(DeliveryResult.ACCEPTED, reason)
    if status in PAUSED_STATUSES:
        return Outcome(DeliveryResult.PAUSED, reason, wait)
    if status in KEPT_STATUSES:
        return Outcome(DeliveryResult.KEPT, reason, wait)
    if 400 <= status < 500:
        return Outcome(DeliveryResult.REFUSED, reason)
    return Outcome(DeliveryResult.AMBIGUOUS, reason, wait)
