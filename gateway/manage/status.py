"""`GET /manage/status`: everything a dashboard needs, in counts that add up, and each part in words."""

import asyncio
import dataclasses
from collections.abc import Mapping

from pydantic import ConfigDict

from gateway import __version__, logs
from gateway.domain.texts import shown_url
from gateway.domain.totals import Storage, Totals
from gateway.http.endpoint import AnswerModel, Call, Query
from gateway.stats import Stats
from gateway.store.protocol import Store
from gateway.store.records import StoreCondition

REST_FACTOR = 20.0
"""The pause after a count of the store, in times of its length: counting a large store takes seconds.

During the pause the last count is shown.
"""


class SinceStart(AnswerModel):
    """Counts since this process started; `received` counts deliveries.

    accepted = stored + duplicates + thinned + quarantined + waiting + refused + not_stored, in readings; a
    delivery that was not understood counts as one. `waiting` went into the inbox, `refused` had a refused
    name.
    """

    received: int
    accepted: int
    stored: int
    duplicates: int
    thinned: int
    quarantined: int
    waiting: int
    refused: int
    not_stored: int
    imported: int
    forwarded: int
    refused_upstream: int


class Connections(AnswerModel):
    """HTTP connections: the number of open ones, and counts since the start.

    `pages_refused` are reports of web pages, `hosts_refused` requests for a name that is not this machine's.
    """

    open: int
    refused: int
    cut: int
    unreadable_requests: int
    wrong_keys: int
    pages_refused: int
    hosts_refused: int


class MqttState(AnswerModel):
    """The MQTT listener: open connections, messages by QoS, packets that waited, refusals by reason.

    `shared_ids` are client ids that devices of several addresses used at once, with the addresses.
    """

    model_config = ConfigDict(from_attributes=True)

    connections: int
    messages: list[int]
    held: int
    refused: dict[str, int]
    shared_ids: dict[str, list[str]]


class StoredTotals(AnswerModel):
    """All readings: stored = unassigned + kept_here + mirrored + without_target + to_forward."""

    model_config = ConfigDict(from_attributes=True)

    stored: int
    unassigned: int
    kept_here: int
    mirrored: int
    without_target: int
    to_forward: int


class TargetStatus(AnswerModel):
    """A target: readings = forwarded + refused + pending + not_sent + superseded.

    `oldest_at` is the arrival of the first waiting reading (Unix seconds), null if none waits.
    """

    model_config = ConfigDict(from_attributes=True)

    name: str
    state: str
    readings: int
    forwarded: int
    refused: int
    pending: int
    not_sent: int
    superseded: int
    oldest_at: int | None


class QuarantineNow(AnswerModel):
    """Contents of quarantine; `pushed_out` counts payloads that gave way to newer ones."""

    items: int
    bytes: int
    pushed_out: int


class InboxNow(AnswerModel):
    """Contents of the inbox: devices whose readings wait for the owner's word, and these readings."""

    names: int
    readings: int
    bytes: int


class UnreadTopics(AnswerModel):
    """Counts of MQTT messages without readings, by topic; `others` counts the messages of further topics."""

    model_config = ConfigDict(from_attributes=True)

    messages: dict[str, int]
    others: int


class Sqlite(AnswerModel):
    """The database library; `wal_reset_bug` is true if it has a bug that is known to lose pages."""

    model_config = ConfigDict(from_attributes=True)

    version: str
    wal_reset_bug: bool
    words: str


class Disk(AnswerModel):
    """Sizes in bytes; `reusable_bytes` of the database are free for new readings.

    `quota_bytes` is the quota in force; once it is full no reading is taken.
    """

    model_config = ConfigDict(from_attributes=True)

    database_bytes: int
    reusable_bytes: int
    wal_bytes: int
    disk_bytes: int
    free_bytes: int
    quota_bytes: int
    quota_full: bool


