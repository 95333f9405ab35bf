"""Alarms in the viewer's words. The sentence of an alarm itself is English, its title is not."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.domain.alarm import Alarm, State
from gateway.services.alarm_subjects import Subject, is_of, names_of
from gateway.ui.brew_words import link
from gateway.ui.pages import Visit
from gateway.ui.words import Ago

SIGNS = {"critical": "bad", "warning": "warn", "info": "good"}
"""The sign of each severity."""

LATER = ("1h", "8h", "tomorrow")
"""Times of quiet that a button offers."""

SEEN: tuple[State, ...] = ("firing", "snoozed")
"""States of alarms that stand beside their subject: who has acknowledged one has seen it."""

ASKS = frozenset({"done"})
"""Rules that ask: they take `not yet` as an answer."""

PAGES = {"brew": "brew", "device": "device"}
"""The page of a subject by its scope."""


class ShownAlarm(NamedTuple):
    """An alarm as a page shows it. `text` is English; `title`, `about` and `state` are the viewer's.

    `loud` says that it fires and nobody has acknowledged it. `asks` are addresses for a yes and a no to its
    question, None for a rule that asks nothing.
    """

    id: int
    title: str
    sign: str
    text: str
    about: str
    url: str
    since: Ago
    state: str
    loud: bool
    is_acknowledged: bool
    asks: str


def own_alarms(visit: Visit, states: Sequence[State] = ("firing",)) -> list[Alarm]:
    """Return the alarms of the viewer's account in these states, the worst first, quiet ones last."""
    account_id = visit.viewer.account_id
    found = visit.services.alarms.firing(account_id)
    own = [alarm for alarm in found if alarm.state in states and is_of(account_id, alarm)]
    return sorted(own, key=lambda alarm: alarm.state != "firing")


async def shown(visit: Visit, alarms: Sequence[Alarm], *, named: bool = True) -> list[ShownAlarm]:
    """Return alarms as a page shows them; without `named` the page itself is about their subject."""
    names: Mapping[Subject, str] = {}
    if named and alarms:
        names = await names_of(visit.store, ((alarm.scope, alarm.subject) for alarm in alarms))
    return [one(visit, alarm, names.get((alarm.scope, alarm.subject), "")) for alarm in alarms]


def one(visit: Visit, alarm: Alarm, about: str = "") -> ShownAlarm:
    """Return an alarm as a page shows it; `about` is the name of its subject."""
    words, at = visit.words, alarm.fired_at if alarm.fired_at is not None else alarm.since
    return ShownAlarm(
        id=alarm.id,
        title=title_of(visit, alarm.rule),
        sign=SIGNS[alarm.severity],
        text=alarm.text,
        about="" if alarm.scope == "gateway" else about,
        url=address_of(visit, alarm),
        since=words.ago(at),
        state=_state(visit, alarm),
        loud=alarm.state == "firing",
        is_acknowledged=alarm.state == "acknowledged",
        asks=link(visit, "brew.done", id=alarm.subject) if alarm.rule in ASKS else "",
    )


def title_of(visit: Visit, rule: str) -> str:
    """Return the title of a rule."""
    return visit.t(f"alarms.rule.{rule}")


def address_of(visit: Visit, alarm: Alarm) -> str:
    """Return the page that tells more about the subject of an alarm."""
    if alarm.scope in PAGES:
        return visit.url(PAGES[alarm.scope], id=alarm.subject)
    page = "sending" if alarm.scope == "target" else "settings"
    return visit.url(page) if page != "sending" or visit.viewer.may_change else visit.url("alarms")


def who(name: str | None) -> str:
    """Return an actor without the kind of its door: `phone` for `page:phone`."""
    return (name or "").partition(":")[2] or (name or "")


def _state(visit: Visit, alarm: Alarm) -> str:
    if alarm.state == "acknowledged":
        return visit.t("alarms.state.acknowledged", by=who(alarm.acked_by))
    if alarm.state == "snoozed" and alarm.snoozed_until is not None:
        return visit.t("alarms.state.snoozed", until=visit.words.moment(alarm.snoozed_until))
    return visit.t("alarms.state.firing")
