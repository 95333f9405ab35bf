"""Add a device: which one, how it reports, what to type into it, and what is heard of it."""

import re
from typing import Annotated, Any, Literal, NamedTuple

from gateway.domain.brewsession import BrewSession
from gateway.domain.device import Device
from gateway.drivers.families import Family, Way, families, fill, find_families
from gateway.errors import InvalidInput, NameTaken, NotFound
from gateway.http.middleware import host_of
from gateway.services.access import INGEST_ONLY
from gateway.services.adding import addresses, heard, needs_of, printed_instead
from gateway.services.device_settings import BasicChange
from gateway.ui.forms import Filled, Form, whole
from gateway.ui.pages import Answer, Moved, Page, Part, Row, View, Visit
from gateway.ui.views.adding_heard import UNITS, line_of, troubles_of

LISTENING_S = 7 * 86_400
"""Seconds for which a page goes on listening; an older address begins anew."""

INTERVALS = 2
"""Usual intervals after which silence means that something is wrong."""

KEYS_OF_A_NAME = 100
"""Keys of one name that are tried: `rapt`, `rapt 2` and so on."""

ALIASES = 4
"""Aliases, or ways where there is none, that stand beside a family in the list."""

DIGITS = 12
"""Digits of a time (Unix seconds) at most."""

LINE_CHARACTERS = 60
"""Characters of a line in a box of several lines."""

KEY_SHOWN = "hg_..."
"""What stands for a key that is not made yet."""

OWN_PORTS = {1883: "mqtt", 9501: "tcp"}
"""Ports that an option of their own sets."""

CAUSES = ("scheme", "https", "network", "firewall", "port", "name")
"""Usual causes of silence, each with its check in the catalogue."""

_MARKED = re.compile(r"`([^`]+)`|\*([^*]+)\*")


class Piece(NamedTuple):
    """A piece of a sentence; its kind is `text`, `code` for what is typed, or `em` for words of a page."""

    kind: str
    text: str


class FamilyLine(NamedTuple):
    """A family in the list."""

    url: str
    title: str
    about: str


class Hurdle(NamedTuple):
    """A need of a way: its words, the option or the host that goes with it, and whether it is not met now."""

    short: str
    text: str
    code: str
    reason: str
    is_missing: bool


class WayLine(NamedTuple):
    """A way of a family, with what it needs."""

    url: str
    title: str
    best: bool
    hurdles: list[Hurdle]


class Setting(NamedTuple):
    """A field of the device, and what to type there; a text of several lines has a box of its own."""

    name: str
    text: str
    lines: int


class SaveForm(Form):
    """The form of the last step: a name, and a brew."""

    name: str = ""
    brew: Annotated[int, whole] = 0


async def which(visit: Visit) -> Page:
    """Show the search over all families."""
    words = visit.query.get("q", "")[:100]
    lines = [_family_line(visit, family) for family in find_families(words, families().values())]
    values = {"lines": lines, "words": words, "other": _family_line(visit, families()["other"])}
    return Page("adding.html", visit.t("adding.title"), values, menu="devices")


async def how(visit: Visit) -> Page:
    """Show the ways of a family, the best first."""
    family = _family(visit)
    lines = [
        WayLine(
            visit.url("devices.add.way", family=family.id, way=way.id),
            way.title,
            way.best,
            _hurdles(visit, way),
        )
        for way in family.ways
    ]
    values = {"family": family, "lines": lines, "prepare": [pieces(text) for text in family.prepare]}
    return Page("adding_family.html", family.title, values, menu="devices")


async def settings(visit: Visit) -> Answer:
    """Show what to type into the device, and what is heard since the page was opened."""
    family, way = _way(visit)
    since = _since(visit, visit.query.get("since", ""))
    if str(since) != visit.query.get("since"):
        return Moved(visit.url("devices.add.way", {"since": since}, family=family.id, way=way.id))
    number = visit.query.get("device", "")
    device = await visit.services.devices.find(int(number)) if number.isdecimal() else None
    return await _settings(visit, since, device)


