"""Forms about one target: a new one, and another key."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

from gateway.config import base_url, is_key
from gateway.domain.target import MIRROR, NAME, PER_MINUTE, PER_MINUTE_MAX, UPSTREAM
from gateway.domain.texts import decimal_digits
from gateway.errors import NameTaken
from gateway.forward.probe import ProbeFinding
from gateway.network import sends_key_in_the_clear
from gateway.ui.forms import Filled, Form
from gateway.ui.pages import Answer, Moved, Page, Row, Visit

OwnersRow = partial(Row, scope="admin", owner_only=True)

NAMED = "/sending/{name}"

URL_CHARACTERS, KEY_CHARACTERS = 2000, 10_000


class Sentence(NamedTuple):
    """A finding of a test."""

    ok: bool
    text: str


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError("sending.wrong.name")
    if text in {UPSTREAM, MIRROR}:
        raise ValueError("sending.wrong.reserved")
    return text


def _url(text: str) -> str:
    if len(text) > URL_CHARACTERS:
        raise ValueError("sending.wrong.url")
    try:
        return base_url(text)
    except ValueError:
        raise ValueError("sending.wrong.url") from None


def _key(text: str) -> str:
    if len(text) > KEY_CHARACTERS or not is_key(text):
        raise ValueError("sending.wrong.key")
    return text


def _rate(text: str) -> int:
    if not decimal_digits(text) or not 1 <= int(text) <= PER_MINUTE_MAX:
        raise ValueError("sending.wrong.rate")
    return int(text)


class AddForm(Form):
    """A new target."""

    name: Annotated[str, _name]
    url: Annotated[str, _url]
    key: Annotated[str, _key]
    per_minute: Annotated[int, _rate] = PER_MINUTE
    plaintext: str = ""
    anyway: str = ""


class KeyForm(Form):
    """Another key for a target."""

    key: Annotated[str, _key]
    plaintext: str = ""
    anyway: str = ""


async def add(visit: Visit) -> Page:
    """Show the form for a new target."""
    return _add_page(visit, Filled())


def _add_page(visit: Visit, filled: Filled[AddForm], fault: ProbeFinding | None = None) -> Page:
    _forget_key(filled)
    return Page(
        "sending_add.html",
        visit.t("sending.add.title"),
        {
            "filled": filled,
            "fault": sentence(visit, fault, {}) if fault else None,
            "rate": str(PER_MINUTE),
            # A tick that was set stays on the form, or one question would undo the answer to the other.
            "asks_plaintext": "plaintext" in filled.errors or "plaintext" in filled.given,
            "asks_anyway": fault is not None or "anyway" in filled.given,
        },
        menu="sending",
        status=422 if filled.errors else 200,
    )


def _forget_key(filled: Filled[Any]) -> None:
    """Take the typed key out of a form that is shown again: a key is on no page."""
    filled.given = {name: text for name, text in filled.given.items() if name != "key"}


async def add_target(visit: Visit) -> Answer:
    """Add a target, after address and key were tried; its key goes into a file."""
    filled, targets = visit.read(AddForm), visit.services.targets
    new = filled.value
    if new is None:
        return _add_page(visit, filled)
    if sends_key_in_the_clear(new.url) and not new.plaintext:
        filled.wrong("plaintext", "sending.wrong.plaintext")
        return _add_page(visit, filled)
    if not new.anyway:
        fault = await targets.reach(new.url, new.key)
        if not fault.ok:
            filled.wrong("", "sending.wrong.tried")
            return _add_page(visit, filled, fault)
    try:
        await targets.add_with_key(new.name, new.url, new.key, new.per_minute)
    except NameTaken:
        filled.wrong("name", "sending.wrong.taken")
        return _add_page(visit, filled)
    return Moved(visit.url("sending"), visit.t("sending.add.done", name=new.name))


async def ask_key(visit: Visit) -> Page:
    """Show the form for another key of a target."""
    await visit.services.targets.named(visit.path_text("name"))
    return _key_page(visit, Filled())


def _key_page(visit: Visit, filled: Filled[KeyForm], fault: ProbeFinding | None = None) -> Page:
    _forget_key(filled)
    name = visit.path_text("name")
    values = {"filled": filled, "name": name, "fault": sentence(visit, fault, {}) if fault else None}
    title = visit.t("sending.key.title", name=name)
    return Page("sending_key.html", title, values, menu="sending", status=422 if filled.errors else 200)


async def change_key(visit: Visit) -> Answer:
    """Give a target another key, after the key was tried."""
    filled, targets = visit.read(KeyForm), visit.services.targets
    target = await targets.named(visit.path_text("name"))
    if filled.value is None:
        return _key_page(visit, filled)
    if not filled.value.anyway:
        fault = await targets.reach(target.url, filled.value.key)
        if not fault.ok:
            filled.wrong("", "sending.wrong.tried")
            return _key_page(visit, filled, fault)
    await targets.keep(target.name, target.url, filled.value.key)
    return Moved(visit.url("sending"), visit.t("sending.key.done", name=target.name))


def sentence(visit: Visit, finding: ProbeFinding, labels: Mapping[str, str]) -> Sentence:
    """Return a finding in the viewer's words; `labels` name brews by their ids."""
    session_id = finding.values.get("session_id", "")
    members = {**finding.values, "brew": labels.get(session_id, session_id)}
    return Sentence(finding.ok, visit.t(f"sending.found.{finding.kind}", **members))


ROWS = (
    OwnersRow("GET", "/sending/add", add, "sending.new", "The form for a new service"),
    OwnersRow("POST", "/sending/add", add_target, "sending.add", "Add a service"),
    OwnersRow("GET", f"{NAMED}/key", ask_key, "sending.new_key", "The form for another key"),
    OwnersRow("POST", f"{NAMED}/key", change_key, "sending.key", "Give a service another key"),
)
