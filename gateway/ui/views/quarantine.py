"""Quarantine: messages that were not understood, in words, and the way to try them again."""

from typing import NamedTuple

from aiohttp import hdrs, web

from gateway.domain.quarantined import Quarantined
from gateway.domain.report import Report
from gateway.errors import DriverError, InvalidInput, NotFound
from gateway.intake.replay import Replayed
from gateway.services.quarantine import kind_of
from gateway.ui import raw
from gateway.ui.pages import Moved, Page, Part, Row, Visit
from gateway.ui.words import NOTHING, Ago

LIST_BYTES = 60
"""Bytes of a message that the list shows."""

TEXT_BYTES, HEX_BYTES = 16_384, 4_096
"""Bytes of a message that its page shows as text and in hexadecimal digits at most."""

SHOWN, SHOWN_MAX = 30, 500
"""Messages in the list, at first and at most."""

READINGS_SHOWN = 20
"""Readings that today's drivers find in a message, and that its page lists at most."""

MS = 1000


class Entry(NamedTuple):
    """A message: its reason in words, the remedy, and its first bytes."""

    url: str
    number: int
    received: Ago
    moment: str
    source: str
    channel: str
    what: str
    remedy: str
    reason: str
    begins: str


class Group(NamedTuple):
    """Messages in the list that are there for the same kind of reason."""

    what: str
    remedy: str
    entries: list[Entry]


class Understood(NamedTuple):
    """A reading that today's drivers find in a message."""

    name: str
    gravity: str
    temp: str


async def show(visit: Visit) -> Page:
    """Show the list of messages, with the ways to try them again."""
    devices = [state.device for state in await visit.services.devices.states()]
    names = sorted({device.title for device in devices}, key=str.casefold)
    state = await visit.services.quarantine.state()
    part = await visit.include("quarantine.list", {"last": visit.query.get("last", "")})
    choices = [("", visit.t("quarantine.device_choose")), *((name, name) for name in names)]
    values = {"list": part, "choices": choices, "any": state.items > 0}
    return Page("quarantine.html", visit.t("quarantine.title"), values, menu="more")


async def entries(visit: Visit) -> Part:
    """Show the newest messages by kind of reason, the kind of the newest one first."""
    limit = _limit(visit)
    quarantine = visit.services.quarantine
    state = await quarantine.state()
    items = [_entry(visit, item) for item in reversed(await quarantine.newest(limit))]
    groups: dict[str, Group] = {}
    for entry in items:
        groups.setdefault(entry.what, Group(entry.what, entry.remedy, [])).entries.append(entry)
    values = {
        "groups": [*groups.values()],
        "count": visit.t("quarantine.count", n=state.items),
        "shown": visit.t("quarantine.shown", n=len(items)) if state.items > len(items) else "",
        "more": visit.url("quarantine", {"last": SHOWN_MAX})
        if state.items > len(items) and limit < SHOWN_MAX
        else "",
        "pushed_out": visit.t("quarantine.pushed_out", n=state.pushed_out) if state.pushed_out else "",
    }
    return Part("parts/quarantine.html", ("quarantine",), values)


async def one(visit: Visit) -> Page:
    """Show all of a message, and what is understood of it today."""
    item = await _item(visit)
    content = visit.services.quarantine.content(item)
    found, trouble = _today(visit, item)
    values = {
        "entry": _entry(visit, item),
        "size": visit.t("quarantine.bytes", n=len(content)),
        "text": raw.shown(content, TEXT_BYTES),
        "hex": raw.in_hex(content, HEX_BYTES),
        "cut": visit.t("quarantine.cut", n=TEXT_BYTES) if len(content) > TEXT_BYTES else "",
        "query": item.query if item.body else "",
        "label": item.label,
        "found": found,
        "trouble": trouble,
        "refused": kind_of(item) == "refused",
    }
    title = visit.t("quarantine.one", number=str(item.id))
    return Page("quarantined.html", title, values, menu="more")


async def body(visit: Visit) -> web.Response:
    """Send the bytes of a message as they arrived, as a file."""
    item = await _item(visit)
    headers = {
        "X-Content-Type-Options": "nosniff",
        hdrs.CACHE_CONTROL: "private, no-store",
        # Anybody may have sent these bytes: a browser must not show them as a page of this origin.
        hdrs.CONTENT_DISPOSITION: f'attachment; filename="quarantine-{item.id}"',
    }
    content = visit.services.quarantine.content(item)
    return web.Response(body=content, content_type="application/octet-stream", headers=headers)


