"""The page of alarms: what fires, what happened, the rules; and the buttons beside each alarm."""

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from aiohttp import hdrs

from gateway.domain.alarm import RULES, Alarm, AlarmEvent
from gateway.domain.audit import current_actor
from gateway.errors import InvalidInput, NotFound
from gateway.http.middleware import host_of
from gateway.services.alarm_subjects import Subject, history_of, is_of, names_of
from gateway.services.alarms import snooze_until
from gateway.services.channels import ChannelState
from gateway.ui.alarm_words import LATER, SIGNS, address_of, own_alarms, shown, title_of
from gateway.ui.forms import Form, among
from gateway.ui.pages import ROOT, Answer, Moved, Page, Part, Row, Visit
from gateway.ui.views.alarm_rules import lines
from gateway.ui.views.login import checked_target
from gateway.ui.words import Ago

SHOWN = 50
"""Events of the history on the page."""


class Happened(NamedTuple):
    """A line of the history. `text` is English."""

    kind: str
    sign: str
    title: str
    about: str
    url: str
    text: str
    moment: str


class LaterForm(Form):
    """A time of quiet."""

    until: Annotated[str, among(LATER)]


class TestForm(Form):
    """The rule whose words a test has, and the channel; blank for all channels."""

    rule: str = ""
    channel: str = ""


class ShownChannel(NamedTuple):
    """A channel, its state in words and sign, when it took a message last, and its trouble in English."""

    name: str
    kind: str
    state: str
    sign: str
    sent: Ago | None
    trouble: str


async def show(visit: Visit) -> Page:
    """Show what fires, what happened, and the rules."""
    return await _page(visit)


async def _page(visit: Visit, outcomes: Sequence[tuple[str, str]] = (), wrong: str = "") -> Page:
    viewer = visit.viewer
    channels = await visit.services.channels.states(viewer.account_id) if viewer.may_change else []
    values = {
        "open": await visit.include("alarms.open"),
        "rules": await lines(visit),
        "channels": [_channel(visit, each) for each in channels],
        "choice_of_channel": [
            ("", visit.t("alarms.test.all")),
            *((each.channel.name, each.channel.name) for each in channels),
        ],
        "choices": [(name, title_of(visit, name)) for name in RULES],
        "outcomes": outcomes,
        "wrong": wrong,
    }
    return Page("alarms.html", visit.t("alarms.title"), values, menu="alarms", status=422 if wrong else 200)


def _channel(visit: Visit, state: ChannelState) -> ShownChannel:
    channel, words = state.channel, visit.words
    word, sign = (
        ("paused", "quiet") if channel.paused else ("trouble", "bad") if state.trouble else ("well", "good")
    )
    return ShownChannel(
        channel.name,
        channel.kind,
        visit.t(f"alarms.channel.{word}"),
        sign,
        None if state.sent_at is None else words.ago(state.sent_at),
        state.trouble,
    )


async def fires(visit: Visit) -> Part:
    """Show what fires, what was acknowledged, and the history."""
    events = await history_of(visit.services.alarms, visit.viewer.account_id, SHOWN)
    names = await names_of(visit.store, ((alarm.scope, alarm.subject) for alarm, _ in events))
    values = {
        "firing": await shown(visit, own_alarms(visit, ("firing", "snoozed"))),
        "acknowledged": await shown(visit, own_alarms(visit, ("acknowledged",))),
        "events": [_happened(visit, alarm, event, names) for alarm, event in events],
    }
    return Part("parts/alarms.html", ("alarm",), values)


def _happened(visit: Visit, alarm: Alarm, event: AlarmEvent, names: Mapping[Subject, str]) -> Happened:
    kind = visit.t("alarms.late") if event.late else visit.t(f"alarms.event.{event.kind}")
    return Happened(
        kind=kind,
        sign=SIGNS[alarm.severity] if event.kind == "fired" and not event.late else "quiet",
        title=title_of(visit, alarm.rule),
        about="" if alarm.scope == "gateway" else names[alarm.scope, alarm.subject],
        url=address_of(visit, alarm),
        text=event.text,
        moment=visit.words.moment(event.at),
    )


async def acknowledge(visit: Visit) -> Moved:
    """End the reminders of an alarm, and go back to where the button was."""
    alarm = _own(visit)
    await visit.services.alarms.acknowledge(alarm.id, current_actor().name, visit.viewer.account_id)
    return Moved(_back(visit), visit.t("alarms.acknowledged", title=title_of(visit, alarm.rule)))


async def later(visit: Visit) -> Moved:
    """Be quiet about an alarm for a while, and go back to where the button was."""
    alarm, form = _own(visit), visit.read(LaterForm).value
    if form is None:
        raise InvalidInput(visit.t("form.wrong"))
    until = snooze_until(form.until, visit.services.clock.now())
    await visit.services.alarms.snooze(alarm.id, until, current_actor().name, visit.viewer.account_id)
    notice = visit.t("alarms.quiet", title=title_of(visit, alarm.rule), until=visit.words.moment(until))
    return Moved(_back(visit), notice)


def _own(visit: Visit) -> Alarm:
    """Return the alarm of the path; `NotFound` unless it fires and is the viewer's."""
    wanted, account_id = visit.path_id("id"), visit.viewer.account_id
    for alarm in visit.services.alarms.firing(account_id):
        if alarm.id == wanted and is_of(account_id, alarm):
            return alarm
    raise NotFound(visit.t("alarms.gone"))


def _back(visit: Visit) -> str:
    """Return the page that the form was on, by the Referer that a page of ours sends."""
    parts = urlsplit(visit.request.headers.get(hdrs.REFERER, ""))
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    is_ours = parts.netloc == host_of(visit.request) and target.startswith(f"{visit.base}{ROOT}/")
    return checked_target(visit, target) if is_ours else visit.url("alarms")


async def send_test(visit: Visit) -> Answer:
    """Send a test through the channels, and show what became of it."""
    form, channels = visit.read(TestForm).value or TestForm(), visit.services.channels
    account_id = visit.viewer.account_id
    names = [each.channel.name for each in await channels.states(account_id)]
    wanted = [name for name in names if form.channel in {"", name}]
    if not wanted or (form.rule and form.rule not in RULES):
        return await _page(visit, wrong=visit.t("alarms.test.none"))
    return await _page(visit, await channels.test_each(wanted, account_id, form.rule))


ROWS = (
    Row("GET", "/alarms", show, "alarms", "What fires, what happened, the rules"),
    Row("GET", "/alarms/open", fires, "alarms.open", "What fires and what happened"),
    Row("POST", "/alarms/test", send_test, "alarms.test", "Send a test", scope="admin"),
    Row("POST", "/alarms/{id}/ack", acknowledge, "alarms.ack", "Acknowledge an alarm", scope="admin"),
    Row("POST", "/alarms/{id}/later", later, "alarms.later", "Be quiet about an alarm", scope="admin"),
)
"""The page of alarms."""
