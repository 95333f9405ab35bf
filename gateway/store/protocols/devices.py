"""The protocol of a store's part for devices.

The rules of `gateway.store.protocol` hold here, too.
"""

from typing import Protocol

from gateway.domain.device import Device, DeviceSummary
from gateway.store.records import DeviceSource, ImportPart


class DeviceStore(Protocol):
    """Devices, and the brew session that each is in."""

    async def all(self) -> list[Device]:
        """Return every device, by id."""

    async def save(self, device: Device) -> Device:
        """Insert or update the name and the learned facts of a device; return it with its id and session."""

    async def configure(self, device: Device) -> Device:
        """Write the settings of a device, which counts as being reprocessed until `mark_reprocessed`."""

    async def mark_reprocessed(self, device_id: int) -> Device:
        """Note that all of the device's readings follow its settings."""

    async def summaries(self) -> list[DeviceSummary]:
        """Return every device with its last reading."""

    async def sources(self, device_id: int) -> list[DeviceSource]:
        """Return the addresses that the newest 5,000 readings came from, in the order of their first reading.

        The number is bounded: beyond it the addresses with the fewest readings are left out.
        """

    async def first_sources(self) -> dict[int, str]:
        """Return the address that the oldest reading of each device came from, by device id."""

    async def rename(self, device: Device, key: str, stable_id: str, *, keep: bool = False) -> Device | None:
        """Give a device another key; with `keep`, let its old key belong to it, too.

        Return None, and change nothing, if the device has lost `device.key` or another device has the new
        key.
        """

    async def parts(self, device_id: int) -> list[ImportPart]:
        """Return the device's readings by brew session, in counts; readings in no session come last."""

    async def overlap(self, into: int, other: int, seconds: int) -> int:
        """Count the readings of `other` that lie at most `seconds` from a reading of `into`."""

    async def merge(self, into: Device, other: Device) -> Device:
        """Make `other` a part of `into`, which is given with its new settings and `reprocessing`.

        Readings move as they are. What `other` learned, and its brew session, count if `into` has none. The
        keys of `other` become keys of `into`. Return the device as stored.
        """

    async def assign(
        self, device_id: int, session_id: int, claim_since: int | None, now: int | None = None
    ) -> int:
        """Put the device into the session, with its unassigned readings since `claim_since` (Unix seconds).

        Return how many readings came along; none if `claim_since` is None. `now` is the time of the event.
        """

    async def get(self, device_id: int) -> Device | None:
        """Return a device, a forgotten one as well; None if no readings are left of it."""

    async def forget(
        self, device_id: int, now: int, *, with_readings: bool, unless_since: int | None = None
    ) -> tuple[int, int]:
        """Remove a device, its settings, its other keys and its place in a session; `now` is Unix seconds.

        Its readings stay where they are. With `with_readings`, they are to be deleted by `delete_readings`.
        Return how many there are, and how many of them in no brew session. `NameTaken`, and nothing changes,
        if the device has reported since `unless_since` (Unix seconds).
        """

    async def forgotten_with_readings(self) -> list[int]:
        """Return the ids of forgotten devices whose readings are still being deleted."""

    async def delete_readings(self, device_id: int, limit: int) -> int:
        """Delete up to `limit` readings of a device that was forgotten with its readings; return how many."""

    async def release(self, device_id: int, now: int | None = None) -> None:
        """Take the device out of its session; its readings stay there. `now` is the time of the event."""
