"""Try payloads in quarantine again: a later version, or other settings, may understand them."""

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.device import find_device
from gateway.domain.payload import Payload
from gateway.domain.progress import Progress
from gateway.domain.quarantined import Quarantined, no_payload
from gateway.domain.report import Report
from gateway.domain.times import HALF_MS
from gateway.drivers import BY_NAME, decode
from gateway.errors import DriverError, NotFound, StoreUnavailable
from gateway.events import StoredNotices
from gateway.intake.clock_check import ArrivalTime
from gateway.intake.deduplicate import (
    Deduplicator,
    delivery_key,
    delivery_window_s,
    find_stored,
    is_news,
    raw_of,
)
from gateway.intake.devices import DEVICES_MAX
from gateway.intake.inbox import Placed
from gateway.intake.intake import NO_READING, Intake
from gateway.intake.normalise import AHEAD_S, OLDEST_S, time_of
from gateway.store.protocol import Store

log = logging.getLogger(__name__)

REFUSED = "forward "
"""The beginning of the channel of a reading that a target refused; the payload is the reading."""

PAGE_READINGS, PAGE_ITEMS = 200, 100

Moment = tuple[str | None, int]
"""Identifies a reading within its payload: the device's local time, else Unix seconds."""


def payload_of(item: Quarantined) -> Payload:
    """Make the payload as it arrived, with its arrival time; a key in its path was never stored."""
    return Payload(
        body=item.body,
        received_at=(item.received_at + HALF_MS) / 1000,
        channel=item.channel,
        driver=item.driver,
        source=item.source,
        query=item.query,
        label=item.label,
        hint=item.hint,
    )


@dataclass(frozen=True, slots=True)
class Replayed:
    """The number of payloads understood and of payloads left, and the reasons with their counts."""

    understood: int
    left: int
    reasons: dict[str, int]


