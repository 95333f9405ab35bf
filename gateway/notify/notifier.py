"""Looks at everything that alarms are about, and writes what has changed: on changes, and each minute.

The alarms of one look are one transaction. What is written wakes the page, the channels and other systems by
the topic `alarm`. No failure of the store ends this, or costs a reading.
"""

import asyncio
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.domain.alarm import Alarm
from gateway.domain.target import StateKind
from gateway.errors import StoreUnavailable
from gateway.events import EVERYTHING, Topic, TopicListener
from gateway.insight.records import Insight
from gateway.intake.clock_check import JUMP_S
from gateway.notify.gather import START_S, Gatherer, Watched, device_view
from gateway.notify.house import KEEPER
from gateway.notify.limits import reached_limits
from gateway.notify.rules import look_at_brew, look_at_device, look_at_keeper, look_at_target
from gateway.notify.states import next_states
from gateway.notify.views import BrewView, Finding
from gateway.services.build import Services
from gateway.store.protocols.alarms import AlarmChange, Signs

log = logging.getLogger(__name__)

LOOK_S = 60.0
"""Seconds between two looks at most."""

REST_S, REST_TIMES, REST_MOST_S = 5.0, 400.0, 60.0
"""Seconds between two looks at least, or so many times as long as a look took: many readings are one look.

A reading that comes during a look waits some milliseconds, so looks have to be seldom: no rule is in a hurry.
"""

AGAIN_S = 15 * 60
"""Seconds after which the figures of every brew are asked for again: they age without a reading, too."""

TOLD = 100
"""Alarms of a brew that are remembered, so that nothing is told twice."""

JUMPED_SG = 0.001
"""A change of an earlier gravity by so much is that of a calibration, and no fermentation."""

MINUTE, SETTING = Topic("minute"), Topic("alarm")
"""Topics after which everything is looked at. An alarm of a brew or device that has changed names it."""

PART = "alarms"
"""The name of this part among the gateway's parts."""


