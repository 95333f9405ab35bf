"""Every rule: what is looked at, and which function looks. Pure."""

from collections.abc import Callable, Mapping, Sequence

from gateway.domain.alarm import Alarm
from gateway.notify import limits, phases
from gateway.notify.house import look_at_device, look_at_keeper, look_at_target
from gateway.notify.look import Look, SettingOf, of_brew
from gateway.notify.views import BrewView, Finding

__all__ = ["look_at_brew", "look_at_device", "look_at_keeper", "look_at_target"]

OF_BREW: Mapping[str, Callable[[Look], list[Finding]]] = {
    "started": phases.started,
    "not_started": phases.not_started,
    "stuck": phases.stuck,
    "done": phases.done,
    "resumed": phases.resumed,
    "reached": limits.reached,
    "temperature": limits.temperature_of_brew,
}


def look_at_brew(view: BrewView, setting_of: SettingOf, told: Sequence[Alarm], now: int) -> list[Finding]:
    """Return what each rule finds in a brew. `told` are its alarms that ever fired, from the newest on."""
    found: list[Finding] = []
    for rule, look in OF_BREW.items():
        setting = setting_of(rule)
        if setting is None:
            found.append(of_brew(view, rule, False, off=True, why_not="switched off"))
        else:
            found += look(Look(view, setting, [alarm for alarm in told if alarm.rule == rule], now))
    return found
