"""`/manage/alarms`: what fires, what was said, and the limits of the rules; an account sees its own."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import RULES, Alarm, AlarmEvent
from gateway.domain.audit import current_actor
from gateway.domain.texts import decimal_digits
from gateway.domain.times import iso
from gateway.errors import InvalidInput, NotFound
from gateway.http.endpoint import AnswerModel, Body, Call, Done, Endpoint, Page, Query, Single, check_owner
from gateway.http.parameters import Flag, Id, Moment, Text, Words
from gateway.services.alarm_subjects import Subject, history_of, is_of, names_of
from gateway.services.alarms import HISTORY_MOST, AlarmSetting, snooze_until

LAST = 50
"""Events of the history that are shown unless another number is wanted."""

SUBJECT_CHARACTERS = 200

OTHERWISE = frozenset({"name", "since"})
"""Members of a check that the answer has in another form."""

Severity = Literal["info", "warning", "critical"]
Scope = Literal["brew", "device", "target", "gateway"]


def _last(value: Any) -> Any:
    if isinstance(value, str):
        if not decimal_digits(value) or not 1 <= int(value) <= HISTORY_MOST:
            raise ValueError(f"must be a whole number from 1 to {HISTORY_MOST}")
        return int(value)
    return value


class AlarmSubject(Query):
    """Choice of a subject."""

    brew: Id | None = Field(default=None, description="Only alarms about this brew session.")
    device: Id | None = Field(default=None, description="Only alarms about this device.")


class HistoryQuery(AlarmSubject):
    """Choice of events."""

    last: Annotated[
        int,
        BeforeValidator(_last),
        WithJsonSchema({"type": "integer", "minimum": 1, "maximum": HISTORY_MOST}),
    ] = Field(default=LAST, description="How many events, the newest ones.")


class AlarmRecord(AnswerModel):
    """An alarm. `name` is that of the brew session, device or target; `text` says what is the matter.

    `since` is the time at which it became true, `times` how often it fired in its life. `evidence` are the
    figures that made it fire.
    """

    id: int
    rule: str
    severity: Severity
    state: str = Field(description="firing, acknowledged or snoozed; in the history also ok and pending.")
    scope: Scope
    subject: str = Field(description="The id of a brew session or device, or the name of a target.")
    name: str
    text: str
    since: str
    fired_at: str | None
    acked_at: str | None
    acked_by: str | None
    snoozed_until: str | None
    cleared_at: str | None
    times: int
    evidence: dict[str, Any]


class Alarms(Page):
    """The alarms that fire, the worst first."""

    alarms: list[AlarmRecord]


class OneAlarm(Single):
    """A single alarm."""

    alarms: list[AlarmRecord] = Field(min_length=1, max_length=1)


class AlarmEventRecord(AnswerModel):
    """Something that happened to an alarm. `late`: it is history only, nobody was told."""

    at: str
    kind: str = Field(description="fired, cleared, reminder, acknowledged or snoozed.")
    text: str
    late: bool
    alarm: AlarmRecord


class AlarmHistory(Page):
    """What happened to alarms, the newest first."""

    events: list[AlarmEventRecord]


class AlarmSnooze(Body):
    """How long an alarm is quiet."""

    until: Words = Field(max_length=64, description="`1h`, `8h`, `tomorrow` (8:00), or an ISO 8601 time.")


class AlarmSettingRecord(AnswerModel):
    """A setting that somebody made: `off`, or limits by name. An empty rule is every rule."""

    rule: str
    scope: str
    subject: str
    name: str
    setting: dict[str, Any]


class AlarmRuleRecord(AnswerModel):
    """A rule: what it can be about, how serious it is, for how many seconds it must hold, its limits."""

    rule: str
    scopes: list[str]
    severity: Severity
    held_s: int
    limits: list[str]


class AlarmSettings(Page):
    """All rules, and all settings that somebody made."""

    rules: list[AlarmRuleRecord]
    settings: list[AlarmSettingRecord]


class NewAlarmSetting(Body):
    """A setting of a rule for all, a brew session, a device or a target; the narrowest one counts."""

    rule: Text = Field(default="", max_length=64, description="Empty: every rule, to switch it off.")
    scope: Literal["all", "brew", "device", "target"] = "all"
    subject: Text = Field(default="", max_length=SUBJECT_CHARACTERS, description="Its id or name.")
    setting: dict[str, float | str | bool] = Field(
        default_factory=dict,
        description='Limits by name, such as `{"lo": 17, "hi": 22}`, or `{"off": true}`.',
    )
    default: bool = Field(default=False, description="Take the setting back.")


class CheckQuery(Query):
    """Choice of a brew session and of a time."""

    brew: Id | None = Field(default=None, description="Only this brew session and its devices.")
    at: Moment | None = Field(default=None, description="At this time; without it, now.")
    as_of_now: Flag = Field(
        default=False, description="Take also readings that arrived after that time, with an earlier one."
    )


class CheckRecord(AnswerModel):
    """What a rule saw, and its limit. `fires`: it holds for long enough, since `since`; else `why_not`."""

    rule: str
    scope: Scope
    subject: str
    name: str
    saw: str
    limit: str
    fires: bool
    since: str | None
    why_not: str
    text: str = Field(description="The sentence that would be sent.")


class Checks(Page):
    """Every rule, by subject."""

    checks: list[CheckRecord]


class AlarmTest(Body):
    """A test of the way to a person."""

    rule: Text = Field(default="", max_length=64, description="The rule whose words the test has.")
    channel: Text = Field(default="", max_length=64, description="Only this channel.")


class ChannelOutcome(AnswerModel):
    """What became of a test within 15 s, in words."""

    channel: str
    text: str


class AlarmTested(Done):
    """The outcome of each channel."""

    channels: list[ChannelOutcome]


async def list_alarms(call: Call[AlarmSubject, None]) -> Alarms:
    """List the alarms that fire: also the acknowledged and the snoozed ones."""
    scope, subject = _subject(call.query)
    found = _own(call, call.services.alarms.firing(_seen_by(call), scope=scope, subject=subject))
    return Alarms(count=str(len(found)), alarms=await _records(call, found))


async def history(call: Call[HistoryQuery, None]) -> AlarmHistory:
    """List what happened to alarms."""
    query = call.query
    scope, subject = _subject(query)
    account_id = None if call.caller.everywhere else call.caller.account_id
    found = await history_of(call.services.alarms, account_id, query.last, scope=scope, subject=subject)
    alarms = await _records(call, [alarm for alarm, _ in found])
    events = [_event(event, record) for (_, event), record in zip(found, alarms, strict=True)]
    return AlarmHistory(count=str(len(events)), events=events)


async def acknowledge(call: Call[Query, None]) -> OneAlarm:
    """End the reminders of an alarm. It goes on until it clears."""
    alarm = await _own_alarm(call)
    done = await call.services.alarms.acknowledge(alarm.id, current_actor().name, _seen_by(call))
    return OneAlarm(alarms=await _records(call, [done]))


async def snooze(call: Call[Query, AlarmSnooze]) -> OneAlarm:
    """Be quiet about an alarm until a time."""
    alarm = await _own_alarm(call)
    until = snooze_until(call.body.until, call.services.clock.now())
    done = await call.services.alarms.snooze(alarm.id, until, current_actor().name, _seen_by(call))
    return OneAlarm(alarms=await _records(call, [done]))


async def show_settings(call: Call[Query, None]) -> AlarmSettings:
    """List the rules and what was set."""
    return await _all_settings(call)


async def _all_settings(call: Call[Any, Any]) -> AlarmSettings:
    settings = await _settings(call)
    rules = [
        AlarmRuleRecord(
            rule=name,
            scopes=list(rule.scopes),
            severity=rule.severity,
            held_s=rule.held_s,
            limits=list(rule.settings),
        )
        for name, rule in RULES.items()
    ]
    return AlarmSettings(count=str(len(settings)), rules=rules, settings=settings)


async def change_settings(call: Call[Query, NewAlarmSetting]) -> AlarmSettings:
    """Set limits of a rule, switch it off, or take that back."""
    new = call.body
    if new.default == bool(new.setting):
        raise InvalidInput("say either setting or default")
    if new.scope != "brew":
        check_owner(call.caller)
    await _check_subject(call, new.scope, new.subject)
    setting = None if new.default else new.setting
    await call.services.alarms.set(new.rule, setting, new.scope, new.subject)
    return await _all_settings(call)


async def check_rules(call: Call[CheckQuery, None]) -> Checks:
    """Ask every rule what it sees, and why it fires or not. It writes nothing."""
    from gateway.notify.check import check  # here, because hardly anybody asks

    query, caller = call.query, call.caller
    # The figures of a brew are made hour by hour: those of the year 9999 would take the gateway minutes.
    if query.at is not None and not 0 <= query.at <= call.services.clock.now():
        raise InvalidInput("at lies in the future, or before 1970: nothing was seen then")
    if query.brew is not None:
        session = await call.store.sessions.get(query.brew)
        if session is None or not caller.may_see(session.account_id):
            raise NotFound
    found = await check(call.services, query.brew, query.at, query.as_of_now, _seen_by(call))
    brews = {
        each.subject: await call.store.sessions.get(int(each.subject))
        for each in found
        if each.scope == "brew"
    }
    hidden = {
        ("brew", id) for id, brew in brews.items() if brew is None or not caller.may_see(brew.account_id)
    }
    hidden |= {
        ("target", f"channel {state.channel.name}")
        for state in await call.services.channels.states()
        if not caller.may_see(state.channel.account_id or OWNER_ID)
    }
    checks = [
        CheckRecord.model_validate(
            {
                **{name: getattr(each, name) for name in CheckRecord.model_fields if name not in OTHERWISE},
                "name": each.title,
                "since": None if each.since is None else iso(each.since),
            }
        )
        for each in found
        if (each.scope, each.subject) not in hidden
    ]
    return Checks(count=str(len(checks)), checks=checks)


async def send_test(call: Call[Query, AlarmTest]) -> AlarmTested:
    """Send a marked message through the channels, as an alarm would go, and wait for what becomes of it."""
    rule, wanted, channels = call.body.rule, call.body.channel, call.services.channels
    if rule and rule not in RULES:
        raise InvalidInput(f"no rule {rule!r}; the rules are {', '.join(RULES)}")
    names = [each.channel.name for each in await channels.states(_seen_by(call))]
    if wanted and wanted not in names:
        raise NotFound
    if not names:
        raise InvalidInput("there is no channel yet: `channels add` adds one")
    tested = await channels.test_each([wanted] if wanted else names, _seen_by(call), rule)
    return AlarmTested(channels=[ChannelOutcome(channel=name, text=text) for name, text in tested])


def _seen_by(call: Call[Any, Any]) -> int | None:
    """Return the account for the service, to which None is everybody."""
    return None if call.caller.everywhere else call.caller.account_id


def _own(call: Call[Any, Any], alarms: Sequence[Alarm]) -> list[Alarm]:
    return [each for each in alarms if call.caller.everywhere or is_of(call.caller.account_id, each)]


async def _own_alarm(call: Call[Any, Any]) -> Alarm:
    """Return the alarm of the path, if it fires and the caller may see it."""
    wanted = call.path_id("alarm_id")
    for alarm in _own(call, call.services.alarms.firing(_seen_by(call))):
        if alarm.id == wanted:
            return alarm
    raise NotFound


def _subject(query: AlarmSubject) -> tuple[str | None, str | None]:
    if query.brew is not None and query.device is not None:
        raise InvalidInput("say brew or device, not both")
    if query.brew is not None:
        return "brew", str(query.brew)
    return ("device", str(query.device)) if query.device is not None else (None, None)


async def _check_subject(call: Call[Any, Any], scope: str, subject: str) -> None:
    """`NotFound` unless the subject is there and the caller's; what is no id is left to the service."""
    if scope == "brew" and decimal_digits(subject):
        session = await call.store.sessions.get(int(subject))
        if session is None or not call.caller.may_see(session.account_id):
            raise NotFound
    if scope == "device" and not any(str(each.id) == subject for each in await call.store.devices.all()):
        raise NotFound
    if scope == "target" and not any(each.name == subject for each in await call.store.targets.all()):
        raise NotFound


