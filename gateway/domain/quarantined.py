"""What could not be understood, or was refused, kept with the reason."""

from dataclasses import dataclass

from gateway.errors import NotFound


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Bytes in quarantine: where they came from and why they are here; `received_at` Unix milliseconds.

    `driver` is the one that the address named, `hint` the one it usually means, if any; `label` and
    `query` belong to the delivery, so that it can be replayed as it came. `id` is 0 until it is stored.
    """

    body: bytes
    reason: str
    received_at: int
    channel: str
    source: str
    driver: str | None = None
    query: str = ""
    label: str = ""
    hint: str | None = None
    id: int = 0


@dataclass(frozen=True, slots=True)
class QuarantineState:
    """How many payloads and bytes are kept, how many payloads newer ones pushed out, and the bounds."""

    items: int
    size: int
    pushed_out: int
    items_max: int
    size_max: int


def no_payload(number: int) -> NotFound:
    """Name the payload that is not in quarantine, and the command that shows the others."""
    return NotFound(f"nothing in quarantine has the number {number}; `quarantine list` shows what is there")