async def _settings(
    visit: Visit,
    since: int,
    device: Device | None = None,
    *,
    key: str = "",
    filled: Filled[SaveForm] | None = None,
) -> Page:
    family, way = _way(visit)
    authority = host_of(visit.request)
    shown = {**addresses(visit.services.stats, authority, way), "key": key or KEY_SHOWN}
    values = {
        "family": family,
        "way": way,
        "since": since,
        "prepare": [pieces(text) for text in family.prepare],
        "hurry": pieces(family.hurry),
        "hurdles": _hurdles(visit, way),
        "settings": [_setting(field.name, fill(field.text, shown)) for field in way.fields],
        "notes": [pieces(fill(text, shown)) for text in way.notes],
        # Inside Home Assistant the number that we know is one between containers.
        "number": "" if visit.base else printed_instead(visit.services.stats, authority),
        "asks_for_key": way.asks_for_key and _may_hear(visit),
        "key": key,
        "listening": "",
        "device": None,
    }
    if device is not None and _may_hear(visit):
        values |= await _last_step(visit, device, filled)
    elif _may_hear(visit):
        place = {"family": family.id, "way": way.id}
        values["listening"] = await visit.include("devices.add.heard", {"since": since}, **place)
    title = visit.t("adding.by", family=family.title, way=way.title)
    status = 422 if filled is not None and filled.errors else 200
    return Page("adding_way.html", title, values, menu="devices", status=status)


async def _last_step(visit: Visit, device: Device, filled: Filled[SaveForm] | None) -> dict[str, Any]:
    brews = await _running(visit)
    return {
        "device": device,
        "filled": filled,
        "name": device.settings.label or device.name,
        "brew": device.session_id or "",
        "brews": [("", visit.t("adding.no_brew")), *((brew.id, brew.batchcode) for brew in brews)],
    }


async def listening(visit: Visit) -> Part:
    """Show what is heard since the wizard began."""
    family, way = _way(visit)
    since = _since(visit, visit.query.get("since", ""))
    came = await heard(visit.services, since, family.drivers)
    place = {"family": family.id, "way": way.id}
    values = {
        "since": since,
        "began": visit.words.clock(since),
        "hurry": pieces(family.hurry),
        "devices": [line_of(visit, each) for each in came.devices],
        "waiting": [
            visit.t("adding.waiting", name=each.name or each.stable_id, address=each.source)
            for each in came.waiting
        ],
        "troubles": troubles_of(visit, came),
        "causes": [
            (visit.t(f"adding.cause.{cause}"), visit.t(f"adding.cause.{cause}.check")) for cause in CAUSES
        ],
        "is_late": not came.devices and visit.now - since > INTERVALS * family.typical_s,
        "typical": visit.words.span(family.typical_s),
        **place,
    }
    return Part("parts/adding.html", ("device", "reading", "quarantine"), values)


async def make_key(visit: Visit) -> Page:
    """Make a key for the device, and show it once, where it has to be typed."""
    family, _ = _way(visit)
    since = _since(visit, visit.fields.get("since", ""))
    for number in range(1, KEYS_OF_A_NAME + 1):
        name = family.id if number == 1 else f"{family.id} {number}"
        try:
            return await _settings(visit, since, key=await visit.services.access.add(name, INGEST_ONLY))
        except NameTaken:
            continue
    raise NameTaken(visit.t("adding.keys_full", name=family.id))


async def judge(visit: Visit) -> Moved:
    """Take the viewer's word for the unit of a device, and go on to its name."""
    family, way = _way(visit)
    device = await _device(visit)
    unit = visit.fields.get("unit", "")
    if unit and unit not in UNITS:
        raise InvalidInput(visit.t("error.form"))
    if unit:
        await visit.services.devices.start(device.id, BasicChange(gravity_unit=unit).apply)
    given = {"since": _since(visit, visit.fields.get("since", "")), "device": device.id}
    notice = visit.t("adding.unit_set", unit=UNITS[unit]) if unit else ""
    return Moved(visit.url("devices.add.way", given, family=family.id, way=way.id), notice)


async def save(visit: Visit) -> Answer:
    """Name the device, put it into a brew, and go to its page."""
    device = await _device(visit)
    since = _since(visit, visit.fields.get("since", ""))
    filled = visit.read(SaveForm)
    brew = None
    if filled.value is not None and filled.value.brew:
        chosen = filled.value.brew
        brew = next((each for each in await _running(visit) if each.id == chosen), None)
        if brew is None:
            filled.wrong("brew", "adding.brew_gone")
    if filled.value is not None:
        label = filled.value.name if filled.value.name != device.name else ""
        try:
            await visit.services.devices.start(device.id, BasicChange(label=label).apply)
        except InvalidInput:
            filled.wrong("name", "adding.name_wrong")
    if filled.value is None:
        return await _settings(visit, since, device, filled=filled)
    name = filled.value.name or device.name
    if brew is None:
        notice = visit.t("adding.saved", name=name)
    else:
        if brew.id != device.session_id:
            await visit.services.brewsessions.assign(device.key, brew.id, min(since, device.first_seen_at))
        notice = visit.t("adding.saved_in", name=name, brew=brew.batchcode)
    target = visit.url("device", id=device.id) if visit.has("device") else visit.url("devices.add")
    return Moved(target, notice)


