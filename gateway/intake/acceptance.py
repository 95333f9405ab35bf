"""Make readings of payloads in the inbox that the owner has accepted, in order, each as of its arrival."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.inbox import WaitingName, WaitingPayload, WaitReason
from gateway.domain.progress import Progress, no_progress
from gateway.errors import DriverError, InvalidInput, NotFound, StoreUnavailable
from gateway.events import StoredNotices
from gateway.intake.inbox import of_name
from gateway.intake.intake import Intake
from gateway.intake.replay import Replay
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

PAGE_PAYLOADS = 100

FIRST_PLACE = (-(2**62), -1)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The number of readings that were stored, and of payloads left in the inbox with the reasons.

    Readings that are not stored are duplicates, or follow each other too closely.
    """

    device_key: str
    stored: int
    left: int
    reasons: dict[str, int]


class Acceptance:
    """Accepts devices, one at a time."""

    def __init__(self, store: Store, intake: Intake, notices: StoredNotices) -> None:
        self._store = store
        self._intake = intake
        self._notices = notices
        self._turn = asyncio.Lock()

    async def accept(self, name_ids: Sequence[int], progress: Progress = no_progress) -> Accepted:
        """Accept the names with these ids, all of one device; `NotFound` if one of the ids has none.

        If the process ends meanwhile, the next start goes on with it.
        """
        names = {name.id: name for name in await self._store.inbox.names()}
        if not name_ids or not names.keys() >= set(name_ids):
            raise NotFound
        if len({names[name_id].device_key for name_id in name_ids}) > 1:
            raise InvalidInput("these are several devices; accept one at a time")
        chosen = sorted(set(name_ids))
        await self._store.inbox.accept(chosen)
        # As they were: another yes at the same time may have stored and removed them meanwhile.
        return await self._run([names[name_id] for name_id in chosen], progress)

    async def resume(self) -> None:
        """Go on with names whose acceptance was cut short when the last process ended."""
        try:
            accepted = [name for name in await self._store.inbox.names() if name.accepted]
            for key in dict.fromkeys(name.device_key for name in accepted):
                log.info("inbox: going on with %s, which was accepted", key)
                await self._run([name for name in accepted if name.device_key == key], no_progress)
        except StoreUnavailable as error:  # the next start tries again; readings are more important
            log.warning("inbox: what was accepted is not all stored yet: %s", error)

    async def _run(self, names: Sequence[WaitingName], progress: Progress) -> Accepted:
        # One by one, because two runs over the same payloads would store each of them twice.
        async with self._turn:
            if not self._intake.devices.loaded:
                await self._intake.devices.load()
            run = _Run(self._store, self._intake, self._notices, names, progress)
            with self._intake.inbox.accepting(names[0].device_key):
                await run.all()
            # Once more, for what was on its way into the inbox when the others were through.
            await self._intake.inbox.settled()
            await run.all()
            await self._intake.remember()
        return Accepted(names[0].device_key, run.stored, run.reasons.total(), dict(run.reasons))


class _Run:
    """One run through the payloads of some names of a device."""

    def __init__(
        self,
        store: Store,
        intake: Intake,
        notices: StoredNotices,
        names: Sequence[WaitingName],
        progress: Progress,
    ) -> None:
        self._store = store
        self._intake = intake
        self._name = names[0]
        self._ids = {name.id for name in names}
        self._total = sum(name.readings for name in names)
        self._progress = progress
        self._replay = Replay(store, intake, notices)
        self._done = 0
        self.stored = 0
        self.reasons: Counter[str] = Counter()

    async def all(self) -> None:
        """Take all payloads that are there, and the ones that arrive behind them meanwhile."""
        self.reasons.clear()
        place = FIRST_PLACE
        while page := await self._store.inbox.page(await self._name_ids(), place, PAGE_PAYLOADS):
            settled: list[int] = []
            try:
                for item in page:
                    reason = await self._settle(item)
                    if reason is None:
                        settled.append(item.id)
                    else:
                        self.reasons[reason] += 1
                    self._done += item.readings
                    self._progress(self._done, max(self._done, self._total), "readings")
            finally:
                # Shielded from a caller that leaves, because a reading and its payload would both be there.
                await self._store.inbox.remove(settled)
            place = int(page[-1].payload.received_at * 1000), page[-1].id

    async def _name_ids(self) -> list[int]:
        """Return the ids of the names, and of the one that holds what arrived meanwhile."""
        behind = [
            name.id
            for name in await self._store.inbox.names()
            if name.reason is WaitReason.BEHIND and name.device_key == self._name.device_key
        ]
        return [*self._ids, *behind]

    async def _settle(self, item: WaitingPayload) -> str | None:
        """Store the readings of a payload; return why it must stay in the inbox, None if it can go."""
        payload = item.payload
        if await self._store.retiming.payload_waits(int(payload.received_at * 1000)):
            return "it came while the clock was not known; accept it again once it is"
        try:
            reports = [
                (place, report)
                for place, report in enumerate(self._intake.decode(payload).reports)
                if of_name(self._name, report, self._intake.devices)
            ]
            await self._intake.adoption.adopt([report for _, report in reports])
            self.stored += await self._replay.take_all(payload, reports)
        except DriverError as error:
            return str(error)
        except StoreUnavailable:
            raise
        except Exception:  # one that the store never takes must not keep the others in the inbox
            log.exception("inbox: a payload of %s cannot be stored as a reading", self._name.device_key)
            return "it cannot be stored as a reading"
        return None if reports else "no reading of this device is found in it any more"
