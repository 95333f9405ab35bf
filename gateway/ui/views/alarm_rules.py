"""The rules of alarms: their values in words, and the page that changes one."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gateway.domain.alarm import RULES
from gateway.domain.texts import LABEL_CHARACTERS, decimal_digits, label_of
from gateway.domain.units import celsius_to_fahrenheit, fahrenheit_to_celsius
from gateway.errors import Forbidden, InvalidInput, NotFound
from gateway.services.alarm_subjects import Subject, names_of
from gateway.services.alarms import LIMITS, AlarmSetting, scopes_of
from gateway.ui.alarm_words import title_of
from gateway.ui.brew_words import name_of
from gateway.ui.forms import Filled, Form, decimal, gravity
from gateway.ui.pages import Answer, Moved, Page, Row, Visit
from gateway.ui.words import NO_BREAK

ALL: Subject = ("all", "")

USUAL, ON, OFF = "usual", "on", "off"

SIGNS = {USUAL: "", ON: "good", OFF: "quiet"}
"""The sign of each state; what is as usual has none."""

GRAVITY, TEMPS, TEXT = "sg", ("lo", "hi"), "text"

UNITS = {"attenuation": "%", "percent": "%", "volts": "V"}
"""Units of limits that are the same for every viewer; those of time are words."""

ROUNDING = 6
"""Decimals of a limit in °C that somebody typed in °F."""


class RuleLine(NamedTuple):
    """A rule, what it is for, its value for all with a sign, and where something else is set."""

    title: str
    about: str
    value: str
    sign: str
    exceptions: list[str]
    url: str


class Limit(NamedTuple):
    """A limit of a rule as a field: its name, label, present value, unit, and the range that it may have."""

    name: str
    label: str
    value: str
    unit: str
    hint: str


class Narrower(NamedTuple):
    """A narrower setting: whose it is, its value in words, and the page that changes it."""

    name: str
    value: str
    url: str


class LimitsForm(Form):
    """A setting of a rule; blank limits are the usual ones."""

    subject: str = ""
    state: str = USUAL
    hours: str = ""
    sg: str = ""
    sg_unit: str = "SG"
    attenuation: str = ""
    day: str = ""
    text: str = ""
    lo: str = ""
    hi: str = ""
    volts: str = ""
    percent: str = ""


async def lines(visit: Visit) -> list[RuleLine]:
    """Return all rules with their values."""
    settings = await _own_settings(visit)
    names = await names_of(visit.store, ((each.scope, each.subject) for each in settings))
    made = []
    for rule in RULES:
        of_all = _setting(settings, rule, ALL)
        narrower = [each for each in settings if each.rule == rule and each.scope != "all"]
        made.append(
            RuleLine(
                title=title_of(visit, rule),
                about=visit.t(f"alarms.about.{rule}"),
                value=_value(visit, of_all),
                sign=SIGNS[_state(of_all)],
                exceptions=[
                    f"{names[each.scope, each.subject]}: {_value(visit, each.setting)}" for each in narrower
                ],
                url=visit.url("alarms.rule", rule=rule) if visit.viewer.may_change else "",
            )
        )
    return made


async def show(visit: Visit) -> Page:
    """Show the form of a rule, for all or for the subject in the query."""
    scope, _, subject = visit.query.get("for", "").partition(":")
    return await _page(visit, _rule(visit), (scope, subject) if scope else ALL, Filled())


async def save(visit: Visit) -> Answer:
    """Set limits of a rule, switch it on or off, or let it be as usual."""
    rule, filled = _rule(visit), visit.read(LimitsForm)
    scope, _, name = visit.fields.get("subject", "").partition(":")
    subject = (scope, name) if scope else ALL
    await _check(visit, rule, subject)
    if filled.value is not None:
        setting = _typed(visit, rule, filled)
        if filled.value is not None:
            try:
                await visit.services.alarms.set(rule, setting, *subject)  # type: ignore[arg-type]
            except InvalidInput:
                filled.wrong("state", "form.wrong")
    if filled.value is None:
        return await _page(visit, rule, subject, filled)
    return Moved(visit.url("alarms"), visit.t("alarms.set", title=title_of(visit, rule)))


def _typed(visit: Visit, rule: str, filled: Filled[LimitsForm]) -> dict[str, Any] | None:
    """Return the setting that was typed, None for the usual one; note what is wrong with it."""
    form = filled.value
    if form is None or form.state == OFF:
        return {"off": True}
    setting: dict[str, Any] = {}
    for name in RULES[rule].settings:
        text = getattr(form, name)
        if not text:
            continue
        try:
            setting[name] = _limit(visit, name, text, form.sg_unit)
        except ValueError as error:
            filled.wrong(name, str(error))
    if "lo" in setting and "hi" in setting and setting["lo"] >= setting["hi"]:
        filled.wrong("hi", "alarms.wrong.order")
    if rule == "reached" and setting and setting.keys() <= {TEXT}:
        filled.wrong(GRAVITY, "alarms.wrong.reached")
    return setting or ({"off": False} if form.state == ON else None)


def _limit(visit: Visit, name: str, text: str, unit: str) -> float | str:
    """Return a limit in the units of the rules; `ValueError` has the key of a sentence."""
    if name == TEXT:
        if text != label_of(text):
            raise ValueError("alarms.wrong.text")
        return text
    if name == GRAVITY:
        return gravity(text, unit).sg
    value = decimal(text)
    if name in TEMPS and visit.viewer.temp_unit == "F":
        value = round(fahrenheit_to_celsius(value), ROUNDING)
    least, most, _ = LIMITS[name]
    if not least <= value <= most:
        raise ValueError("alarms.wrong.range")
    return value


async def _page(visit: Visit, rule: str, subject: Subject, filled: Filled[LimitsForm]) -> Page:
    await _check(visit, rule, subject, reading=True)
    settings = await _own_settings(visit)
    mine = _setting(settings, rule, subject)
    narrower = [each for each in settings if each.rule == rule and each.scope != "all"]
    names = await names_of(visit.store, [subject, *((each.scope, each.subject) for each in narrower)])
    of_all = subject == ALL
    title = title_of(visit, rule)
    values = {
        "about": visit.t(f"alarms.about.{rule}"),
        "usual": visit.t(f"alarms.usual.{rule}"),
        "whom": visit.t("alarms.for_all") if of_all else names[subject],
        "filled": filled,
        "subject": "" if of_all else ":".join(subject),
        "may_set": visit.viewer.is_owner or not of_all,
        "state": _state(mine),
        "states": [
            (USUAL, visit.t("alarms.state.usual" if of_all else "alarms.state.as_all")),
            (ON, visit.t("alarms.state.on")),
            (OFF, visit.t("alarms.state.off")),
        ],
        "limits": [_field(visit, name, mine or {}) for name in RULES[rule].settings],
        "gravity": _gravity(visit, mine),
        "action": visit.url("alarms.rule.save", rule=rule),
        "exceptions": [
            Narrower(
                names[each.scope, each.subject],
                _value(visit, each.setting),
                visit.url("alarms.rule", {"for": f"{each.scope}:{each.subject}"}, rule=rule),
            )
            for each in narrower
        ],
        "choices": await _choices(visit, rule) if of_all else [],
        "address": visit.url("alarms.rule", rule=rule),
    }
    return Page("alarm_rule.html", title, values, menu="alarms", status=422 if filled.errors else 200)


async def _own_settings(visit: Visit) -> list[AlarmSetting]:
    """Return the settings of rules for all and for what is the viewer's."""
    found, viewer = [], visit.viewer
    for each in visit.services.alarms.settings():
        if each.scope == "brew":
            session = await visit.store.sessions.get(int(each.subject))
            if session is None or session.account_id != viewer.account_id:
                continue
        if each.scope in {"all", "brew"} or viewer.is_owner:
            found.append(each)
    return found