async def _settings(call: Call[Any, Any]) -> list[AlarmSettingRecord]:
    found = [each for each in call.services.alarms.settings() if await _sees(call, each)]
    names = await names_of(call.store, ((each.scope, each.subject) for each in found))
    return [
        AlarmSettingRecord(
            rule=each.rule,
            scope=each.scope,
            subject=each.subject,
            name=names[each.scope, each.subject],
            setting=dict(each.setting),
        )
        for each in found
    ]


async def _sees(call: Call[Any, Any], setting: AlarmSetting) -> bool:
    """Return whether a setting is for all, or for something of the caller's."""
    if setting.scope == "brew":
        session = await call.store.sessions.get(int(setting.subject))
        return session is not None and call.caller.may_see(session.account_id)
    is_owner = call.caller.everywhere or call.caller.account_id == OWNER_ID
    return is_owner or setting.scope == "all"


async def _records(call: Call[Any, Any], alarms: Sequence[Alarm]) -> list[AlarmRecord]:
    names = await names_of(call.store, ((each.scope, each.subject) for each in alarms))
    return [_record(each, names) for each in alarms]


def _record(alarm: Alarm, names: Mapping[Subject, str]) -> AlarmRecord:
    def at(seconds: int | None) -> str | None:
        return None if seconds is None else iso(seconds)

    return AlarmRecord(
        id=alarm.id,
        rule=alarm.rule,
        severity=alarm.severity,
        state=alarm.state,
        scope=alarm.scope,
        subject=alarm.subject,
        name=names[alarm.scope, alarm.subject],
        text=alarm.text,
        since=iso(alarm.since),
        fired_at=at(alarm.fired_at),
        acked_at=at(alarm.acked_at),
        acked_by=alarm.acked_by,
        snoozed_until=at(alarm.snoozed_until),
        cleared_at=at(alarm.cleared_at),
        times=alarm.times,
        evidence=dict(alarm.evidence),
    )


