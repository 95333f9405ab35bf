"""The page of sending on: the state of each target, the brews there, and what is done with one tap."""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.domain.target import SERVICE
from gateway.services.sending import BrewSending, SendingBrew, TargetSending
from gateway.ui.pages import Moved, Page, Part, Visit
from gateway.ui.views import sending_brew, sending_target
from gateway.ui.views.sending_target import NAMED, OwnersRow, sentence
from gateway.ui.words import Ago

STATE_SIGNS = {
    "well": "good", "sent": "good", "waiting": "good", "partly": "warn", "not_taken": "warn",
    "retries": "warn", "held": "warn", "blocked": "bad", "paused": "quiet", "off": "quiet", "ended": "quiet",
}  # fmt: skip
"""The sign of each kind of state."""


class TargetCard(NamedTuple):
    """A target as the page shows it."""

    name: str
    address: str
    state: str
    sign: str
    reason: str
    next_at: str
    sent: str
    waiting: str
    oldest: Ago | None
    refused: str
    newest: Ago | None
    is_paused: bool
    from_options: bool
    kind: str = ""
    goes: str = ""
    is_latest: bool = False
    superseded: str = ""


class Cell(NamedTuple):
    """A brew at a target: its state in words and sign, counts, and the number there."""

    state: str
    sign: str
    counts: str
    number: str
    url: str


class BrewLine(NamedTuple):
    """A brew, with a cell for each target."""

    label: str
    title: str
    url: str
    cells: tuple[Cell, ...]


async def show(visit: Visit) -> Page:
    """Show all targets, and the brews at each."""
    return Page(
        "sending.html",
        visit.t("sending.title"),
        {"states": await visit.include("sending.states")},
        menu="sending",
    )


async def states(visit: Visit) -> Part:
    """Show the state of each target, the brews there, and the brews that go nowhere."""
    sending = visit.services.sending
    found, brews = await sending.overview(), await sending.brews(visit.viewer.account_id)
    known = {id for each in found if each.target.kind == SERVICE for id in each.brews}
    taken = {b.session_id for each in found for b in each.brews.values() if b.number is not None}
    running = [brew for brew in brews if brew.is_running]
    services = [each for each in found if each.target.kind == SERVICE]
    values = {
        "services": [each.target.name for each in services],
        "targets": [_card(visit, each) for each in found],
        "running": [_line(visit, brew, services) for brew in running],
        "finished": [
            _line(visit, brew, services) for brew in brews if brew.session.id in known and not brew.is_running
        ],
        "nowhere": [
            _line(visit, brew, services) for brew in running if services and brew.session.id not in taken
        ],
    }
    return Part("parts/sending.html", ("sending",), values)


def _card(visit: Visit, each: TargetSending) -> TargetCard:
    words = visit.words
    return TargetCard(
        name=each.target.name,
        address=each.target.address,
        state=visit.t(f"sending.state.{each.state}"),
        sign=STATE_SIGNS[each.state],
        reason=each.reason,
        next_at=_next(visit, each.next_at) if each.state in {"retries", "blocked"} else "",
        sent=words.count(each.sent),
        waiting=words.count(each.waiting),
        oldest=None if each.oldest_at is None else words.ago(each.oldest_at),
        refused=words.count(each.refused),
        newest=None if each.last_at is None else words.ago(each.last_at),
        is_paused=each.target.paused,
        from_options=each.target.from_options,
        kind="" if each.target.kind == SERVICE else visit.t(f"sending.kind.{each.target.kind}"),
        goes="" if each.target.kind == SERVICE else _goes(visit, each),
        is_latest=bool(each.target.options.get("latest")),
        superseded=words.count(each.superseded),
    )


def _goes(visit: Visit, each: TargetSending) -> str:
    """Return what goes to a target that is no Brewing Data Service, in words."""
    if not each.goes:
        return visit.t("sending.goes.nothing")
    if any(what == "all" for what, _ in each.goes):
        return visit.t("sending.goes.all")
    return visit.t("sending.goes.some", names=", ".join(name for _, name in each.goes))


