"""Quarantine for people: payloads by kind of reason, what is understood of them today, and replays."""

import re
from collections.abc import Sequence

from gateway.domain.progress import Progress, no_progress
from gateway.domain.quarantined import Quarantined, QuarantineState
from gateway.drivers import Decoded
from gateway.errors import NotFound
from gateway.events import StoredNotices
from gateway.intake.deduplicate import raw_of
from gateway.intake.intake import Intake
from gateway.intake.replay import REFUSED, Replay, Replayed, names_of, payload_of, replayed_today
from gateway.store.protocol import Store

DAMAGED = "damaged"
"""The channel of a reading whose row was damaged on the disk."""

ITEM = re.compile(r"item [0-9]+: ")
"""The beginning of a reason that concerns one item of a list."""

KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("empty", r"an empty body$|no line in it$|nothing reported in"),
        ("no_json", r"not (a )?JSON|JSON nested"),
        ("unknown", r"no known device sends this$"),
        ("no_driver", r"looks like .* no driver yet$"),
        ("no_name", r"neither colour nor MAC|no colour of|no MAC of|a device id of more than"),
        ("no_meaning", r"a number without a meaning|fields of the user's own choice|no name in it means"),
        ("no_hydrometer", r"metrics, but not of|a line without a measurement|no temperature of an iRelay"),
        (
            "too_many",
            r"[0-9]+ (readings|Tilts) in|readings of [0-9]+ devices|more than [0-9]+ lines|metrics of more",
        ),
        ("new_device", r"a new device"),
        ("failed", r"the driver failed on it$|it cannot be stored as a reading$"),
        ("no_reading", r"no reading in it, though"),
        (
            "other_format",
            r"no (text format|line of|list of|message of|command|state of|member)|a list of readings instead|"
            r"a list, but not|an iSpindel's JSON|tilts is no object|neither brewpi_devices|a command without",
        ),
        ("no_values", r"neither |no number in it$|no values? |v[0-9] is no "),
    )
)
"""Kinds of reasons, and the beginnings of the reasons that belong to each; the first that fits counts."""

OTHER = "other"

ALL_KINDS = ("refused", "damaged", *(kind for kind, _ in KINDS), OTHER)
"""Every kind that `kind_of` returns."""


def kind_of(item: Quarantined) -> str:
    """Return the kind of reason for which a payload is in quarantine."""
    if item.channel.startswith(REFUSED):
        return "refused"
    if item.channel == DAMAGED:
        return "damaged"
    reason = ITEM.sub("", item.reason, count=1)
    return next((kind for kind, pattern in KINDS if pattern.match(reason)), OTHER)


class QuarantineService:
    """A service that shows payloads in quarantine and tries them again."""

    def __init__(self, store: Store, intake: Intake, notices: StoredNotices) -> None:
        self._store = store
        self._intake = intake
        self._notices = notices

    async def state(self) -> QuarantineState:
        """Return how full quarantine is, its limits, and how many payloads it has lost to them."""
        return await self._store.quarantine.state()

    async def newest(self, limit: int) -> list[Quarantined]:
        """Return the newest payloads, oldest first."""
        return await self._store.quarantine.newest(limit)

    async def find(self, number: int) -> Quarantined:
        """Return the payload with this number; `NotFound` if there is none."""
        item = await self._store.quarantine.get(number)
        if item is None:
            raise NotFound
        return item

    def content(self, item: Quarantined) -> bytes:
        """Return the bytes of a payload as they arrived, of a query alone the query's."""
        return raw_of(payload_of(item))

    def today(self, item: Quarantined) -> str:
        """Describe in words the result of a replay of the payload now."""
        return replayed_today(item)

    def decode(self, item: Quarantined) -> Decoded:
        """Decode a payload by today's drivers; `DriverError` if nothing in it is understood."""
        return self._intake.decode(payload_of(item))

    async def replay(
        self, progress: Progress = no_progress, *, numbers: Sequence[int] = (), device: str | None = None
    ) -> Replayed:
        """Try payloads again: the ones with these numbers, the ones that name a device, or all of them."""
        names = None if device is None else await names_of(self._store, device)
        run = Replay(self._store, self._intake, self._notices)
        done = await run.run(progress, numbers=numbers, names=names)
        self._notices.notify("quarantine")
        return done
