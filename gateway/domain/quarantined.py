"""A payload that no driver could read, or that was refused, kept with the reason."""

from dataclasses import dataclass

from gateway.errors import NotFound


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Bytes in quarantine, with their origin and the reason; `received_at` in Unix milliseconds.

    `driver` is the driver that the address named, `hint` the driver that the address usually means, if any.
    `label` and `query` belong to the delivery, so that it can be replayed as it came. `readable` says that
    there may be a device and a value in it, and so that it gives way to nobody. `id` is 0 until it is stored.
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
    readable: bool = False
    id: int = 0


@dataclass(frozen=True, slots=True)
class QuarantineState:
    """Payloads and bytes in quarantine, their limits, and the payloads that newer ones pushed out."""

    items: int
    size: int
    pushed_out: int
    items_max: int
    size_max: int


def no_payload(number: int) -> NotFound:
    """Name the payload that is not in quarantine, and the command that shows the others."""
    return NotFound(f"nothing in quarantine has the number {number}; `quarantine list` shows what is there")