class Status(AnswerModel):
    """The gateway's state; `totals` and `targets` were counted at `counted_at` (Unix seconds).

    `in_trouble` names the parts that do not do their work. `task_errors` counts errors that no part handled.
    """

    message: str = "success"
    version: str
    uptime_s: int
    counted_at: int
    since_start: SinceStart
    totals: StoredTotals
    targets: list[TargetStatus]
    quarantine: QuarantineNow
    inbox: InboxNow
    connections: Connections
    mqtt: MqttState
    parts: dict[str, str]
    in_trouble: list[str]
    unread_topics: UnreadTopics
    sqlite: Sqlite
    disk: Disk
    log_lines_left_out: int
    task_errors: int


@dataclasses.dataclass(frozen=True, slots=True)
class CountedTotals:
    """Totals of the store, counted at `at`. Times are Unix seconds.

    `oldest` is the arrival of each target's first waiting reading, by the target's URL.
    """

    totals: Totals
    oldest: Mapping[str, int | None]
    at: float


class Watch:
    """The source of the status; `started` is the clock's monotonic time at the start."""

    def __init__(self, started: float) -> None:
        self._started = started
        self._counted: CountedTotals | None = None
        self._rests_until = float("-inf")
        self._counting = asyncio.Lock()

    async def status(self, call: Call[Query, None]) -> Status:
        """Return the gateway's state."""
        stats, store, clock = call.services.stats, call.store, call.services.clock
        counted = await self._count(call, store, stats)
        quarantine, storage = await store.quarantine.state(), await store.totals.storage()
        inbox, condition = await store.inbox.state(), await store.upkeep.condition()
        return Status(
            version=__version__,
            uptime_s=int(clock.monotonic() - self._started),
            counted_at=int(counted.at),
            since_start=since_start(stats),
            totals=StoredTotals.model_validate(counted.totals),
            targets=_targets(counted, stats.parts),
            quarantine=QuarantineNow(
                items=quarantine.items, bytes=quarantine.size, pushed_out=quarantine.pushed_out
            ),
            inbox=InboxNow(names=inbox.names, readings=inbox.readings, bytes=inbox.size),
            connections=_connections(stats),
            mqtt=MqttState.model_validate(stats.mqtt),
            parts=dict(stats.parts),
            in_trouble=sorted(stats.in_trouble),
            unread_topics=UnreadTopics.model_validate(stats.unread),
            sqlite=Sqlite.model_validate(store.upkeep.engine()),
            disk=_disk(storage, condition),
            log_lines_left_out=logs.left_out(),
            task_errors=stats.task_errors,
        )

    async def _count(self, call: Call[Query, None], store: Store, stats: Stats) -> CountedTotals:
        clock = call.services.clock
        async with self._counting:
            began = clock.monotonic()
            if self._counted is None or began >= self._rests_until:
                totals = await store.totals.totals(stats.targets)
                overview = await call.services.sending.overview()
                oldest = {each.target.url: each.oldest_at for each in overview}
                self._counted = CountedTotals(totals, oldest, clock.now())
                ended = clock.monotonic()
                self._rests_until = ended + REST_FACTOR * (ended - began)
            return self._counted


def since_start(stats: Stats) -> SinceStart:
    """Return the counters of readings and deliveries."""
    return SinceStart.model_validate({name: getattr(stats, name) for name in SinceStart.model_fields})


def _connections(stats: Stats) -> Connections:
    return Connections(
        open=stats.connections,
        refused=stats.connections_refused,
        cut=stats.connections_cut,
        unreadable_requests=stats.unreadable,
        wrong_keys=stats.wrong_keys,
        pages_refused=stats.pages_refused,
        hosts_refused=stats.hosts_refused,
    )


def _targets(counted: CountedTotals, parts: Mapping[str, str]) -> list[TargetStatus]:
    return [
        TargetStatus.model_validate(
            {
                **dataclasses.asdict(target),
                "name": name,
                "state": parts.get(f"upstream {name}", "not running"),
                "oldest_at": counted.oldest.get(target.name),
            }
        )
        for target in counted.totals.targets
        for name in [shown_url(target.name) if "://" in target.name else target.name]
    ]


def _disk(storage: Storage, condition: StoreCondition) -> Disk:
    quota = {"quota_bytes": condition.quota_bytes, "quota_full": condition.quota_full}
    return Disk.model_validate(dataclasses.asdict(storage) | quota)