def _setting(settings: Sequence[AlarmSetting], rule: str, subject: Subject) -> Mapping[str, Any] | None:
    """Return what is set for a rule, else for every rule, in one scope."""
    for name in (rule, ""):
        for each in settings:
            if each.rule == name and (each.scope, each.subject) == subject:
                return each.setting
    return None


def _state(setting: Mapping[str, Any] | None) -> str:
    if setting is None:
        return USUAL
    return OFF if setting.get("off") else ON


def _value(visit: Visit, setting: Mapping[str, Any] | None) -> str:
    """Return a setting in words."""
    if setting is None:
        return visit.t("alarms.state.usual")
    if setting.get("off"):
        return visit.t("alarms.state.off")
    parts = []
    for name, value in setting.items():
        if name == TEXT:
            parts.append(str(value))
        elif name != "off":
            limit = f"{_shown(visit, name, value)}{NO_BREAK}{_unit(visit, name)}".strip()
            parts.append(visit.t(f"alarms.limit.{name}", value=limit))
    return ", ".join(parts) or visit.t("alarms.state.on")


def _field(visit: Visit, name: str, setting: Mapping[str, Any]) -> Limit:
    value = _shown(visit, name, setting[name]) if name in setting else ""
    hint = visit.t("alarms.field.text.hint", n=LABEL_CHARACTERS)
    if name != TEXT:
        least, most, _ = LIMITS[name]
        hint = visit.t("alarms.range", least=_shown(visit, name, least), most=_shown(visit, name, most))
    return Limit(name, visit.t(f"alarms.field.{name}"), value, _unit(visit, name), hint)


