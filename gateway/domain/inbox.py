"""The inbox: readings that wait until the owner accepts or refuses the device that they name."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from gateway.domain.payload import Payload
from gateway.domain.report import Report
from gateway.domain.texts import did_you_mean
from gateway.errors import NameTaken, NotFound

REFUSED_S = 30 * 86_400
"""Seconds for which a refused name is remembered."""

REFUSED_MAX = 1_000
"""Refused names that are remembered; beyond it the oldest refusal is forgotten."""


class WaitReason(StrEnum):
    """Why a reading waits, in the words that lists show."""

    NEW = "new device"
    WITHOUT_KEY = "without its key"
    OTHER_KEY = "with the key of another device"
    OTHER_ADDRESS = "not from its address"
    BEHIND = "behind readings that are being accepted"

    @classmethod
    def _missing_(cls, value: object) -> "WaitReason":
        return cls.NEW  # a word of a later version, or a damaged one: the payload is shown all the same


@dataclass(frozen=True, slots=True)
class WaitingName:
    """A device whose readings wait, with one source and one reason; arrivals in Unix milliseconds.

    `source` is the sender's address, or the network of an IPv6 address. `accepted` means that the owner has
    accepted it, and that its payloads are about to become readings. `id` is 0 until it is stored.
    """

    device_key: str
    source: str
    reason: WaitReason
    family: str
    stable_id: str
    name: str
    readings: int = 0
    size: int = 0
    first_at: int = 0
    last_at: int = 0
    accepted: bool = False
    id: int = 0

    @classmethod
    def of(cls, report: Report, source: str, reason: WaitReason) -> "WaitingName":
        """Name the device of a report."""
        return cls(report.device_key, source, reason, report.family, report.stable_id, report.name)


@dataclass(frozen=True, slots=True)
class WaitingPayload:
    """A payload in the inbox: as it came, and how many readings of its waiting name are in it.

    `key_name` is the name of the key that came with it; the key itself is never stored.
    """

    payload: Payload
    readings: int
    key_name: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class RefusedName:
    """A name that the owner refused at `refused_at` (Unix seconds); `source` is empty for every source."""

    device_key: str
    source: str
    reason: WaitReason
    name: str
    refused_at: int
    id: int = 0


@dataclass(frozen=True, slots=True)
class InboxState:
    """Names, readings and bytes in the inbox, and its limits."""

    names: int
    readings: int
    size: int
    names_max: int
    size_max: int


Entry = TypeVar("Entry", WaitingName, RefusedName)


def find_entries(names: Sequence[Entry], wanted: str) -> list[Entry]:
    """Find the entries of one device by its key, its id, its name or an entry's number.

    `NotFound` if there is none, `NameTaken` if several devices have it.
    """
    found = [
        entry
        for entry in names
        if wanted in {entry.device_key, entry.device_key.partition(":")[2], entry.name, str(entry.id)}
    ]
    if not found:
        meant = did_you_mean(wanted, [word for entry in names for word in (entry.name, entry.device_key)])
        raise NotFound(f"nothing of {wanted!r} waits{meant}; `inbox list` shows what does")
    exact = [entry for entry in found if entry.device_key == wanted] or found
    keys = {entry.device_key for entry in exact}
    if len(keys) > 1:
        several = ", ".join(sorted(keys))
        raise NameTaken(f"{wanted!r} is ambiguous, it could be {several}: use one of these")
    return exact