def _event(event: AlarmEvent, record: AlarmRecord) -> AlarmEventRecord:
    return AlarmEventRecord(at=iso(event.at), kind=event.kind, text=event.text, late=event.late, alarm=record)


ALARMS = "/manage/alarms"

NAMED = "/manage/alarms/{alarm_id}"

ENDPOINTS = (
    Endpoint(
        "GET", "/manage/alarms", list_alarms, "The alarms that fire", AlarmSubject, Alarms, scope="read"
    ),
    Endpoint(
        "GET",
        f"{ALARMS}/history",
        history,
        "What happened to alarms",
        HistoryQuery,
        AlarmHistory,
        scope="read",
    ),
    Endpoint(
        "GET",
        f"{ALARMS}/settings",
        show_settings,
        "Rules of alarms and their limits",
        Query,
        AlarmSettings,
        scope="read",
    ),
    Endpoint(
        "PUT",
        f"{ALARMS}/settings",
        change_settings,
        "Set limits of a rule of alarms, or switch it off",
        Query,
        AlarmSettings,
        body=NewAlarmSetting,
        refusals=(403, 404),
    ),
    Endpoint(
        "GET",
        f"{ALARMS}/check",
        check_rules,
        "What each rule sees, and why it fires or not",
        CheckQuery,
        Checks,
        refusals=(404,),
        scope="read",
    ),
    Endpoint(
        "POST",
        f"{ALARMS}/test",
        send_test,
        "Send a test message through the channels",
        Query,
        AlarmTested,
        body=AlarmTest,
        refusals=(404,),
    ),
    Endpoint("POST", f"{NAMED}/ack", acknowledge, "Acknowledge an alarm", Query, OneAlarm),
    Endpoint(
        "POST",
        f"{NAMED}/snooze",
        snooze,
        "Be quiet about an alarm",
        Query,
        OneAlarm,
        body=AlarmSnooze,
    ),
)
"""Alarms."""
