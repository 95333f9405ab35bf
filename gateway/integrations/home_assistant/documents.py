"""The documents of devices, brews and the gateway: all that there is to publish."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway import __version__
from gateway.domain.alarm import Alarm
from gateway.domain.brewsession import SessionEntry
from gateway.domain.device import Device
from gateway.drivers import BY_NAME
from gateway.insight.silence import silent_after_s
from gateway.integrations.home_assistant import payloads, states
from gateway.integrations.home_assistant.payloads import About, Component
from gateway.integrations.home_assistant.states import Brew
from gateway.integrations.home_assistant.topics import Place, Topics, slug_of
from gateway.notify.house import GAPS, usual_gap
from gateway.services.build import Services
from gateway.store.records import RawReading

RECENT_READINGS = GAPS + 1
"""Readings of a device that its usual gap is found in."""

FIRST_READINGS = 50
"""Readings of a device that are searched for its values before it is announced for the first time."""

ENDED_S = 24 * 3600
"""Seconds after its end that a brew stays."""

DEVICES, BREWS = 500, 200
"""Devices and brews that are announced at most, the first ones by id."""


@dataclass(frozen=True, slots=True)
class Document:
    """All that is published of one device in Home Assistant. `components` are the keys of its entities.

    `silent_at` is the time (Unix seconds) from which it is silent; None for what never is.
    """

    place: Place
    config: str
    state: str
    components: frozenset[str]
    silent_at: float | None = None


class Reader:
    """Makes documents. `known` are the components of each configuration that was published before."""

    def __init__(self, services: Services, topics: Topics) -> None:
        self._services = services
        self._topics = topics
        self._store = services.store
        self.known: dict[str, frozenset[str]] = {}

    async def devices(self) -> dict[int, Device]:
        """Return the devices to announce, by id."""
        return {device.id: device for device in (await self._store.devices.all())[:DEVICES]}

    async def brews(self) -> list[int]:
        """Return the ids of the brews to announce: the open ones, and those that ended within a day."""
        now, found = self._services.clock.now(), set[int]()
        for account in await self._store.accounts.all():
            found.update(await self._services.figures.running(account.id))
        found.update(
            session.id
            for session in await self._store.sessions.all()
            if session.ended_at is not None and now - session.ended_at < ENDED_S
        )
        return sorted(found)[-BREWS:]

    async def of_devices(self, devices: Collection[Device]) -> dict[int, Document]:
        """Return the documents of devices by id; a device without any reading has none."""
        brews = await self._brews({each.session_id for each in devices if each.session_id is not None})
        alarms = self._services.alarms.firing()
        found = {}
        for device in devices:
            place = self._topics.device(device.family, device.stable_id)
            is_new = place.config not in self.known
            latest = await self._store.payloads.latest(
                device.id, FIRST_READINGS if is_new else RECENT_READINGS
            )
            if latest or not is_new:
                brew = None if device.session_id is None else brews.get(device.session_id)
                known = self.known.get(place.config, frozenset())
                found[device.id] = device_document(
                    self._topics, device, latest, brew, alarms, known, self._page(f"devices/{device.id}")
                )
        return found

    async def of_brews(self, brew_ids: Collection[int]) -> dict[int, Document]:
        """Return the documents of brews by id; deleted ones are left out."""
        alarms = self._services.alarms.firing()
        return {
            brew_id: self._of_brew(brew, alarms) for brew_id, brew in (await self._brews(brew_ids)).items()
        }

    async def of_gateway(self) -> Document:
        """Return the document of the gateway itself."""
        place, store = self._topics.gateway, self._store
        targets = await self._services.sending.overview()
        slugs = {each.target.name: slug_of("t", each.target.name) for each in targets}
        entities: dict[str, Component] = dict(payloads.GATEWAY)
        for name, slug in slugs.items():
            entities[f"{payloads.TARGET}{slug}"] = payloads.target_component(name, slug)
        known = self.known.get(place.config, frozenset())
        about = About(
            "Hydrometer gateway", "hydrometer-gateway", "hydrometer-gateway", version=__version__,
            url=self._page(""),
        )  # fmt: skip
        config = payloads.configuration(
            place, about, self._topics.status, entities.items(), sorted(known - entities.keys())
        )
        state = states.gateway_state(
            sum(each.waiting for each in targets),
            await store.quarantine.count(),
            (await store.upkeep.condition()).free_bytes,
            {slugs[each.target.name]: each.state in {"well", "partly"} for each in targets},
        )
        return Document(place, config, state, known | entities.keys())

    async def places_of(
        self, alarm: Alarm, shown: Mapping[int, Device], brews: Collection[int]
    ) -> list[Place]:
        """Return the places that an alarm is about, of the devices and brews that are announced.

        One that is about nothing that is announced belongs to the gateway.
        """
        found: list[Place] = []
        if alarm.scope == "device":
            found = [self._place_of(each) for each in shown.values() if str(each.id) == alarm.subject]
        elif alarm.scope == "brew" and alarm.subject.isdecimal():
            brew_id = int(alarm.subject)
            inside = {each.id: each for each in shown.values() if each.session_id == brew_id}
            leading = await self._services.insight.leading_device(brew_id)
            chosen = [inside[leading]] if leading in inside else list(inside.values())
            found = [self._place_of(each) for each in chosen]
            found += [self._topics.brew(brew_id)] if brew_id in brews else []
        return found or [self._topics.gateway]

    def _place_of(self, device: Device) -> Place:
        return self._topics.device(device.family, device.stable_id)

    async def _brews(self, brew_ids: Collection[int]) -> dict[int, Brew]:
        entries: Sequence[SessionEntry] = (
            await self._store.sessions.entries(sorted(brew_ids)) if brew_ids else []
        )
        insights = (
            await self._services.insight.of_all([entry.session for entry in entries]) if entries else {}
        )
        return {entry.session.id: Brew(entry, insights[entry.session.id]) for entry in entries}

    def _of_brew(self, brew: Brew, alarms: Iterable[Alarm]) -> Document:
        brew_id = brew.entry.session.id
        place = self._topics.brew(brew_id)
        about = About(
            brew.title,
            "hydrometer-gateway",
            "Brew",
            "",
            self._page(f"brews/{brew_id}"),
            self._topics.gateway.id,
        )
        config = payloads.configuration(place, about, self._topics.status, payloads.BREW.items())
        mine = [alarm for alarm in alarms if (alarm.scope, alarm.subject) == ("brew", str(brew_id))]
        return Document(place, config, states.brew_state(brew, mine), frozenset(payloads.BREW))

    def _page(self, path: str) -> str:
        address = self._services.page.address
        return f"{address}/ui/{path}" if address else ""


def device_document(
    topics: Topics,
    device: Device,
    latest: Sequence[RawReading],
    brew: Brew | None,
    alarms: Iterable[Alarm],
    known: frozenset[str],
    page: str,
) -> Document:
    """Return the document of a hydrometer, made of its `latest` readings, the newest first.

    `known` are the keys of the entities that it had before, `page` is the address of its page.
    """
    place = topics.device(device.family, device.stable_id)
    each = [states.device_values(raw.reading) for raw in latest]
    seen = set[str]().union(*map(states.seen_members, each))
    keys = {*payloads.shown_components(payloads.DEVICE, seen), *known}
    entities = {key: component for key, component in payloads.DEVICE.items() if key in keys}
    driver = BY_NAME.get(device.family)
    family = device.family if driver is None else driver.title
    name = device.title or f"{family} {device.stable_id}"
    about = About(name, family, family, device.stable_id, page, topics.gateway.id)
    subjects = {("device", str(device.id)), ("brew", str(device.session_id))}
    silent_at = 0.0
    if latest:
        interval_s = device.settings.interval_s or device.interval_s
        gap_s = usual_gap([raw.reading.created_at for raw in latest])
        silent_at = latest[0].reading.created_at + silent_after_s(interval_s, gap_s)
    return Document(
        place,
        payloads.configuration(place, about, topics.status, entities.items()),
        states.device_state(
            each[0] if each else states.device_values(None),
            brew,
            [alarm for alarm in alarms if (alarm.scope, alarm.subject) in subjects],
        ),
        frozenset(entities),
        silent_at,
    )