async def replay(visit: Visit) -> Moved:
    """Try again one message, all of a device, or all."""
    fields, quarantine = visit.fields, visit.services.quarantine
    if "number" in fields:
        number = fields["number"]
        if not number.isdecimal():
            raise NotFound(visit.t("error.no_payload", number=number))
        item = await quarantine.find(int(number))
        done = await quarantine.replay(numbers=[item.id])
        url = visit.url("quarantine.item", id=item.id) if done.left else visit.url("quarantine")
        return Moved(url, _outcome(visit, done))
    device = None
    if "device" in fields:
        device = fields.get("other", "").strip() or fields["device"]
        if not device:
            raise InvalidInput(visit.t("quarantine.device_missing"))
    done = await quarantine.replay(device=device)
    return Moved(visit.url("quarantine"), _outcome(visit, done))


async def _item(visit: Visit) -> Quarantined:
    try:
        return await visit.services.quarantine.find(visit.path_id("id"))
    except NotFound:
        raise NotFound(visit.t("error.no_payload", number=visit.path_text("id"))) from None


def _limit(visit: Visit) -> int:
    given = visit.query.get("last", "")
    return min(int(given), SHOWN_MAX) if given.isdecimal() and 0 < len(given) < 6 else SHOWN


def _entry(visit: Visit, item: Quarantined) -> Entry:
    at, kind = item.received_at / MS, kind_of(item)
    return Entry(
        url=visit.url("quarantine.item", id=item.id),
        number=item.id,
        received=visit.words.ago(at),
        moment=visit.words.moment(at),
        source=item.source,
        channel=item.channel,
        what=visit.t(f"quarantine.{kind}.what"),
        remedy=visit.t(f"quarantine.{kind}.remedy"),
        reason=item.reason,
        begins=raw.shown(visit.services.quarantine.content(item), LIST_BYTES),
    )


def _today(visit: Visit, item: Quarantined) -> tuple[list[Understood], str]:
    """Return the readings that a replay would find now, and why it would find none or not all."""
    if kind_of(item) == "refused":
        return [], ""
    try:
        decoded = visit.services.quarantine.decode(item)
    except DriverError as error:
        return [], str(error)
    return [_understood(visit, report) for report in decoded.reports[:READINGS_SHOWN]], decoded.trouble or ""


def _understood(visit: Visit, report: Report) -> Understood:
    no_unit = visit.t("quarantine.no_unit")
    gravity_unit = {"G": "SG", "P": "°P"}.get(report.gravity_unit or "", f"({no_unit})")
    temp_unit = f"°{report.temp_unit}" if report.temp_unit else f"({no_unit})"
    return Understood(
        report.name or report.stable_id,
        f"{report.gravity} {gravity_unit}" if report.gravity is not None else NOTHING,
        f"{report.temp} {temp_unit}" if report.temp is not None else NOTHING,
    )


def _outcome(visit: Visit, done: Replayed) -> str:
    """Return the result of a replay as a sentence or two."""
    said = [
        visit.t(f"quarantine.{name}", n=count)
        for name, count in (("understood", done.understood), ("left", done.left))
        if count
    ]
    return " ".join(said) or visit.t("quarantine.nothing")


# Not for keys that may only look, because a message may hold the key of a device.
ROWS = (
    Row(
        "GET",
        "/quarantine",
        show,
        "quarantine",
        "Messages that were not understood",
        scope="admin",
        owner_only=True,
    ),
    Row(
        "GET",
        "/quarantine/list",
        entries,
        "quarantine.list",
        "The list of them",
        scope="admin",
        owner_only=True,
    ),
    Row(
        "POST",
        "/quarantine/replay",
        replay,
        "quarantine.replay",
        "Try messages again",
        scope="admin",
        owner_only=True,
    ),
    Row("GET", "/quarantine/{id}", one, "quarantine.item", "One message", scope="admin", owner_only=True),
    Row("GET", "/quarantine/{id}/body", body, "quarantine.body", "Its bytes", scope="admin", owner_only=True),
)