def _gravity(visit: Visit, setting: Mapping[str, Any] | None) -> str:
    return visit.words.gravity(setting[GRAVITY]).number if setting and GRAVITY in setting else ""


def _shown(visit: Visit, name: str, value: Any) -> str:
    """Return the number of a limit in the viewer's unit."""
    if name == TEXT:
        return str(value)
    if name == GRAVITY:
        return visit.words.gravity(value).number
    if name in TEMPS and visit.viewer.temp_unit == "F":
        value = celsius_to_fahrenheit(value)
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return visit.words.number(float(text), len(text.partition(".")[2]))


def _unit(visit: Visit, name: str) -> str:
    if name in TEMPS:
        return f"°{visit.viewer.temp_unit}"
    if name == GRAVITY:
        return "SG" if visit.viewer.gravity_unit == "SG" else "°P"
    return visit.t("alarms.hours") if name == "hours" else UNITS.get(name, "")


def _rule(visit: Visit) -> str:
    rule = visit.path_text("rule")
    if rule not in RULES:
        raise NotFound(visit.t("error.no_page"))
    return rule


async def _check(visit: Visit, rule: str, subject: Subject, *, reading: bool = False) -> None:
    """Refuse a subject that is not there, is not the viewer's, or that the rule is not about."""
    scope, name = subject
    if scope not in scopes_of(rule):
        raise NotFound(visit.t("error.no_page"))
    if scope == "brew":
        session = await visit.store.sessions.get(int(name)) if decimal_digits(name) else None
        if session is None or session.account_id != visit.viewer.account_id:
            raise NotFound(visit.t("brew.none", id=name))
    elif not visit.viewer.is_owner and not (reading and subject == ALL):
        raise Forbidden(visit.t("error.owner"))
    elif scope == "device":
        if not any(str(device.id) == name for device in await visit.store.devices.all()):
            raise NotFound(visit.t("device.missing", number=name))
    elif scope == "target" and not any(target.name == name for target in await visit.store.targets.all()):
        raise NotFound(visit.t("error.not_found"))


async def _choices(visit: Visit, rule: str) -> list[tuple[str, str]]:
    """Return what a rule can be set for apart: running brews, devices and targets, with their names."""
    scopes, found = scopes_of(rule), []
    if "brew" in scopes:
        running = await visit.services.figures.running(visit.viewer.account_id)
        entries = await visit.store.sessions.entries(running)
        found += [(f"brew:{each.session.id}", name_of(each)) for each in entries]
    if "device" in scopes and visit.viewer.is_owner:
        found += [(f"device:{each.id}", each.title) for each in await visit.store.devices.all()]
    if "target" in scopes and visit.viewer.is_owner:
        found += [(f"target:{each.name}", each.name) for each in await visit.store.targets.all()]
    return found


ROWS = (
    Row("GET", "/alarms/rules/{rule}", show, "alarms.rule", "The form of a rule", scope="admin"),
    Row("POST", "/alarms/rules/{rule}", save, "alarms.rule.save", "Change a rule", scope="admin"),
)
"""The rules of alarms."""