class Replay:
    """A run through quarantine, oldest payload first.

    A run remembers its payloads, to find copies and readings that follow each other too closely.
    """

    def __init__(self, store: Store, intake: Intake, notices: StoredNotices) -> None:
        self._store = store
        self._intake = intake
        self._notices = notices
        self._recent = Deduplicator()
        self._stored_at: dict[str, float] = {}

    async def run(
        self, progress: Progress, *, numbers: Sequence[int] = (), names: set[str] | None = None
    ) -> Replayed:
        """Try again the payloads with these numbers, or of a device with one of these names, or all payloads.

        Raise `NotFound`, and try nothing, if one of the numbers has no payload.
        """
        quarantine = self._store.quarantine
        named = [await self._named(number) for number in sorted(set(numbers))]
        total = len(named) or (await quarantine.state()).items
        understood = done = place = 0
        reasons: Counter[str] = Counter()
        while page := named if numbers else await quarantine.after(place, PAGE_ITEMS):
            settled: list[int] = []
            try:
                for item in page:
                    done += 1
                    if names is None or is_of(item, self._reports(item), names):
                        reason = await self.settle(item)
                        if reason is None:
                            settled.append(item.id)
                        else:
                            reasons[reason] += 1
                    progress(done, max(done, total), "payloads looked at")
            finally:
                # Shielded from a caller that leaves, because a reading and its payload would both be there.
                await quarantine.remove(settled)
            understood += len(settled)
            if numbers:
                break
            place = page[-1].id
        return Replayed(understood, reasons.total(), dict(reasons.most_common()))

    async def _named(self, number: int) -> Quarantined:
        item = await self._store.quarantine.get(number)
        if item is None:
            raise no_payload(number)
        return item

    def _reports(self, item: Quarantined) -> list[Report]:
        if item.channel.startswith(REFUSED):
            return []
        try:
            return self._intake.decode(payload_of(item)).reports
        except DriverError:
            return []

    async def settle(self, item: Quarantined) -> str | None:
        """Store a payload's readings; return why it must stay in quarantine, None if it can be removed.

        A reading that is stored already is not stored again, wherever an earlier attempt ended.
        """
        if item.channel.startswith(REFUSED):
            if (oid := _oid(item)) and await self._store.quarantine.send_again(item.id, oid):
                self._notices.notify("quarantine")
                return None
            return "the reading is gone, or in no brew session"
        if await self._store.retiming.payload_waits(item.received_at):
            return "it came while the clock was not known; try again once it is"
        if not self._intake.devices.loaded:
            await self._intake.devices.load()
        payload = payload_of(item)
        try:
            decoded = self._intake.decode(payload)
            if not decoded.reports and item.reason == NO_READING:
                return NO_READING
            inbox, devices = self._intake.inbox, self._intake.devices
            found = await inbox.sort(payload, decoded.reports, self._intake.adoption)
            # No shares of sources here, because it is the owner who wants the readings.
            if devices.full() and any(devices.get(report.device_key) is None for _, report in found.taken):
                return f"a new device beyond the {DEVICES_MAX} that register themselves"
            await self.take_all(payload, found.taken)
            # Quarantine is no way round the inbox: what has to wait goes there, as if it arrived now.
            await inbox.take(payload, ArrivalTime(payload.received_at), found.waiting, self._recent)
        except DriverError as error:
            return str(error)
        except StoreUnavailable:
            raise
        except Exception:  # one that the store never takes must not keep the others in quarantine
            log.exception("replay: number %d cannot be stored as a reading", item.id)
            return "it cannot be stored as a reading"
        return decoded.trouble

    async def take_all(self, payload: Payload, reports: Sequence[Placed]) -> int:
        """Store the reports that are not stored; return their number. Duplicates stay duplicates."""
        keys = [report.device_key for _, report in reports if report.raw is None]
        held = {key: await self._held(payload, key, keys.count(key) > 1) for key in dict.fromkeys(keys)}
        parts = await find_stored(self._store, payload, [report for _, report in reports])
        stored = 0
        for place, report in reports:
            if (report.device_key, report.raw) in parts or await self._is_held(payload, report, held):
                self._stored_at[report.device_key] = payload.received_at
                self._recent.remember(delivery_key(payload, report, place), payload.received_at, None)
            elif not self._is_too_much(payload, report, place) and await self._is_first(payload, report):
                await self._take(payload, report, place)
                stored += 1
        return stored

    async def _is_first(self, payload: Payload, report: Report) -> bool:
        """Return False for a message that a broker had kept, or sent again, if its reading is stored."""
        if payload.retained and not await is_news(self._store, payload, report):
            return False
        if not payload.redelivered or payload.delivery is None:
            return True
        raw, readings = raw_of(payload, report), self._store.readings
        return not await readings.holds_delivery(report.device_key, raw, payload.delivery)

    async def _is_held(
        self, payload: Payload, report: Report, held: Mapping[str, set[Moment] | None]
    ) -> bool:
        if report.raw is not None:
            arrival = int(payload.received_at * 1000)
            return await self._store.payloads.holds(report.device_key, report.raw, arrival)
        moments = held[report.device_key]
        if moments is None:
            return True
        local = report.device_time
        return (local, 0 if local is not None else time_of(report, payload.received_at)[0]) in moments

    async def _held(self, payload: Payload, key: str, several: bool) -> set[Moment] | None:
        """Find the device's stored readings of this payload; None if the payload's only reading is stored."""
        raw, arrival = raw_of(payload), int(payload.received_at * 1000)
        if not await self._store.payloads.holds(key, raw, arrival):
            return set()
        known = self._intake.devices.get(key)
        if not several or known is None:
            return None
        found: set[Moment] = set()
        place = int(payload.received_at - OLDEST_S) - 1, -1
        while page := await self._store.payloads.page(known.device.id, place, PAGE_READINGS):
            for sent in page:
                if sent.raw == raw and sent.reading.received_at == arrival:
                    local = json.loads(sent.reading.facts or "{}").get("device_time_local")
                    found.add((local, 0 if local else sent.reading.created_at))
            place = page[-1].reading.created_at, page[-1].seq
            if place[0] > payload.received_at + AHEAD_S:
                break
        return found

    def _is_too_much(self, payload: Payload, report: Report, place: int) -> bool:
        """Return whether this run has seen a copy, or a reading so recent that the family keeps only that."""
        at, key = payload.received_at, delivery_key(payload, report, place)
        known = self._intake.devices.get(report.device_key)
        window = delivery_window_s(report, known, at)
        before = self._stored_at.get(report.device_key)
        spacing_s = BY_NAME[report.family].spacing_s
        return self._recent.check(key, at, window)[0] or (before is not None and 0 <= at - before < spacing_s)

    async def _take(self, payload: Payload, report: Report, place: int) -> None:
        measured_at, _ = time_of(report, payload.received_at)
        latest = await self._store.payloads.latest_at(report.device_key)
        late = latest is not None and measured_at < latest
        await self._intake.store_report(payload, report, late=late)
        self._stored_at[report.device_key] = payload.received_at
        self._recent.remember(delivery_key(payload, report, place), payload.received_at, None)
        stored = self._intake.devices.get(report.device_key)
        self._notices.notify("reading", device=stored.device.id if stored is not None else None)


