"""`alarms check`: what each rule sees, its limit, whether it fires, and why not. It writes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.errors import NotFound
from gateway.notify.gather import Gatherer, Watched, device_view
from gateway.notify.rules import look_at_brew, look_at_device, look_at_keeper, look_at_target
from gateway.notify.views import BrewView, Finding
from gateway.services.alarms import is_owner
from gateway.services.build import Services


@dataclass(frozen=True, slots=True)
class Check:
    """What a rule saw at a subject, whose `title` is for a person.

    `fires` says whether it holds for long enough, since `since` (Unix seconds). If it does not, `why_not`
    says why. `text` is the sentence that would be sent. `known` is false where nothing can be said, which
    leaves an alarm as it is.
    """

    rule: str
    scope: str
    subject: str
    title: str
    saw: str
    limit: str
    fires: bool
    known: bool
    since: int | None
    why_not: str
    text: str


async def check(
    services: Services,
    brew: int | None = None,
    at: float | None = None,
    as_of_now: bool = False,
    account_id: int | None = None,
) -> list[Check]:
    """Ask every rule about a brew and its devices, or about everything; `NotFound` without that brew.

    With `at` (Unix seconds) only readings count that had arrived by then, or all of that time with
    `as_of_now`. Settings, recipes and the places of devices are those of today. Of targets and of the
    gateway itself only the present is known. An account other than the owner's sees its own brews and the
    devices in them.
    """
    gatherer, now = Gatherer(services), int(services.clock.now() if at is None else at)
    arrived_by = None if at is None or as_of_now else now
    watched = await gatherer.watched()
    mine = {
        id: entry
        for id, entry in watched.brews.items()
        if is_owner(account_id) or entry.session.account_id == account_id
    }
    if brew is not None and brew not in mine:
        raise NotFound(f"no open brew {brew} has a device in it; `sessions list` shows the brews")
    ids = sorted(mine) if brew is None else [brew]
    devices = [
        device
        for device in watched.devices.values()
        if (device.session_id in ids) or (brew is None and is_owner(account_id))
    ]
    signs = await gatherer.signs([device.id for device in devices], now, arrived_by=arrived_by)
    checks: list[Check] = []
    for id in ids:
        checks += await _of_brew(services, gatherer, watched, id, now, arrived_by, signs)
    for device in devices:
        view = device_view(device, watched, signs[device.id], now, None)
        place = view.session_id if view.brew else None

        def setting_of(rule: str, id: int = device.id, place: int | None = place) -> Mapping[str, Any] | None:
            return services.alarms.setting_of(rule, brew=place, device=id)

        checks += _shown(look_at_device(view, setting_of, now), view.title, now)
    if at is None and brew is None and is_owner(account_id):
        for target in await gatherer.targets(now):

            def of_target(rule: str, name: str = target.name) -> Mapping[str, Any] | None:
                return services.alarms.setting_of(rule, target=name)

            checks += _shown([look_at_target(target, of_target, now)], target.name, now)
        keeper = await gatherer.keeper(now, watched)
        checks += _shown(look_at_keeper(keeper, services.alarms.setting_of, now), "gateway", now)
    return checks


async def _of_brew(
    services: Services,
    gatherer: Gatherer,
    watched: Watched,
    id: int,
    now: int,
    arrived_by: int | None,
    signs: Mapping[int, Any],
) -> list[Check]:
    entry = watched.brews[id]

    def setting_of(rule: str) -> Mapping[str, Any] | None:
        return services.alarms.setting_of(rule, brew=id)

    async def view_at(time: int) -> BrewView:
        insight = await services.insight.at(entry.session, time, arrived_by=arrived_by)
        return (await gatherer.brew(entry, insight, signs))._replace(asks=entry.session.may_be_asked(time))

    view = await view_at(now)
    findings = look_at_brew(view, setting_of, (), now)
    for place, finding in enumerate(findings):
        if finding.rule == "reached" and finding.holds:
            # The notifier waits and sees; what is asked for one time must look at the time before, too.
            before = look_at_brew(await view_at(now - finding.held_s), setting_of, (), now - finding.held_s)
            earlier = next(one for one in before if one.rule == "reached")
            if earlier.holds:
                findings[place] = replace(finding, since=earlier.since)
    return _shown(findings, view.title, now)


def _shown(findings: Sequence[Finding], title: str, now: int) -> list[Check]:
    """Return the findings of the present; what is history was not so at that time."""
    return [
        Check(
            rule=finding.rule,
            scope=finding.scope,
            subject=finding.subject,
            title=title,
            saw=finding.saw,
            limit=finding.limit,
            fires=finding.fires(now),
            known=finding.holds is not None,
            since=finding.since if finding.holds else None,
            why_not="" if finding.fires(now) else finding.why_not or "it has not held for long enough",
            text=finding.text,
        )
        for finding in findings
        if finding.late_until is None
    ]
