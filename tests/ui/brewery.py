"""A brewery to look at: the sample brewery, and a nasty one with all that a page has to bear."""

import asyncio
import json
import math
import random
from dataclasses import dataclass, replace
from html import escape
from io import BytesIO
from pathlib import Path

from PIL import Image

from gateway.clock import SystemClock
from gateway.domain.alarm import Alarm, AlarmEvent, Scope
from gateway.domain.key import ALL_SCOPES
from gateway.domain.payload import Payload
from gateway.domain.progress import no_progress
from gateway.network import Peer
from gateway.samples.brewery import fill
from gateway.services.brewsessions import SessionChange
from gateway.services.build import Services, build_services
from gateway.services.device_settings import BasicChange
from gateway.services.timeline import EventContent
from gateway.store.protocols.alarms import AlarmChange
from gateway.store.sqlite.store import SqliteStore

YEAR, EVERY_S = 35_000, 900
"""Readings of a year, and the seconds between two."""

TOGETHER = 256

LONG = (
    "Ürgewöhnlich-langer Donaudampfschifffahrtsgesellschaftskapitänsbier-Doppelbock mit Kirschen und Kaffee"
)
NASTY = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>{{7*7}}\u202egnirts"
SHORT_NASTY = '"><i>{{7*7}}</i>'
DEVICE: Scope = "device"
TARGET: Scope = "target"
SCRIPT_NASTY = "javascript:alert(3)"


def spindle(number: int, *, name: str, gravity: str, temperature: str) -> str:
    """What an iSpindel posts, with any name."""
    members = {
        "name": name,
        "ID": number,
        "angle": 45.25,
        "temperature": float(temperature),
        "temp_units": "C",
    }
    return json.dumps(
        {
            **members,
            "temp_units": "C",
            "battery": 3.95,
            "gravity": float(gravity),
            "interval": 900,
            "RSSI": -61,
        }
    )


@dataclass(frozen=True)
class Brewery:
    """Ids of records that pages are about, and a key that may do everything."""

    key: str
    running: int
    year: int
    nasty: int
    empty: int
    recipe: int
    device: int
    quarantined: int
    event: int
    nasty_recipe: int
    photo: str
    nasty_device: int
    tv: str
    picture: str
    alarm: int


async def brew(directory: Path, *, readings: int = YEAR, photos: bool = True, seed: int = 1) -> Brewery:
    """Fill an empty data directory, in this process and at once."""
    store = SqliteStore(directory)
    await store.open()
    try:
        services = build_services(store, directory, SystemClock())
        await services.access.start()
        await services.intake.start()
        key = await services.access.add("pictures", ALL_SCOPES)
        made = await fill(services, services.access.owner_id, no_progress, seed=seed, photos=photos)
        year = await _year(services, readings)
        nasty = await _nasty(services)
        event = await _events(services, nasty)
        empty = await services.brewsessions.add_session(1, SessionChange(batchcode="EMPTY1"))
        devices = await services.store.devices.all()
        device = next(device.id for device in devices if device.session_id == made.running)
        nasty_device = next(device.id for device in devices if device.stable_id == "901")
        tv, picture = await _doors(services, nasty)
        [first, *_] = await services.store.quarantine.newest(100)
        recipe, photo = await _recipe(services)
        await _target(services, made.running)
        alarm = await _alarms(services, made.running, nasty, device, nasty_device)
        return Brewery(
            key, made.running, year, nasty, empty.id, made.recipe, device, first.id, event, recipe, photo,
            nasty_device, tv, picture, alarm,
        )  # fmt: skip
    finally:
        await store.close()