def pieces(text: str) -> list[Piece]:
    """Split a sentence of the settings at what is typed and at words of the device's page."""
    found, at = [], 0
    for match in _MARKED.finditer(text):
        found.append(Piece("text", text[at : match.start()]))
        found.append(Piece("code", match[1]) if match[1] else Piece("em", match[2]))
        at = match.end()
    return [piece for piece in (*found, Piece("text", text[at:])) if piece.text]


def _may_hear(visit: Visit) -> bool:
    return visit.viewer.may_change and visit.viewer.is_owner


def _family(visit: Visit) -> Family:
    family = families().get(visit.path_text("family"))
    if family is None:
        raise NotFound(visit.t("adding.no_family"))
    return family


def _way(visit: Visit) -> tuple[Family, Way]:
    family = _family(visit)
    way = family.way(visit.path_text("way"))
    if way is None:
        raise NotFound(visit.t("adding.no_way", family=family.title))
    return family, way


def _since(visit: Visit, text: str) -> int:
    """Return the time at which the listening began; the present for none that can be used."""
    now = int(visit.now)
    given = int(text) if text.isdecimal() and len(text) < DIGITS else 0
    return given if now - LISTENING_S <= given <= now else now


async def _device(visit: Visit) -> Device:
    number = visit.fields.get("device", "")
    return await visit.services.devices.find(int(number) if number.isdecimal() else 0)


async def _running(visit: Visit) -> list[BrewSession]:
    """Return the viewer's brews that are not done, the newest first."""
    brews = await visit.services.devices.brews(visit.viewer.account_id)
    return [brew for brew in reversed(brews) if brew.ended_at is None]


def _family_line(visit: Visit, family: Family) -> FamilyLine:
    titles = {each.title for each in families().values()}
    own = [alias for alias in family.aliases if alias not in titles]
    about = own or [way.title for way in family.ways]
    address = visit.url("devices.add.family", family=family.id)
    return FamilyLine(address, family.title, ", ".join(about[:ALIASES]))


def _hurdles(visit: Visit, way: Way) -> list[Hurdle]:
    """Return what a way needs that is not met, or that nobody but the viewer can see to."""
    found = []
    for each in needs_of(visit.services.stats, way):
        if each.is_met:
            continue
        kind = "port" if each.need.startswith("port ") else each.need.replace(" ", "_")
        missing = each.is_met is False
        options = " ".join(way.options)
        code = {
            "port": options or f"--also-listen {way.port}",
            "dns": way.host,
            "topic": options,
            "own_broker": options,
        }.get(kind, "")
        if kind == "port" and way.port in OWN_PORTS:
            code = options or f"--{OWN_PORTS[way.port]}-port {way.port}"
        text = visit.t(f"adding.need.{kind}", port=str(way.port), host=way.host)
        short = visit.t(f"adding.need.{kind}.short", port=str(way.port), host=way.host)
        found.append(Hurdle(short, text, code, each.reason, missing))
    return found


def _setting(name: str, text: str) -> Setting:
    lines = sum(1 + len(line) // LINE_CHARACTERS for line in text.splitlines())
    return Setting(name, text, lines)


PLACE = "/devices/add/{family}/{way}"


def _row(path: str, view: View, name: str, summary: str, *, no_store: bool = False) -> Row:
    method: Literal["GET", "POST"] = "GET" if view is listening else "POST"
    return Row(
        method, PLACE + path, view, f"devices.add.{name}", summary,
        scope="admin", owner_only=True, no_store=no_store,
    )  # fmt: skip


ROWS = (
    Row("GET", "/devices/add", which, "devices.add", "Add a device: search over all families"),
    Row("GET", "/devices/add/{family}", how, "devices.add.family", "The ways of a family to report"),
    Row("GET", PLACE, settings, "devices.add.way", "What to type into the device, and what is heard"),
    _row("/heard", listening, "heard", "What is heard"),
    _row("/key", make_key, "key", "Make a key for the device", no_store=True),
    _row("/unit", judge, "unit", "Take the viewer's word for the unit"),
    _row("/save", save, "save", "Name the device, and put it into a brew"),
)
