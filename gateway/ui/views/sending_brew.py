"""Forms about one brew at a target: its number there, and readings that are sent again."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from gateway.domain.brewsession import BrewSession
from gateway.domain.target import SERVICE
from gateway.domain.texts import decimal_digits
from gateway.errors import InvalidInput, NotFound
from gateway.services.targets import RemoteSession
from gateway.ui.forms import Filled, Form, moment
from gateway.ui.pages import Answer, Moved, Page, Visit
from gateway.ui.views.sending_target import NAMED, OwnersRow

LISTED = 100
"""Brews of a service that a form lists at most, the newest first; any other number can be typed."""

NUMBER_MAX = 2**53 - 1


class Choice(NamedTuple):
    """A brew of the service that can be chosen."""

    number: str
    batchcode: str
    name: str
    about: str
    here: str
    chosen: bool


def _number(text: str) -> str:
    if not decimal_digits(text) or not 1 <= int(text) <= NUMBER_MAX:
        raise ValueError("sending.wrong.number")
    return text


class NumberForm(Form):
    """A brew's number at a target: one of the list, or a typed one."""

    number: Annotated[str, _number] = ""
    typed: Annotated[str, _number] = ""


class ResendForm(Form):
    """Readings to be looked for at a target again."""

    since: str
    brew: str = ""


async def ask_resend(visit: Visit) -> Page:
    """Show the form that sends readings again."""
    return await _resend_page(visit, Filled())


async def _resend_page(visit: Visit, filled: Filled[ResendForm]) -> Page:
    name = (await visit.services.targets.named(visit.path_text("name"))).name
    brews = await visit.services.sending.brews(visit.viewer.account_id)
    target = next(each for each in await visit.services.sending.overview() if each.target.name == name)
    there = [(str(b.session.id), b.session.batchcode) for b in brews if b.session.id in target.brews]
    options = [("", visit.t("sending.resend.all")), *there]
    is_mapped = target.target.kind != SERVICE
    values = {"filled": filled, "name": name, "brews": options, "is_mapped": is_mapped}
    title = visit.t("sending.resend.title", name=name)
    return Page("sending_resend.html", title, values, menu="sending", status=422 if filled.errors else 200)


async def resend(visit: Visit) -> Answer:
    """Look for readings at a target, and send the missing ones."""
    filled, name = visit.read(ResendForm), visit.path_text("name")
    since = 0
    if filled.value is not None:
        try:
            since = moment(filled.value.since, visit.viewer.zone)
        except ValueError as error:
            filled.wrong("since", str(error))
    if filled.value is None:
        return await _resend_page(visit, filled)
    session_id = int(filled.value.brew) if decimal_digits(filled.value.brew) else None
    if (await visit.services.targets.named(name)).kind != SERVICE:
        sent = await visit.services.mapped.resend(name, since, None)
        notice = visit.t("sending.resend.done.mapped", name=name, n=sum(sent.values()))
        return Moved(visit.url("sending"), notice)
    try:
        found = await visit.services.targets.resend(name, since, session_id)
    except InvalidInput:
        filled.wrong("brew", "sending.wrong.brew")
        return await _resend_page(visit, filled)
    return Moved(visit.url("sending"), visit.t("sending.resend.done", name=name, n=sum(found.values())))


async def ask_number(visit: Visit) -> Page:
    """Show the form that chooses a brew's number, with a list fetched from the target."""
    return await _number_page(visit, Filled())


async def _number_page(visit: Visit, filled: Filled[NumberForm]) -> Page:
    name, targets = visit.path_text("name"), visit.services.targets
    target, session = await targets.named(name), await _own_brew(visit)
    found: list[RemoteSession] = []
    fault = ""
    try:
        found = await targets.remote_sessions(name)
    except InvalidInput as error:
        fault = str(error)
    at = {each.target: each for each in await visit.services.sending.sending_of(session)}.get(name)
    number = None if at is None else at.number
    brews = await visit.services.sending.brews(visit.viewer.account_id)
    labels = {brew.session.id: brew.session.batchcode for brew in brews}
    choices = [_choice(visit, each, session.id, number, labels) for each in found[:LISTED]]
    chosen = [choice for choice in choices if choice.chosen]
    values = {
        "filled": filled,
        "name": target.name,
        "brew": session.batchcode,
        "choices": [*chosen, *(choice for choice in choices if not choice.chosen)],
        "cut": len(found) > LISTED,
        "listed": visit.words.count(LISTED),
        "fault": fault,
        "typed": "" if number is None or chosen else str(number),
        "is_sent": number is not None,
        "action": visit.url("sending.choose", name=target.name, id=session.id),
        "stop": visit.url("sending.stop", name=target.name, id=session.id),
    }
    title = visit.t("sending.number.title", brew=session.batchcode, name=target.name)
    return Page("sending_number.html", title, values, menu="sending", status=422 if filled.errors else 200)


def _choice(
    visit: Visit, each: RemoteSession, session_id: int, number: int | None, labels: Mapping[int, str]
) -> Choice:
    row = each.row
    others = [labels.get(other, str(other)) for other in each.here if other != session_id]
    return Choice(
        number=row["number"],
        batchcode=row["batchcode"],
        name=row["name"],
        about=" · ".join(text for text in (row["phase"], row["day"]) if text),
        here=visit.t("sending.number.here", brews=", ".join(others)) if others else "",
        chosen=row["number"] == str(number) or (number is None and each.like == session_id),
    )


async def choose_number(visit: Visit) -> Answer:
    """Send a brew on under the number that was chosen."""
    filled = visit.read(NumberForm)
    session = await _own_brew(visit)
    if filled.value is not None and not (filled.value.typed or filled.value.number):
        filled.wrong("typed", "sending.wrong.no_number")
    if filled.value is None:
        return await _number_page(visit, filled)
    name, number = visit.path_text("name"), int(filled.value.typed or filled.value.number)
    await visit.services.targets.map(session, name, number)
    notice = visit.t("sending.number.done", brew=session.batchcode, name=name, number=str(number))
    return Moved(visit.url("sending"), notice)


async def stop_brew(visit: Visit) -> Moved:
    """Send a brew to a target no longer; what is there stays there."""
    session, name = await _own_brew(visit), visit.path_text("name")
    await visit.services.targets.map(session, name, 0)
    return Moved(visit.url("sending"), visit.t("sending.stopped", brew=session.batchcode, name=name))


async def _own_brew(visit: Visit) -> BrewSession:
    session = await visit.store.sessions.get(visit.path_id("id"))
    if session is None or session.account_id != visit.viewer.account_id:
        raise NotFound
    return session


ROWS = (
    OwnersRow("GET", f"{NAMED}/resend", ask_resend, "sending.ask_resend", "The form that sends again"),
    OwnersRow("POST", f"{NAMED}/resend", resend, "sending.resend", "Send readings again"),
    OwnersRow("GET", f"{NAMED}/brews/{{id}}", ask_number, "sending.number", "The form for a brew's number"),
    OwnersRow("POST", f"{NAMED}/brews/{{id}}", choose_number, "sending.choose", "Choose a brew's number"),
    OwnersRow("POST", f"{NAMED}/brews/{{id}}/stop", stop_brew, "sending.stop", "Send a brew no longer"),
)
