"""Counters and the state of each part; parts write them, the health page reads them."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Stats:
    """Counts since the process started. `parts` says in words how each listener or target is doing.

    `received` counts deliveries, the others readings: a delivery may carry several readings or none.
    `thinned` are readings of bridges that push every few seconds, of which one a minute is kept.
    """

    received: int = 0
    stored: int = 0
    duplicates: int = 0
    thinned: int = 0
    quarantined: int = 0
    imported: int = 0
    forwarded: int = 0
    refused_upstream: int = 0
    parts: dict[str, str] = field(default_factory=dict)