def _next(visit: Visit, at: float | None) -> str:
    return "" if at is None else visit.t("sending.next", time=visit.words.clock(at))


def _line(visit: Visit, brew: SendingBrew, targets: Sequence[TargetSending]) -> BrewLine:
    return BrewLine(
        label=brew.session.batchcode,
        title=brew.title,
        url=visit.url("brew", id=brew.session.id) if visit.has("brew") else "",
        cells=tuple(
            _cell(visit, brew.session.id, each.target.name, each.brews.get(brew.session.id))
            for each in targets
        ),
    )


def _cell(visit: Visit, session_id: int, target: str, brew: BrewSending | None) -> Cell:
    address = visit.url("sending.number", name=target, id=session_id)
    if brew is None:
        return Cell("", "", "", visit.t("sending.choose"), address)
    parts = [visit.t("sending.count.sent", n=brew.sent)]
    if brew.waiting:
        parts.append(visit.t("sending.count.waiting", n=brew.waiting))
    if brew.refused:
        parts.append(visit.t("sending.count.refused", n=brew.refused))
    number = visit.t("sending.choose")
    if brew.number is not None:
        number = visit.t("sending.number_there", number=str(brew.number))
    idle = brew.state == "sent" and not brew.sent
    state = visit.t("sending.brew.idle" if idle else f"sending.brew.{brew.state}")
    return Cell(state, "quiet" if idle else STATE_SIGNS[brew.state], ", ".join(parts), number, address)


async def test(visit: Visit) -> Page:
    """Try a target out, and show what was found."""
    name = visit.path_text("name")
    findings = await visit.services.targets.test(name)
    brews = await visit.services.sending.brews(visit.viewer.account_id)
    labels = {str(brew.session.id): brew.session.batchcode for brew in brews}
    values = {"findings": [sentence(visit, finding, labels) for finding in findings], "name": name}
    return Page("sending_test.html", visit.t("sending.test.title", name=name), values, menu="sending")


async def pause(visit: Visit) -> Moved:
    """Send nothing to a target until it is resumed."""
    name = visit.path_text("name")
    await visit.services.targets.pause(name)
    return Moved(visit.url("sending"), visit.t("sending.paused", name=name))


async def resume(visit: Visit) -> Moved:
    """Go on sending to a target."""
    name = visit.path_text("name")
    await visit.services.targets.resume(name)
    return Moved(visit.url("sending"), visit.t("sending.resumed", name=name))


async def ask_remove(visit: Visit) -> Page:
    """Ask whether a target is to be removed."""
    target = await visit.services.targets.named(visit.path_text("name"))
    values = {
        "question": visit.t("sending.remove.ask", name=target.name),
        "explain": visit.t("sending.remove.explain"),
        "action": visit.url("sending.remove", name=target.name),
        "button": visit.t("sending.remove.button"),
        "back": visit.url("sending"),
    }
    return Page("confirm.html", visit.t("sending.remove.title"), values, menu="sending")


async def remove(visit: Visit) -> Moved:
    """Forget a target, and delete the file of its key if the gateway made that."""
    name = visit.path_text("name")
    await visit.services.targets.remove(name)
    return Moved(visit.url("sending"), visit.t("sending.remove.done", name=name))


ROWS = (
    OwnersRow("GET", "/sending", show, "sending", "Services that get the readings, and the brews there"),
    OwnersRow("GET", "/sending/states", states, "sending.states", "The state of each service"),
    OwnersRow("POST", f"{NAMED}/test", test, "sending.test", "Try a service out"),
    OwnersRow("POST", f"{NAMED}/pause", pause, "sending.pause", "Pause sending to a service"),
    OwnersRow("POST", f"{NAMED}/resume", resume, "sending.resume", "Resume sending to a service"),
    OwnersRow("GET", f"{NAMED}/remove", ask_remove, "sending.ask_remove", "Ask before a service is removed"),
    OwnersRow("POST", f"{NAMED}/remove", remove, "sending.remove", "Remove a service"),
    *sending_target.ROWS,
    *sending_brew.ROWS,
)