class Notifier:
    """Looks, decides and writes. All that it knows beside the store is built anew after a start."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._clock = services.clock
        self._alarms = services.alarms
        self._gatherer = Gatherer(services)
        self._watched = Watched()
        self._brews: dict[int, BrewView] = {}
        self._before: dict[int, Insight] = {}
        self._signs: dict[int, Signs] = {}
        self._told: dict[int, list[Alarm]] = {}
        self._dirty_brews: set[int] = set()
        self._dirty_devices: set[int] = set()
        self._configured: set[int] = set()
        self._target_kinds: dict[str, StateKind] = {}
        self._all_dirty = True
        self._refreshed_at = -math.inf
        self._listening_since = services.clock.monotonic()
        self._offset = services.clock.now() - self._listening_since
        self._known_since = 0
        self._known_until: int | None = None
        self._in_doubt = self._is_lost = False
        self.looks = 0
        """Looks that have ended, for tests and figures."""

    async def run(self) -> None:
        """Look until cancelled."""
        with self._services.notices.follow() as topics:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._tick(topics), name="alarms-minute")
                while True:
                    begun = self._clock.monotonic()
                    await self._try_to_look(topics.take())
                    took = self._clock.monotonic() - begun
                    await self._clock.sleep(min(max(REST_S, REST_TIMES * took), REST_MOST_S))
                    await topics.wait(math.inf)

    async def _tick(self, topics: TopicListener) -> None:
        while True:
            await self._clock.sleep(LOOK_S)
            topics.add(MINUTE)

    async def _try_to_look(self, topics: Sequence[Topic]) -> None:
        stats = self._services.stats
        try:
            if self._is_lost:  # what is stored is not what was known: a damaged file was set aside, perhaps
                await self._alarms.start()
                self._told.clear()
                self._is_lost = False
            await self.look(topics)
        except StoreUnavailable as error:
            self._failed(str(error))
        except Exception as error:  # of any kind: an alarm that fails ends no gateway
            if PART not in stats.in_trouble:
                log.exception("alarms: a look failed")
            self._failed(f"a look failed: {error}")
            self._is_lost = True
        else:
            if PART in stats.in_trouble:
                log.info("alarms: they work again")
                stats.say(PART, "ok")
        self.looks += 1

    def _failed(self, reason: str) -> None:
        self._all_dirty = True
        if PART not in self._services.stats.in_trouble:
            log.warning("alarms: %s; what has changed is looked at again", reason)
        self._services.stats.say(PART, reason, well=False)

    async def look(self, topics: Sequence[Topic] = ()) -> list[Alarm]:
        """Look once; return the alarms that changed."""
        self._note(topics)
        now = int(self._clock.now())
        if self._services.clock_monitor.held_back() is not None:
            # Nothing but the gateway itself: nobody knows how old a reading is.
            self._in_doubt = True
            view = await self._gatherer.keeper(now, None)
            return await self._write(look_at_keeper(view, self._alarms.setting_of, now), now)
        stood_still_s = self._keep_time(now)
        # Time alone changes what rules say, and so does a setting.
        whole = not topics or any(topic in {MINUTE, SETTING} or topic.kind == EVERYTHING for topic in topics)
        brews, devices = await self._refresh(now)
        if whole:
            brews, devices = set(self._brews), set(self._watched.devices)
        findings = [*await self._of_brews(brews, now), *await self._of_devices(devices, now)]
        findings = [await self._without_jump(finding) for finding in findings]
        gone = await self._gone()
        kinds = {name: state.kind for name, state in self._services.targets.states.items()}
        # Not with each reading: these views count what waits in every brew, and look at the disk.
        if whole or kinds != self._target_kinds:
            findings += await self._of_the_gateway(now, gone)
            self._target_kinds = kinds
        written = await self._write(findings, now, gone, stood_still_s)
        self._configured.clear()
        # Only now: a look that failed has not been.
        self._known_until, self._in_doubt = now, False
        return written

    async def _of_the_gateway(self, now: int, gone: dict[int, str]) -> list[Finding]:
        """Look at targets, channels and the gateway itself; note alarms of targets that are `gone`."""
        findings: list[Finding] = []
        targets = await self._gatherer.targets(now)
        names = {target.name for target in targets}
        for alarm in self._alarms.open:
            if alarm.scope == "target" and alarm.subject not in names:
                gone[alarm.id] = f"{alarm.subject} was removed."
        for target in targets:

            def of_target(rule: str, name: str = target.name) -> Mapping[str, Any] | None:
                return self._alarms.setting_of(rule, target=name)

            finding = look_at_target(target, of_target, now)
            if finding.holds and target.kind != "blocked" and self._listening_s < START_S:
                # What has waited while the gateway was off is on its way now.
                finding = replace(finding, holds=None)
            findings.append(finding)
        keeper = await self._gatherer.keeper(now, self._watched)
        return findings + look_at_keeper(keeper, self._alarms.setting_of, now)

    @property
    def _listening_s(self) -> float:
        return self._clock.monotonic() - self._listening_since

    def _note(self, topics: Sequence[Topic]) -> None:
        for topic in topics:
            if topic.kind == EVERYTHING:
                self._all_dirty = True
            elif topic.kind in {"reading", "device", "brew", "insight"}:
                if topic.brew is not None:
                    self._dirty_brews.add(topic.brew)
                if topic.device is not None:
                    self._dirty_devices.add(topic.device)
                    if topic.kind == "device":
                        self._configured.add(topic.device)
                if topic.brew is None and topic.device is None:
                    self._all_dirty = True

    def _keep_time(self, now: int) -> int:
        """Return for how many seconds, by the wall clock, pending alarms have waited for nothing."""
        running = self._clock.monotonic()
        offset = now - running
        jumped, self._offset = abs(offset - self._offset) > JUMP_S, offset
        if not (jumped or self._in_doubt):
            return 0
        # As after a start: readings that were on their way come first.
        self._listening_since, self._known_since, self._all_dirty = running, now, True
        return 0 if self._known_until is None else now - self._known_until

    async def _refresh(self, now: int) -> tuple[set[int], set[int]]:
        """Ask again for what has changed; return the brews and the devices."""
        watched = await self._gatherer.watched()
        running = self._clock.monotonic()
        every = self._all_dirty or running - self._refreshed_at >= AGAIN_S
        if every:
            self._gatherer.forget_recipes()
        devices = {id for id in self._dirty_devices if id in watched.devices}
        brews = {id for id in self._dirty_brews if id in watched.brews}
        brews |= {entry.session.id for id in devices if (entry := watched.brew_of(watched.devices[id]))}
        brews |= watched.brews.keys() - self._brews.keys()
        if every:
            brews, devices = set(watched.brews), set(watched.devices)
        devices |= {device.id for device in watched.devices.values() if device.session_id in brews}
        devices |= watched.devices.keys() - self._signs.keys()
        signs = {**self._signs, **await self._gatherer.signs(devices, now)}
        self._signs = {id: found for id, found in signs.items() if id in watched.devices}
        insights = await self._services.insight.of_all([watched.brews[id].session for id in sorted(brews)])
        views = {id: view for id, view in self._brews.items() if id in watched.brews}
        for id, insight in insights.items():
            views[id] = await self._gatherer.brew(watched.brews[id], insight, self._signs)
            if id not in self._told:
                self._told[id] = await self._services.store.alarms.told("brew", str(id), TOLD)
        self._before = {id: view.insight for id, view in self._brews.items()}
        self._brews, self._watched = views, watched
        self._told = {id: told for id, told in self._told.items() if id in watched.brews}
        self._all_dirty = False
        self._dirty_brews.clear()
        self._dirty_devices.clear()
        if every:
            self._refreshed_at = running
        return brews, devices

    async def _of_brews(self, ids: set[int], now: int) -> list[Finding]:
        findings: list[Finding] = []
        for id in sorted(ids):
            await asyncio.sleep(0)  # readings go first
            view = self._brews[id]
            asks = self._watched.brews[id].session.may_be_asked(now)

            def setting_of(rule: str, id: int = id) -> Mapping[str, Any] | None:
                return self._alarms.setting_of(rule, brew=id)

            findings += look_at_brew(view._replace(asks=asks), setting_of, self._told.get(id, []), now)
        return findings

    async def _of_devices(self, ids: set[int], now: int) -> list[Finding]:
        findings: list[Finding] = []
        for device_id in sorted(ids):
            await asyncio.sleep(0)
            device = self._watched.devices[device_id]
            signs = self._signs.get(device.id)
            if signs is None or (not signs.times and self._watched.brew_of(device) is None):
                continue
            view = device_view(device, self._watched, signs, now, self._listening_s)
            brew = view.session_id if view.brew else None

            def setting_of(
                rule: str, id: int = device.id, brew: int | None = brew
            ) -> Mapping[str, Any] | None:
                return self._alarms.setting_of(rule, brew=brew, device=id)

            findings += look_at_device(view, setting_of, now)
        return findings

    async def _without_jump(self, finding: Finding) -> Finding:
        """Return what was reached by another calibration alone as history: in the beer nothing happened."""
        if finding.rule != "reached" or finding.holds is not True:
            return finding
        id = int(finding.subject)
        before, view = self._before.get(id), self._brews[id]
        devices = [device for device in self._watched.devices.values() if device.session_id == id]
        if not any(device.reprocessing or device.id in self._configured for device in devices):
            return finding
        if before is None or before.sg is None or any(a.key == finding.key for a in self._alarms.open):
            return finding
        # Of the readings of that time, by what is known now: late readings are no other calibration.
        session = self._watched.brews[id].session
        then = await self._services.insight.at(session, before.now, arrived_by=before.now)
        limits = finding.evidence["limits"]
        if then.sg is None or abs(then.sg - before.sg) < JUMPED_SG:
            return finding
        if reached_limits(view._replace(insight=before), limits) or not reached_limits(
            view._replace(insight=then), limits
        ):
            return finding
        return replace(finding, note=True, late_until=finding.since)

    async def _gone(self) -> dict[int, str]:
        """Return why alarms end whose subject is no more, by their id."""
        gone: dict[int, str] = {}
        for alarm in self._alarms.open:
            if alarm.scope == "brew" and int(alarm.subject) not in self._watched.brews:
                gone[alarm.id] = await self._end_of(int(alarm.subject))
            elif alarm.scope == "device":
                device = self._watched.devices.get(int(alarm.subject))
                if device is None:
                    gone[alarm.id] = "The device was removed."
                elif alarm.rule == "silent" and self._watched.brew_of(device) is None:
                    gone[alarm.id] = "The device is in no open brew any more."
            elif alarm.scope == "gateway" and alarm.subject not in KEEPER:
                gone[alarm.id] = f"{alarm.subject} was removed."
        return gone

    async def _end_of(self, session_id: int) -> str:
        session = await self._services.store.sessions.get(session_id)
        if session is None:
            return "The brew was deleted."
        if session.ended_at is not None:
            return "The brew was ended."
        return (
            f"The brew is over: {session.phase}." if session.is_over else "No device is in the brew any more."
        )

    async def _write(
        self,
        findings: Sequence[Finding],
        now: int,
        gone: Mapping[int, str] | None = None,
        stood_still_s: int = 0,
    ) -> list[Alarm]:
        known = {alarm.key for alarm in self._alarms.open}
        begins = any(finding.holds and finding.key not in known for finding in findings)
        waits = any(alarm.state == "pending" for alarm in self._alarms.open)
        recent = await self._alarms.recent() if begins or waits else []

        def decide(alarms: Sequence[Alarm]) -> list[AlarmChange]:
            return next_states(
                alarms, recent, findings, now,
                gone=gone, known_since=self._known_since, stood_still_s=stood_still_s,
            )  # fmt: skip

        written = await self._alarms.apply(decide)
        for alarm in written:
            if alarm.scope == "brew" and alarm.fired_at is not None and alarm.rule != "temperature":
                id = int(alarm.subject)
                if id in self._told:
                    others = [one for one in self._told[id] if one.id != alarm.id]
                    self._told[id] = [alarm, *others][:TOLD]
            if alarm.fired_at == now or alarm.cleared_at == now:
                log.info("alarms: %s %s: %s", alarm.rule, "over" if alarm.cleared_at else "fires", alarm.text)
        return written
