"""The views that rules look at, made of what the services know. It reads, and writes nothing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import Alarm
from gateway.domain.brewsession import BrewSession, SessionEntry
from gateway.domain.device import Device
from gateway.domain.recipe import Recipe
from gateway.domain.target import StateKind
from gateway.domain.units import PLAUSIBLE_SG
from gateway.insight.records import Insight
from gateway.notify.house import usual_gap
from gateway.notify.views import BrewView, DeviceView, KeeperView, TargetView, Trouble
from gateway.services.build import Services
from gateway.services.channels import ChannelState
from gateway.services.upkeep import NEARLY_FULL
from gateway.store.protocols.alarms import QuarantinedSource, Signs

COLD_YEAST_C = 15.0
"""A yeast whose middle temperature is below ferments a lager, and begins later."""

START_S = 10 * 60
"""Seconds, beside one interval, after which a gateway that has begun to listen calls a device silent."""

INTERVAL_S = 900
"""The interval of a device, or of a target that shows the latest reading only, of which nobody knows more."""

CLOCK_S = 3_600
"""Seconds of doubt after which the clock needs a person."""

BACKUP_OLD_S = 2 * 86_400
"""A nightly backup so old is missing."""

NOT_UNDERSTOOD = 2
"""Payloads after the last reading of a device that nobody understood: one may be a disturbance."""

QUARANTINE_S = 86_400
"""Seconds in which such payloads are news."""

QUARANTINED = 200
"""Newest payloads in quarantine that are looked at."""

BACKUP_PART = "nightly backup"


@dataclass(slots=True)
class Watched:
    """Open brews with a device in them, and all devices, by their ids."""

    brews: dict[int, SessionEntry] = field(default_factory=dict)
    devices: dict[int, Device] = field(default_factory=dict)

    def brew_of(self, device: Device) -> SessionEntry | None:
        """Return the open brew that a device is in."""
        return None if device.session_id is None else self.brews.get(device.session_id)


class RecipeFacts:
    """What rules need of a recipe: its final gravity (SG), and the limits (°C) of its yeast."""

    __slots__ = ("fg", "hi", "lo")

    def __init__(self, recipe: Recipe | None) -> None:
        self.fg = self.lo = self.hi = None
        if recipe is None:
            return
        fg = _number(recipe.content.record.get("fg"))
        if fg is not None and PLAUSIBLE_SG[0] <= fg <= PLAUSIBLE_SG[1]:
            self.fg = fg
        for yeast in recipe.content.ingredients.get("yeasts", ()):
            lo, hi = _number(yeast.get("templo")), _number(yeast.get("temphi"))
            if lo is not None and hi is not None and -5 <= lo < hi <= 50:
                self.lo, self.hi = lo, hi
                break

    @property
    def is_cold(self) -> bool:
        """Whether its yeast works in the cold."""
        return self.lo is not None and self.hi is not None and (self.lo + self.hi) / 2 < COLD_YEAST_C


class Gatherer:
    """Makes views. It remembers what the store need not be asked again."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._store = services.store
        self._recipes: dict[int, RecipeFacts] = {}
        self._failing: dict[str, int] = {}
        self._refused: dict[str, tuple[int, int | None]] = {}
        self._doubted_at: float | None = None
        self._failed_at: int | None = None

    async def watched(self) -> Watched:
        """Return what there is to watch: not a brew without a device, such as a copy of another service."""
        devices = {device.id: device for device in await self._store.devices.all()}
        ids = sorted({device.session_id for device in devices.values() if device.session_id is not None})
        entries = await self._store.sessions.entries(ids) if ids else []
        is_open = (entry for entry in entries if entry.session.ended_at is None and not entry.session.is_over)
        return Watched({entry.session.id: entry for entry in is_open}, devices)

    async def signs(
        self, ids: Collection[int], now: int, *, arrived_by: int | None = None
    ) -> Mapping[int, Signs]:
        """Return the signs of devices."""
        return await self._store.alarms.signs(sorted(ids), now, arrived_by=arrived_by) if ids else {}

    async def brew(self, entry: SessionEntry, insight: Insight, signs: Mapping[int, Signs]) -> BrewView:
        """Return the view of a brew."""
        session = entry.session
        if session.recipe_id not in self._recipes:
            recipe = await self._store.recipes.get(session.recipe_id) if session.recipe_id else None
            self._recipes[session.recipe_id] = RecipeFacts(recipe)
        facts = self._recipes[session.recipe_id]
        lead = await self._services.insight.leading_device(session.id)
        return BrewView(
            session.id,
            account_of(session),
            title_of(entry),
            insight,
            None if lead is None else signs.get(lead),
            recipe_fg=facts.fg,
            lo=facts.lo,
            hi=facts.hi,
            cold_yeast=facts.is_cold,
            asks=session.may_be_asked(insight.now),
        )

    def forget_recipes(self) -> None:
        """Ask for recipes again."""
        self._recipes.clear()

    async def targets(self, now: int) -> list[TargetView]:
        """Return the views of all targets, and of all channels of messages."""
        views = []
        for sending in await self._services.sending.overview():
            name = sending.target.name
            before, refused_at = self._refused.get(name) or self._refused_before(name, sending.refused)
            if sending.refused > before:
                refused_at = now
            self._refused[name] = sending.refused, refused_at
            oldest_at, interval_s = sending.oldest_at, None
            if sending.target.latest:
                # Nothing waits there for long: what is not the latest reading is passed over.
                interval_s = int(sending.target.options.get("min_interval_s") or INTERVAL_S)
                oldest_at = self._failing.setdefault(name, now) if sending.state == "retries" else None
            if sending.state != "retries":
                self._failing.pop(name, None)
            counts = sending.refused, refused_at, interval_s
            views.append(TargetView(name, sending.state, sending.reason, oldest_at, *counts))
        for state in await self._services.channels.states():
            views.append(self._channel(state))
        return views

    def _channel(self, state: ChannelState) -> TargetView:
        name, since = f"channel {state.channel.name}", state.failing_since
        kind: StateKind = "paused" if state.channel.paused else "well"
        told = self._told(name)
        if told is not None and told.fired_at is not None and (state.sent_at or 0) < told.fired_at:
            # After a start nobody knows whether it works again, until it takes a message.
            kind = "held" if kind == "well" else kind
            since = min(
                (at for at in (since, told.evidence.get("oldest_at")) if at is not None), default=None
            )
        if state.trouble and not state.channel.paused:
            kind = "blocked" if state.blocked else "retries"
        return TargetView(name, kind, state.trouble, since)

    def _refused_before(self, name: str, refused: int) -> tuple[int, int | None]:
        """Return how many readings a target had refused, and when: after a start, as its alarm knows it."""
        told = self._told(name)
        if told is None or told.evidence.get("refused_at") is None:
            return refused, None
        return told.evidence.get("refused", refused), told.evidence["refused_at"]

    def _told(self, name: str) -> Alarm | None:
        """Return the alarm that says that a target, or a channel, takes nothing."""
        key = "sending", "target", name
        return next((alarm for alarm in self._services.alarms.open if alarm.key == key), None)

    async def keeper(self, now: int, watched: Watched | None) -> KeeperView:
        """Return what is wrong with the gateway itself; without `watched` nothing of its devices."""
        troubles: dict[str, Trouble | None] = {}
        condition, storage = await self._store.upkeep.condition(), await self._store.totals.storage()
        used = storage.database_bytes + storage.wal_bytes - storage.reusable_bytes
        troubles["disk"] = troubles["database"] = None
        if condition.trouble is not None:
            troubles["disk"] = Trouble(now, f"Nothing can be stored: {condition.trouble}.")
        elif condition.quota_full or used > NEARLY_FULL * condition.quota_bytes:
            troubles["disk"] = Trouble(
                now, "The room for readings is nearly used up: at the quota none is taken."
            )
        if condition.aside:
            found_at = condition.damages[-1].found_at if condition.damages else now
            kept = condition.aside[-1]
            text = f"The database was damaged and is kept as {kept}: look at the disk, then delete it."
            troubles["database"] = Trouble(found_at, text)
        troubles["backup"] = self._backup(now)
        troubles["clock"] = self._clock(now)
        if watched is not None:
            troubles["quarantine"] = await self._quarantine(now, watched)
        return KeeperView(troubles)

    def _backup(self, now: int) -> Trouble | None:
        stats = self._services.stats
        words = stats.parts.get(BACKUP_PART, "")
        if BACKUP_PART in stats.in_trouble and "FAILED" in words:
            self._failed_at = self._failed_at or now
            return Trouble(self._failed_at, f"The nightly backup fails: {words}.")
        self._failed_at = None
        if stats.backed_up_at is not None and now - stats.backed_up_at > BACKUP_OLD_S:
            days = (now - stats.backed_up_at) / 86_400
            return Trouble(int(stats.backed_up_at), f"The newest nightly backup is {days:.0f} days old.")
        return None

    def _clock(self, now: int) -> Trouble | None:
        doubt = self._services.clock_monitor.doubt
        if doubt is None:
            self._doubted_at = None
            return None
        # By a clock that never jumps: the other one is what is in doubt.
        running = self._services.clock.monotonic()
        self._doubted_at = running if self._doubted_at is None else self._doubted_at
        if running - self._doubted_at <= CLOCK_S:
            return None
        return Trouble(now, f"The clock is in doubt for more than an hour: {doubt.reason}.")

    async def _quarantine(self, now: int, watched: Watched) -> Trouble | None:
        news = [
            item
            for item in await self._store.alarms.quarantined(QUARANTINED)
            if now - item.received_at <= QUARANTINE_S
        ]
        if not news:
            return None
        heard = await self._store.alarms.heard([item.source for item in news])
        return not_understood(news, heard)