async def names_of(store: Store, device: str) -> set[str]:
    """Return the names, ids and keys of a device.

    If there is no such device yet, as with most devices in quarantine, return the word itself.
    """
    try:
        found = find_device(await store.devices.all(), device)
    except NotFound:
        return {device}
    others = [word for alias in found.aliases for word in (alias.key, alias.stable_id)]
    return {found.key, found.stable_id, found.name, *others} - {""}


def replayed_today(item: Quarantined) -> str:
    """Describe in words the result of a replay of the payload now."""
    if item.channel.startswith(REFUSED):
        return f"`quarantine replay {item.id}` puts it into the forwarding queue again"
    try:
        decoded = decode(payload_of(item))
    except DriverError as error:
        return f"not understood: {error}"
    except Exception as error:  # a mistake of ours must not hide the payload that shows it
        return f"the driver fails on it: {error!r}"
    reports = "; ".join(map(_in_words, decoded.reports)) or "understood, and holds no measurement"
    return reports if decoded.trouble is None else f"{reports}; not understood: {decoded.trouble}"


def _in_words(report: Report) -> str:
    gravity = f"gravity {report.gravity} {report.gravity_unit or '(unit not sent)'}"
    temp = f"temp {report.temp} {report.temp_unit or '(unit not sent)'}"
    values = [report.gravity and gravity, report.temp and temp, " ".join(report.flags)]
    return (
        f"a reading of {report.device_key} {report.name!r}: {', '.join(filter(None, values)) or 'no value'}"
    )


def is_of(item: Quarantined, reports: Iterable[Report], names: set[str]) -> bool:
    """Return whether a payload belongs to a device with one of these names, ids or keys, or mentions one.

    `reports` are decoded from the payload by today's drivers: mostly none.
    """
    if any({report.device_key, report.stable_id, report.name} & names for report in reports):
        return True
    said = (item.body.decode("utf-8", "replace"), item.query, item.label, item.channel, item.source)
    words = "|".join(re.escape(name.partition(":")[2] or name) for name in names if name)
    pattern = re.compile(rf"(?<![0-9A-Za-z])(?:{words})(?![0-9A-Za-z])")
    return any(pattern.search(text) for text in said)


def _oid(item: Quarantined) -> str:
    """Return the id of a refused reading; empty if the bytes are no reading."""
    try:
        said: Any = json.loads(item.body)["_id"]["$oid"]
        return bytes.fromhex(said).hex()
    except (ValueError, KeyError, TypeError):
        return ""
