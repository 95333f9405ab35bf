"""Settings: what the viewer chose, the logins, the brewery's name, and the gateway in words."""

from functools import cache
from typing import Annotated, NamedTuple
from zoneinfo import available_timezones

from gateway import __version__
from gateway.domain.totals import Storage
from gateway.errors import Forbidden, NotFound, StoreUnavailable
from gateway.forward.forwarding import PAUSED
from gateway.services.logins import Login
from gateway.ui.forms import Filled, Form, among
from gateway.ui.pages import Answer, Moved, Page, Part, Row, Visit
from gateway.ui.viewer import SCHEMES, machine_zone, zone_named
from gateway.ui.views.login import checked_target
from gateway.ui.words import GRAVITY_UNITS, LANGUAGES, TEMP_UNITS, Ago, Words

AREAS = frozenset(
    "Africa America Antarctica Arctic Asia Atlantic Australia Europe Indian Pacific".split()  # noqa: SIM905
)
"""Areas whose zones are offered: the others are old names of the same zones."""

UNITS = (("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12))

AGENTS = ("Edg", "OPR", "SamsungBrowser", "Firefox", "Chrome", "Safari", "curl")
"""Browsers in the order in which they are looked for: most name others, too."""

AGENT_NAMES = {"Edg": "Edge", "OPR": "Opera", "SamsungBrowser": "Samsung Internet"}

SYSTEMS = ("iPhone", "iPad", "Android", "Windows", "Macintosh", "CrOS", "Linux")

SYSTEM_NAMES = {"Macintosh": "Mac", "CrOS": "Chromebook"}


def _zone(text: str) -> str:
    if zone_named(text) is None:
        raise ValueError("form.wrong")
    return text


class Choices(Form):
    """What a viewer chooses; an empty text leaves it to the browser or the machine."""

    language: Annotated[str, among(LANGUAGES)] = ""
    gravity_unit: Annotated[str, among(GRAVITY_UNITS)] = ""
    temp_unit: Annotated[str, among(TEMP_UNITS)] = ""
    scheme: Annotated[str, among(SCHEMES)] = ""
    zone: Annotated[str, _zone] = ""


class LoginLine(NamedTuple):
    """A login as the page shows it."""

    name: str
    browser: str
    seen: Ago
    since: str
    end_url: str
    is_this: bool


class PartLine(NamedTuple):
    """A part of the gateway, and its state in words."""

    name: str
    words: str
    is_well: bool


async def show(visit: Visit) -> Answer:
    """Show the settings."""
    return await _page(visit)


async def _page(visit: Visit, filled: Filled[Choices] | None = None) -> Page:
    viewer, page = visit.viewer, visit.services.page
    owns = viewer.is_owner and viewer.may_change
    login = viewer.login
    values = {
        "filled": filled,
        "chosen": {} if login is None else login.preferences,
        "choices": _choices(visit),
        "logins": [login_line(visit, each) for each in _logins(visit)],
        "brewery_name": page.brewery,
        "brewery_fixed": bool(page.fixed_brewery),
        "owns": owns,
        "channels": await visit.include("channels") if viewer.may_change else "",
        "gateway": await visit.include("settings.gateway") if viewer.is_owner else "",
    }
    status = 200 if filled is None else 422
    return Page("settings.html", visit.t("settings.title"), values, menu="more", status=status)


def _choices(visit: Visit) -> dict[str, list[tuple[str, str]]]:
    """Return the options of each choice, with the one first that leaves it open."""
    t, login = visit.t, visit.viewer.login
    chosen = {login.preferences["zone"]} if login is not None and "zone" in login.preferences else set()
    return {
        "language": [("", t("settings.by_browser")), *LANGUAGES.items()],
        "gravity_unit": [
            ("", t("settings.by_language")), ("SG", t("settings.gravity.SG")), ("P", t("settings.gravity.P"))
        ],
        "temp_unit": [("", t("settings.by_language")), ("C", "°C"), ("F", "°F")],
        "scheme": [
            ("", t("settings.scheme.system")),
            ("light", t("settings.scheme.light")),
            ("dark", t("settings.scheme.dark")),
        ],
        "zone": [
            ("", t("settings.by_machine", zone=str(machine_zone()))),
            *((zone, zone.replace("_", " ")) for zone in sorted({*zones(), *chosen})),
        ],
    }  # fmt: skip


@cache
def zones() -> tuple[str, ...]:
    """Return the time zones that are offered."""
    return ("UTC", *sorted(zone for zone in available_timezones() if zone.partition("/")[0] in AREAS))


def _logins(visit: Visit) -> list[Login]:
    """Return the logins that the viewer may see: those of the account, or this one alone."""
    viewer = visit.viewer
    if viewer.may_change:
        return visit.services.logins.all(viewer.account_id)
    return [] if viewer.login is None else [viewer.login]


def login_line(visit: Visit, login: Login) -> LoginLine:
    """Return a login as a page shows it."""
    current = visit.viewer.login
    return LoginLine(
        name=login.key.name,
        browser=browser_name(login.agent) or visit.t("settings.some_browser"),
        seen=visit.words.ago(login.seen_at),
        since=visit.words.date(login.created_at),
        end_url=visit.url("settings.logins.end", id=login.id),
        is_this=current is not None and current.id == login.id,
    )


def browser_name(agent: str) -> str:
    """Return a short name for a browser's name of itself, such as `Firefox, Android`."""
    browser = next((AGENT_NAMES.get(name, name) for name in AGENTS if name in agent), "")
    system = next((SYSTEM_NAMES.get(name, name) for name in SYSTEMS if name in agent), "")
    return ", ".join(filter(None, (browser, system))) or agent[:40]


async def choose(visit: Visit) -> Answer:
    """Keep what the viewer chose."""
    filled = visit.read(Choices)
    if filled.value is None:
        return await _page(visit, filled)
    await _prefer(visit, **{name: getattr(filled.value, name) for name in Choices.checks})
    # In the language that is chosen now, which may be another than this visit's.
    chosen = Words(filled.value.language, "", "") if filled.value.language else visit.words
    return Moved(visit.url("settings"), chosen.t("settings.kept"))


async def language(visit: Visit) -> Answer:
    """Change the language, and go back to the page."""
    chosen = visit.fields.get("language", "")
    if chosen in LANGUAGES:
        await _prefer(visit, language=chosen)
    return Moved(checked_target(visit, visit.fields.get("next", "")))


async def _prefer(visit: Visit, **choices: str) -> None:
    if visit.viewer.login is None:
        raise Forbidden(visit.t("error.logged_out"))
    await visit.services.logins.prefer(visit.viewer.login.id, **choices)


async def end_login(visit: Visit) -> Answer:
    """End a login."""
    found = {login.id: login for login in _logins(visit)}.get(visit.path_id("id"))
    if found is None and visit.viewer.is_owner and visit.viewer.may_change:
        found = visit.services.logins.get(visit.path_id("id"))
    if found is None:
        raise NotFound(visit.t("settings.login_gone"))
    await visit.services.logins.log_out(found.id)
    back = "keys" if visit.fields.get("back") == "keys" and visit.has("keys") else "settings"
    return Moved(visit.url(back), visit.t("settings.login_ended"))


async def end_all(visit: Visit) -> Answer:
    """End all logins of the account, this one as well."""
    await visit.services.logins.log_out_all(visit.viewer.account_id)
    return Moved(visit.url("login"))


async def name_brewery(visit: Visit) -> Answer:
    """Keep the name of the brewery."""
    await visit.services.page.name_brewery(visit.fields.get("brewery", ""))
    return Moved(visit.url("settings"), visit.t("settings.kept"))


async def gateway(visit: Visit) -> Part:
    """Show the gateway's version, addresses, disk and backup, and the state of each part in words."""
    stats = visit.services.stats
    try:
        storage = await visit.store.totals.storage()
    except StoreUnavailable:
        storage = None  # the part `store` below says why
    lines = [
        # Not a service that the owner has paused, because that is no trouble.
        PartLine(name, words, name not in stats.in_trouble or words == PAUSED)
        for name, words in sorted(stats.parts.items())
    ]
    values = {
        "version": __version__,
        "address": visit.services.page.address,
        "disk": "" if storage is None else _disk(visit, storage),
        "backup": stats.parts.get("nightly backup", ""),
        "well": all(line.is_well for line in lines),
        "parts": lines,
    }
    return Part("parts/gateway.html", ("gateway",), values)


def _disk(visit: Visit, storage: Storage) -> str:
    used = storage.database_bytes + storage.wal_bytes
    return visit.t("settings.disk", used=size(visit, used), free=size(visit, storage.free_bytes))


def size(visit: Visit, count: float) -> str:
    """Return a number of bytes in words: `12 MB`."""
    unit, step = next(((u, s) for u, s in reversed(UNITS) if count >= s), UNITS[0])
    value = count / step
    return f"{visit.words.number(value, 1 if value < 10 else 0)}\u00a0{unit}"


ROWS = (
    Row("GET", "/settings", show, "settings", "Language, units, logins, the gateway"),
    Row("POST", "/settings", choose, "settings.choose", "Keep what the viewer chose"),
    Row("POST", "/language", language, "language", "Change the language"),
    Row("POST", "/settings/logins/{id}/end", end_login, "settings.logins.end", "End a login"),
    Row("POST", "/settings/logins/end", end_all, "settings.logins.end_all", "End all logins", scope="admin"),
    Row(
        "POST", "/settings/brewery", name_brewery, "settings.brewery", "Name the brewery",
        scope="admin", owner_only=True,
    ),
    Row("GET", "/settings/gateway", gateway, "settings.gateway", "The gateway in words", owner_only=True),
)  # fmt: skip