def not_understood(
    news: Collection[QuarantinedSource], heard: Mapping[str, tuple[int, int]]
) -> Trouble | None:
    """Return the trouble of devices that were understood; `heard` are device and last arrival by source."""
    by_source: dict[str, list[QuarantinedSource]] = {}
    for item in news:
        if item.source in heard and item.received_at > heard[item.source][1]:
            by_source.setdefault(item.source, []).append(item)
    worst = max(by_source.values(), key=len, default=[])
    if len(worst) < NOT_UNDERSTOOD:
        return None
    text = (
        f"A device at {worst[0].source} was understood before, and its last {len(worst)} messages were not: "
        f"{worst[0].reason}."
    )
    return Trouble(min(item.received_at for item in worst), text)


def device_view(
    device: Device, watched: Watched, signs: Signs, now: int, listening_s: float | None
) -> DeviceView:
    """Return the view of a device. The gateway has listened for `listening_s`, None for long enough."""
    entry = watched.brew_of(device)
    interval_s = device.settings.interval_s or device.interval_s
    wait_s = (interval_s or usual_gap(signs.times) or INTERVAL_S) + START_S
    return DeviceView(
        device.id,
        None if entry is None else account_of(entry.session),
        device.title or device.stable_id,
        device.family,
        signs,
        session_id=device.session_id,
        brew="" if entry is None else title_of(entry),
        in_brew_since=0 if entry is None else entry.session.created_at,
        interval_s=interval_s,
        quiet_until=0 if listening_s is None or listening_s >= wait_s else int(now + wait_s - listening_s),
    )


def account_of(session: BrewSession) -> int | None:
    """Return the account that an alarm about a brew belongs to: None for the owner's."""
    return None if session.account_id == OWNER_ID else session.account_id


def title_of(entry: SessionEntry) -> str:
    """Return the name of a brew in a sentence: its batch code, and the title of its recipe."""
    return " ".join(part for part in (entry.session.batchcode, entry.recipe_title) if part)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