async def _year(services: Services, readings: int) -> int:
    """A brew with a reading every 15 minutes for a year, noise, gaps and a wild hydrometer."""
    session = await services.brewsessions.add_session(1, SessionChange(batchcode=LONG[:60]))
    chance, now = random.Random(7), services.clock.now()  # noqa: S311 noise is no secret
    begin = now - readings * EVERY_S

    def report(number: int, at: float) -> Payload:
        days = number * EVERY_S / 86_400
        gravity = 1.012 + 0.05 / (1 + math.exp(1.1 * (days - 4))) + chance.gauss(0, 0.0004)
        temperature = 19 + 2 * math.sin(days / 3) + chance.gauss(0, 0.1)
        body = spindle(77, name="Jahresgärtank", gravity=f"{gravity:.4f}", temperature=f"{temperature:.2f}")
        return Payload(body.encode(), at, "http /ingest")

    await services.intake.take(report(0, begin))
    device = next(d for d in await services.store.devices.all() if d.stable_id == "77")
    await services.brewsessions.assign(str(device.id), session.id, begin - 1)
    settings = replace(device.settings, label=LONG[:64])
    await services.reprocessor.configure(device, settings, lambda _: None)
    for first in range(1, readings, TOGETHER):
        numbers = [n for n in range(first, min(first + TOGETHER, readings)) if n % 3000 > 120]
        await asyncio.gather(*(services.intake.take(report(n, begin + n * EVERY_S)) for n in numbers))
    return session.id


async def _events(services: Services, session_id: int) -> int:
    """Events with every text that a person may type; the id of the last, a reading by hand."""
    session = await services.store.sessions.get(session_id)
    assert session is not None
    for content in (
        EventContent("note", text=f"{NASTY}\n{LONG}"),
        EventContent("dry_hop", text=LONG, amount=SHORT_NASTY),
        EventContent("cold_crash"),
    ):
        await services.timeline.add(session, content, NASTY, "")
    hand = EventContent("hand_reading", gravity="1.024", temp="19", text=NASTY, instrument=SHORT_NASTY)
    return (await services.timeline.add(session, hand, "phone", "")).id


async def _nasty(services: Services) -> int:
    """A brew whose every text is an attempt to be more than text; what was not understood; an idle device."""
    session = await services.brewsessions.add_session(
        1, SessionChange(batchcode=SHORT_NASTY, phase=SHORT_NASTY, notes=NASTY)
    )
    rows = [
        {"gravity": 1.05 - n / 1000, "temp": 19.5, "name": NASTY, "comment": NASTY, "beer": NASTY}
        for n in range(20)
    ]
    await services.importing.run(session, json.dumps(rows).encode(), "json", "", False)
    now = services.clock.now()
    for number, name in ((901, SHORT_NASTY), (902, "Tilt BLUE"), (903, SCRIPT_NASTY)):
        body = spindle(number, name=name, gravity="1.048", temperature="20.0")
        await services.intake.take(Payload(body.encode(), now - 120, "http /ingest"))
    nasty = next(device for device in await services.store.devices.all() if device.stable_id == "901")
    await services.brewsessions.assign(str(nasty.id), session.id, now - 3600)
    label = BasicChange(label=NASTY[:63]).apply
    await services.reprocessor.configure(nasty, label(nasty.settings), lambda _: None)
    for raw in (b"", NASTY.encode(), b'{"name": "x", "ID": 5}', b"[" * 300, bytes(range(256)) * 8):
        await services.intake.take(Payload(raw, now - 300, "http /ingest", source="192.168.1.44"))
    return session.id


async def _doors(services: Services, session_id: int) -> tuple[str, str]:
    """Logins, keys and links with nasty names; the tokens of a screen's link and of a picture's."""
    key = await services.access.add(NASTY, frozenset({"read"}))
    await services.access.add(SHORT_NASTY, frozenset({"ingest"}))
    await services.logins.log_in(key, Peer("192.168.1.45"), NASTY)
    session = await services.store.sessions.get(session_id)
    assert session is not None
    tv, _ = await services.links.make(1, "tv", SHORT_NASTY, session)
    picture, _ = await services.links.make(1, "picture", SCRIPT_NASTY, session)
    return tv, picture


