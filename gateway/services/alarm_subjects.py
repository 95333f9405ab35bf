"""What alarms are about, by name, and whose they are."""

from collections.abc import Iterable, Mapping, Sequence

from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import Alarm, AlarmEvent
from gateway.domain.brew_event import BrewEvent
from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.domain.times import EVER_S
from gateway.services.alarms import HISTORY_MOST, AlarmService
from gateway.store.protocol import Store

Subject = tuple[str, str]
"""A scope, and the id or the name of the brew, device or target."""

MORE = 4
"""How many times more events are read where those of other accounts were among the first ones."""


def is_of(account_id: int, alarm: Alarm) -> bool:
    """Return whether an alarm belongs to an account: the owner has those of no account, too."""
    return account_id == (OWNER_ID if alarm.account_id is None else alarm.account_id)


def of_brew(alarms: Iterable[Alarm], session_id: int, devices: Iterable[Device]) -> list[Alarm]:
    """Return the alarms about a brew, and about the devices that are in it, in the order given."""
    inside = {str(device.id) for device in devices if device.session_id == session_id}
    return [
        alarm
        for alarm in alarms
        if (alarm.scope == "brew" and alarm.subject == str(session_id))
        or (alarm.scope == "device" and alarm.subject in inside)
    ]


async def names_of(store: Store, subjects: Iterable[Subject]) -> Mapping[Subject, str]:
    """Return names: batch code and recipe of a brew, the title of a device, else the subject itself."""
    wanted = set(subjects)
    names = {subject: subject[1] for subject in wanted}
    if any(scope == "device" for scope, _ in wanted):
        for device in await store.devices.all():
            if ("device", str(device.id)) in wanted:
                names["device", str(device.id)] = device.title
    brews = [int(subject) for scope, subject in wanted if scope == "brew"]
    for entry in await store.sessions.entries(brews) if brews else []:
        name = " ".join(part for part in (entry.session.batchcode, entry.recipe_title) if part)
        names["brew", str(entry.session.id)] = name
    return names


async def history_of(
    service: AlarmService,
    account_id: int | None,
    limit: int,
    *,
    scope: str | None = None,
    subject: str | None = None,
) -> list[tuple[Alarm, AlarmEvent]]:
    """Return the newest events of an account's own alarms; None is every account."""
    asked = limit
    while True:
        found = await service.history(account_id, scope=scope, subject=subject, limit=asked)
        own = [each for each in found if account_id is None or is_of(account_id, each[0])]
        if len(own) >= limit or len(found) < asked or asked == HISTORY_MOST:
            return own[:limit]
        asked = min(MORE * asked, HISTORY_MOST)


async def fired_in(
    service: AlarmService, store: Store, session: BrewSession, limit: int
) -> list[tuple[Alarm, AlarmEvent]]:
    """Return when alarms about a brew fired, and those about a device while it was in the brew, newest first.

    `limit` bounds the events that are read for the brew and for each device.
    """
    found = await service.history(None, scope="brew", subject=str(session.id), limit=limit)
    for device_id, start, end in _stays(await store.events.of_session(session.id)):
        history = await service.history(None, scope="device", subject=str(device_id), limit=limit)
        found += [(alarm, event) for alarm, event in history if start <= event.at < end]
    fired = {event.id: (alarm, event) for alarm, event in found if event.kind == "fired"}
    return sorted(fired.values(), key=lambda each: (-each[1].at, -each[1].id))[:limit]


def _stays(events: Sequence[BrewEvent]) -> list[tuple[int, int, int]]:
    """Return the ids of devices with the spans (Unix seconds) in which they were in a brew."""
    stays, since = [], dict[int, int]()
    for event in sorted(events, key=lambda event: (event.at, event.id)):
        device_id = event.facts.get("device_id")
        if not isinstance(device_id, int):
            continue
        if event.kind == "device_in":
            since.setdefault(device_id, event.at)
        elif event.kind == "device_out" and device_id in since:
            stays.append((device_id, since.pop(device_id), event.at))
    return [*stays, *((device_id, start, EVER_S) for device_id, start in since.items())]
