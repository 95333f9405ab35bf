"""How many readings there are and what became of them: counts that add up."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TargetTotals:
    """Readings that are to go to one target: readings = forwarded + refused + pending + not_sent.

    `name` is its base URL. `not_sent` is what no target ever gets: readings that no longer have the checksum
    they were stored with, and those that say nothing.
    """

    name: str
    readings: int
    forwarded: int
    refused: int
    pending: int
    not_sent: int


@dataclass(frozen=True, slots=True)
class Totals:
    """All readings: stored = unassigned + kept_here + mirrored + without_target + to_forward.

    `unassigned` are in no brew session, `kept_here` in one that is forwarded nowhere or deleted, `mirrored`
    came from a service themselves. Nobody forwards those `without_target`: no such service is configured.
    With one target, `to_forward` is its number of readings.
    """

    stored: int
    unassigned: int
    kept_here: int
    mirrored: int
    without_target: int
    to_forward: int
    targets: tuple[TargetTotals, ...]


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes of the database, of its log of changes, of the disk that they are on, and free there.

    `reusable_bytes` of the database are free for new readings.
    """

    database_bytes: int
    reusable_bytes: int
    wal_bytes: int
    disk_bytes: int
    free_bytes: int