async def _recipe(services: Services) -> tuple[int, str]:
    """A recipe whose every text is long or nasty, with a photo; and a folder of each kind."""
    nasty, long = escape(NASTY), escape(LONG)
    whole = "<NAME>{0}</NAME><VERSION>1</VERSION>"
    hop = f"<HOP>{whole}<AMOUNT>0.06</AMOUNT><ALPHA>12</ALPHA><USE>Dry Hop</USE><TIME>4320</TIME></HOP>"
    malt = f"<FERMENTABLE>{whole}<AMOUNT>5</AMOUNT><COLOR>500</COLOR></FERMENTABLE>"
    body = f"{whole}<BREWER>{{0}}</BREWER><NOTES>{{0}}</NOTES><BATCH_SIZE>20</BATCH_SIZE>"
    recipe = f"<RECIPE>{body}<HOPS>{hop}</HOPS><FERMENTABLES>{malt}</FERMENTABLES></RECIPE>"
    document = f"<RECIPES>{recipe.format(nasty)}{recipe.format(long)}</RECIPES>"
    for name in (SHORT_NASTY, LONG):
        folder = await services.library.add_folder(1, "recipe", name)
    imported = await services.library.import_document(1, document.encode(), folder.id)
    picture = BytesIO()
    Image.new("RGB", (900, 1600), "peru").save(picture, "JPEG")
    photo = await services.photos.add(imported[0].id, picture.getvalue(), SHORT_NASTY, NASTY)
    return imported[0].id, photo.uuid


async def _target(services: Services, session_id: int) -> None:
    """A service that gets nothing, because it is paused: no test sends anything anywhere."""
    await services.targets.add_with_key("club", "https://brew.example", "a-key")
    await services.targets.pause("club")
    session = await services.store.sessions.get(session_id)
    assert session is not None
    await services.targets.map(session, "club", 4101)
    await services.channels.add("phone", "ntfy", {"quiet": "22:00-07:00"}, secret="brewery-x7")
    await services.channels.add("house", "webhook", {"url": f"https://{'long-name.' * 20}example/x"})
    for name in ("phone", "house"):
        await services.channels.pause(name, True)


async def _alarms(services: Services, running: int, nasty: int, device: int, nasty_device: int) -> int:
    """Alarms in every state, some with nasty texts; limits of rules; the id of an alarm that fires.

    A gateway that runs ends alarms whose reason it does not find. So limits are such that these hold.
    """
    alarms, now = services.alarms, int(services.clock.now())
    await alarms.start()
    await alarms.set("battery", {"volts": 5})
    await alarms.set("temperature", {"lo": 5, "hi": 12}, "brew", str(running))
    await alarms.set("reached", {"attenuation": 99, "text": LONG[:64]}, "brew", str(running))
    await alarms.set("silent", {"off": True}, "device", str(device))

    async def write(change: AlarmChange) -> Alarm:
        [made] = await alarms.apply(lambda _: [change])
        return made

    async def fire(rule: str, scope: Scope, subject: object, text: str, hours: int) -> Alarm:
        at = now - hours * 3600
        alarm = Alarm(0, None, rule, scope, str(subject), "firing", at, at, text=text)
        return await write(AlarmChange(alarm, AlarmEvent(0, 0, at, "fired", text)))

    for rule, scope, subject, text, end in (
        ("silent", DEVICE, device, "Silent for 3 h, usually every 15 min.", "It reports again."),
        ("sending", TARGET, "club", "club refuses the key.", "club takes readings again."),
    ):
        over = await fire(rule, scope, subject, text, 50)
        event = AlarmEvent(0, over.id, now - 45 * 3600, "cleared", end)
        ended = AlarmChange(replace(over, state="ok", cleared_at=event.at), event)
        await write(ended)
    warm = await fire("temperature", "brew", running, "24.3 °C, above 22 °C.", 30)
    await alarms.acknowledge(warm.id, f"page:{SHORT_NASTY}")
    low = await fire("battery", "device", nasty_device, f"3.41 V. {NASTY}", 6)
    await alarms.snooze(low.id, now + 8 * 3600, "page:phone")
    await fire("done", "brew", nasty, f"1.012 for 2 days 4 hours. {NASTY}", 3)
    return (await fire("battery", "device", device, "3.41 V, below 3.5 V: charge it soon.", 5)).id
