"""Brew sessions, and which device is in which."""

from gateway.clock import Clock
from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.errors import InvalidInput, NotFound
from gateway.events import StoredNotices
from gateway.services.access import Access
from gateway.store.protocol import Store

DEFAULT_PHASE = "Primary Fermentation"


class Brewing:
    """Changes to brew sessions and assignments; whoever forwards hears of them."""

    def __init__(self, store: Store, access: Access, notices: StoredNotices, clock: Clock) -> None:
        self._store = store
        self._access = access
        self._notices = notices
        self._clock = clock

    async def add_session(self, batchcode: str, phase: str, upstream_id: int | None) -> BrewSession:
        """A new brew session of the owner."""
        if not batchcode.strip():
            raise InvalidInput("the batch code is empty")
        now = int(self._clock.now())
        session = await self._store.sessions.add(
            BrewSession(0, self._access.owner_id, batchcode, phase, 0, upstream_id, now, now)
        )
        self._notices.ring()
        return session

    async def assign(self, device: str, session_id: int, since: float | None) -> int:
        """Put the device into the session; its unassigned readings since then (Unix seconds) come along.

        Returns how many did.
        """
        found = find_device(await self._store.devices.all(), device)
        if await self._store.sessions.get(session_id) is None:
            raise NotFound(f"no brew session {session_id}; `sessions list` shows them")
        claim_since = None if since is None else int(since)
        claimed = await self._store.devices.assign(found.id, session_id, claim_since)
        self._notices.ring()
        return claimed

    async def release(self, device: str) -> None:
        """Take the device out of its session; what it sent stays there."""
        await self._store.devices.release(find_device(await self._store.devices.all(), device).id)


def find_device(devices: list[Device], wanted: str) -> Device:
    """The one device with this id, device id, name or key; `NotFound` where none or several have it."""
    found = [d for d in devices if wanted and wanted in {str(d.id), d.stable_id, d.name, d.key}]
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFound(f"no device {wanted!r}; `devices list` shows them")
    exact = [d for d in found if d.key == wanted]
    if exact:
        return exact[0]
    keys = ", ".join(d.key for d in found)
    raise NotFound(f"{wanted!r} is ambiguous, it could be {keys}: use one of these")
