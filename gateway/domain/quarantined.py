"""What could not be understood, or was refused, kept with the reason."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Bytes in quarantine: where they came from and why they are here; `received_at` Unix milliseconds.

    `driver` is the one that the address named, if any; `label` and `query` belong to the delivery, so that
    it can be replayed as it came.
    """

    body: bytes
    reason: str
    received_at: int
    channel: str
    source: str
    driver: str | None = None
    query: str = ""
    label: str = ""
