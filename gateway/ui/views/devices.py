"""All devices, and the inbox: devices whose readings wait for the owner's word."""

from typing import NamedTuple

from gateway.domain.account import OWNER_ID
from gateway.domain.brewsession import BrewSession
from gateway.domain.inbox import WaitingName
from gateway.errors import NotFound
from gateway.services.devices import DeviceState, own_states
from gateway.ui.device_words import State, Values, family_title, state_of, values_of
from gateway.ui.pages import Moved, Page, Part, Row, View, Visit
from gateway.ui.words import Ago

QUIET_S = 30 * 86_400
"""Seconds after which a device in no brew is folded away."""

MS = 1000


class Card(NamedTuple):
    """A device in the list; `brew` is the batch code of its brew, or empty."""

    url: str
    name: str
    family: str
    brew: str
    brew_url: str
    values: Values
    state: State


class Waiting(NamedTuple):
    """A device whose readings wait."""

    number: int
    name: str
    family: str
    source: str
    why: str
    readings: str
    last: Ago
    accepted: bool


class Refused(NamedTuple):
    """A device whose readings are not kept for now."""

    number: int
    name: str
    until: str


async def show(visit: Visit) -> Page:
    """Show all devices that the viewer may see."""
    values = {"rows": await visit.include("devices.rows"), "none": not await visible(visit)}
    return Page("devices.html", visit.t("menu.devices"), values, menu="devices")


async def rows(visit: Visit) -> Part:
    """Show the devices, the one that reported last first, and the inbox above them."""
    states = await visible(visit)
    brews = {brew.id: brew for brew in await visit.services.devices.brews(visit.viewer.account_id)}
    states.sort(key=lambda state: state.summary.last_seen_at or 0, reverse=True)
    cards = [(state, _card(visit, state, brews)) for state in states]
    gone = [card for state, card in cards if _is_gone(state, visit.now)]
    waiting, refused = await _inbox(visit) if visit.viewer.is_owner else ([], [])
    values = {
        "cards": [card for state, card in cards if not _is_gone(state, visit.now)],
        "gone": gone,
        "gone_title": visit.t("devices.gone", n=len(gone)),
        "waiting": waiting,
        "refused": refused,
        "refused_title": visit.t("devices.refused", n=len(refused)),
        "add": visit.url("devices.add") if visit.has("devices.add") and visit.viewer.may_change else "",
    }
    return Part("parts/devices.html", ("device", "reading"), values)


async def accept(visit: Visit) -> Moved:
    """Make readings of what waits."""
    done = await visit.services.acceptance.accept([_number(visit)])
    notice = visit.t("devices.accepted", n=done.stored)
    if done.left:
        notice += f" {visit.t('devices.left', n=done.left)}"
    return Moved(visit.url("devices"), notice)


async def refuse(visit: Visit) -> Moved:
    """Remove what waits, and remember the device as refused."""
    gone = await visit.services.intake.inbox.refuse([_number(visit)])
    return Moved(visit.url("devices"), visit.t("devices.refused_done", n=gone))


async def ask_refuse(visit: Visit) -> Page:
    """Ask before readings are removed."""
    number = visit.path_id("id")
    found = next((name for name in await visit.services.devices.waiting() if name.id == number), None)
    if found is None:
        raise NotFound
    name = found.name or found.stable_id
    values = {
        "question": visit.t("devices.refuse_question", name=name, n=found.readings),
        "explain": visit.t("devices.refuse_explain"),
        "action": visit.url("devices.refuse", id=number),
        "button": visit.t("devices.refuse"),
        "back": visit.url("devices"),
    }
    return Page("confirm.html", visit.t("devices.refuse"), values, menu="devices")


async def allow(visit: Visit) -> Moved:
    """Take a refusal back."""
    if not await visit.services.intake.inbox.allow(_number(visit)):
        raise NotFound
    return Moved(visit.url("devices"), visit.t("devices.allowed"))


async def visible(visit: Visit) -> list[DeviceState]:
    """Return the devices that the viewer may see: all, or those in a brew of the viewer's account."""
    states = await visit.services.devices.states()
    if visit.viewer.account_id == OWNER_ID:
        return states
    return own_states(states, await visit.services.devices.brews(visit.viewer.account_id))


def _card(visit: Visit, state: DeviceState, brews: dict[int, BrewSession]) -> Card:
    device = state.device
    brew = brews.get(device.session_id or 0)
    return Card(
        url=visit.url("device", id=device.id),
        name=device.title,
        family=family_title(device.family),
        brew=brew.batchcode if brew is not None else "",
        brew_url=visit.url("brew", id=brew.id) if brew is not None and visit.has("brew") else "",
        values=values_of(state, visit.words),
        state=state_of(state, visit.words),
    )


def _is_gone(state: DeviceState, now: float) -> bool:
    last = state.summary.last_seen_at
    return state.device.session_id is None and last is not None and now - last > QUIET_S


async def _inbox(visit: Visit) -> tuple[list[Waiting], list[Refused]]:
    waiting = [_waiting(visit, name) for name in await visit.services.devices.waiting()]
    refused = [
        Refused(name.id, name.name or name.device_key, visit.words.date(until))
        for name, until in await visit.services.devices.refused(visit.now)
    ]
    return waiting, refused


def _waiting(visit: Visit, name: WaitingName) -> Waiting:
    return Waiting(
        number=name.id,
        name=name.name or name.stable_id,
        family=family_title(name.family),
        source=name.source,
        why=visit.t(f"devices.waits.{name.reason.name.lower()}"),
        readings=visit.t("devices.readings", n=name.readings),
        last=visit.words.ago(name.last_at / MS),
        accepted=name.accepted,
    )


def _number(visit: Visit) -> int:
    return visit.path_id("id")


def _form(path: str, view: View, name: str, summary: str) -> Row:
    return Row("POST", f"/devices{path}", view, name, summary, scope="admin", owner_only=True)


ROWS = (
    Row("GET", "/devices", show, "devices", "All devices"),
    Row("GET", "/devices/rows", rows, "devices.rows", "The list of devices"),
    Row(
        "GET",
        "/devices/waiting/{id}/refuse",
        ask_refuse,
        "devices.refuse.ask",
        "Ask before a device is refused",
        scope="admin",
        owner_only=True,
    ),
    _form("/waiting/{id}/accept", accept, "devices.accept", "Accept a device whose readings wait"),
    _form("/waiting/{id}/refuse", refuse, "devices.refuse", "Refuse a device whose readings wait"),
    _form("/refused/{id}/allow", allow, "devices.allow", "Take a refusal back"),
)
