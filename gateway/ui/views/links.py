"""Links that need no key: a screen on the wall, and a picture of a brew. Made and revoked in the settings."""

from typing import Annotated, NamedTuple

from gateway.domain.brewsession import BrewSession
from gateway.domain.texts import LABEL_CHARACTERS, decimal_digits
from gateway.domain.view_link import VIEW_LINK_KINDS, ViewLinkKind
from gateway.errors import InvalidInput, NotFound
from gateway.services.links import PATHS
from gateway.services.qr import QrCode, as_path
from gateway.ui.addresses import own_address
from gateway.ui.forms import Filled, Form, among
from gateway.ui.pages import Answer, Moved, Page, Row, Visit


def _name(text: str) -> str:
    if len(text) > LABEL_CHARACTERS or not text.isprintable():
        raise ValueError("form.wrong")
    return text


def _digits(text: str) -> str:
    if not decimal_digits(text):
        raise ValueError("form.wrong")
    return text


class NewLink(Form):
    """A new link: its name, its kind, and the brew that it shows, if not those that run."""

    link_name: Annotated[str, _name]
    kind: Annotated[str, among(VIEW_LINK_KINDS)] = "tv"
    brew: Annotated[str, _digits] = ""


class LinkLine(NamedTuple):
    """A link as the page shows it."""

    name: str
    what: str
    since: str
    revoke_url: str


async def show(visit: Visit) -> Answer:
    """Show the links, and the form for a new one."""
    return await _page(visit)


async def _page(visit: Visit, filled: Filled[NewLink] | None = None) -> Page:
    running = {brew.id: brew for brew in await visit.services.links.running(visit.viewer.account_id)}
    links = visit.services.links.all(visit.viewer.account_id)
    for session_id in {link.session_id for link in links} - {None, *running}:
        brew = await visit.store.sessions.get(session_id or 0)
        if brew is not None:
            running[brew.id] = brew
    values = {
        "links": [
            LinkLine(
                name=link.name,
                what=_what(visit, link.kind, running.get(link.session_id or 0)),
                since=visit.words.date(link.created_at),
                revoke_url=visit.url("links.revoke.ask", id=link.id),
            )
            for link in links
        ],
        "filled": filled,
        "kinds": [(kind, visit.t(f"links.kind.{kind}")) for kind in VIEW_LINK_KINDS],
        "brews": [("", visit.t("links.running")), *((brew.id, brew.batchcode) for brew in running.values())],
    }
    status = 200 if filled is None else 422
    return Page("links.html", visit.t("links.title"), values, menu="more", status=status)


def _what(visit: Visit, kind: ViewLinkKind, brew: BrewSession | None) -> str:
    shown = visit.t("links.running") if brew is None else brew.batchcode
    return f"{visit.t(f'links.kind.{kind}')}: {shown}"


async def make(visit: Visit) -> Answer:
    """Make a link, and show its address once."""
    filled = visit.read(NewLink)
    if filled.value is None:
        return await _page(visit, filled)
    wanted, viewer, brew = filled.value, visit.viewer, None
    if wanted.brew:
        brew = await visit.store.sessions.get(int(wanted.brew))
        if brew is None or brew.account_id != viewer.account_id:
            raise NotFound(visit.t("links.no_brew"))
    options = {
        "language": viewer.language,
        "gravity_unit": viewer.gravity_unit,
        "temp_unit": viewer.temp_unit,
        "zone": str(viewer.zone),
    }
    kind: ViewLinkKind = "tv" if wanted.kind == "tv" else "picture"
    try:
        token, link = await visit.services.links.make(
            viewer.account_id, kind, wanted.link_name, brew, options
        )
    except InvalidInput:
        filled.wrong("link_name", "links.too_many")
        return await _page(visit, filled)
    path = PATHS[kind].format(token=token)
    address = own_address(visit)
    code: QrCode | None = as_path(address + path) if address else None
    values = {"address": (address or str(visit.request.url.origin())) + path, "code": code, "kind": kind}
    return Page("link_made.html", visit.t("links.made", name=link.name), values, menu="more")


async def ask_to_revoke(visit: Visit) -> Answer:
    """Ask before a link is revoked."""
    link_id = visit.path_id("id")
    link = next(
        (each for each in visit.services.links.all(visit.viewer.account_id) if each.id == link_id), None
    )
    if link is None:
        raise NotFound(visit.t("links.no_link"))
    values = {
        "question": visit.t("links.revoke.ask", name=link.name),
        "explain": visit.t("links.revoke.explain"),
        "action": visit.url("links.revoke", id=link.id),
        "button": visit.t("links.revoke"),
        "back": visit.url("links"),
    }
    return Page("confirm.html", visit.t("links.revoke"), values, menu="more")


async def revoke(visit: Visit) -> Answer:
    """Revoke a link."""
    await visit.services.links.revoke(visit.viewer.account_id, visit.path_id("id"))
    return Moved(visit.url("links"), visit.t("links.revoked"))


ROWS = (
    Row("GET", "/settings/links", show, "links", "Links that need no key", "admin"),
    Row("POST", "/settings/links", make, "links.make", "Make a link", "admin", no_store=True),
    Row("GET", "/settings/links/{id}/revoke", ask_to_revoke, "links.revoke.ask", "Ask before that", "admin"),
    Row("POST", "/settings/links/{id}/revoke", revoke, "links.revoke", "Revoke a link", "admin"),
)
