"""Alarms as endpoints, commands and pages see them: what fires, what was said, and the settings."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway.clock import Clock
from gateway.domain.account import OWNER_ID
from gateway.domain.alarm import OPEN, RULES, Alarm, AlarmEvent, SettingScope, Severity
from gateway.domain.texts import did_you_mean, label_of
from gateway.domain.times import minute
from gateway.errors import InvalidInput, NotFound
from gateway.events import StoredNotices
from gateway.store.protocol import Store
from gateway.store.protocols.alarms import AlarmChange

WORST_FIRST: Mapping[Severity, int] = {"critical": 0, "warning": 1, "info": 2}

SNOOZES_S = {"1h": 3_600, "8h": 8 * 3_600}
"""Times of quiet that have a name, in seconds."""

MORNING_HOUR = 8
"""Hour of the next day at which a snooze `until tomorrow` ends, in the gateway's time zone."""

SNOOZE_MOST_S = 30 * 86_400
"""Seconds that an alarm can be quiet at most."""

HISTORY_MOST = 10_000
"""Events that one question may ask for."""

AGAIN_S = 30 * 60
"""Seconds after its end in which an alarm that comes again is the same one."""

LIMITS: Mapping[str, tuple[float, float, str]] = {
    "hours": (1, 1000, "hours"),
    "sg": (0.95, 1.25, "SG"),
    "attenuation": (1, 110, "%"),
    "day": (0, 1000, "days since pitching"),
    "lo": (-10, 60, "°C"),
    "hi": (-10, 60, "°C"),
    "volts": (1, 20, "V"),
    "percent": (1, 99, "%"),
}
"""The least and the most of each limit, and its unit. `text` is the only setting that is no number."""

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class AlarmSetting:
    """A setting of one rule ('' for all rules) in one scope: `off`, or limits by name."""

    scope: SettingScope
    subject: str
    rule: str
    setting: Mapping[str, Any]


class AlarmService:
    """Keeps the open alarms in memory; the notifier writes them, everybody else reads."""

    def __init__(self, store: Store, notices: StoredNotices, clock: Clock) -> None:
        self._store = store
        self._notices = notices
        self._clock = clock
        self._open: dict[int, Alarm] = {}
        self._settings: dict[Key, Mapping[str, Any]] = {}
        # One writer at a time: what is decided is decided on what is stored.
        self._writing = asyncio.Lock()

    async def start(self) -> None:
        """Load the open alarms and the settings."""
        self._open = {alarm.id: alarm for alarm in await self._store.alarms.open()}
        self._settings = await self._store.alarms.settings()

    @property
    def open(self) -> list[Alarm]:
        """Return all alarms that are not cleared, pending ones too, by id."""
        return list(self._open.values())

    async def recent(self) -> list[Alarm]:
        """Return the alarms that may be the same ones if they come again now."""
        held_s = max(rule.held_s for rule in RULES.values())
        return await self._store.alarms.recent(int(self._clock.now()) - AGAIN_S - held_s)

    def firing(
        self, account_id: int | None = None, *, scope: str | None = None, subject: str | None = None
    ) -> list[Alarm]:
        """Return the alarms that fire, the worst first; None is the owner, who sees all."""
        found = [
            alarm
            for alarm in self._open.values()
            if alarm.state in OPEN
            and sees(account_id, alarm)
            and scope in {None, alarm.scope}
            and subject in {None, alarm.subject}
        ]
        return sorted(found, key=lambda alarm: (WORST_FIRST[alarm.severity], alarm.fired_at or 0, alarm.id))

    async def history(
        self,
        account_id: int | None = None,
        *,
        scope: str | None = None,
        subject: str | None = None,
        limit: int = 50,
    ) -> list[tuple[Alarm, AlarmEvent]]:
        """Return events with their alarms, newest first."""
        if not 1 <= limit <= HISTORY_MOST:
            raise InvalidInput(f"from 1 to {HISTORY_MOST} events can be shown")
        return await self._store.alarms.history(account_id, scope=scope, subject=subject, limit=limit)

    async def acknowledge(self, alarm_id: int, by: str, account_id: int | None = None) -> Alarm:
        """End the reminders of an alarm; `NotFound` if none of that account has the id."""
        async with self._writing:
            alarm = self._own(alarm_id, account_id)
            if alarm.state == "acknowledged":
                return alarm
            now = int(self._clock.now())
            after = replace(alarm, state="acknowledged", acked_at=now, acked_by=by, snoozed_until=None)
            event = AlarmEvent(0, alarm.id, now, "acknowledged", f"acknowledged by {by}")
            return (await self._write([AlarmChange(after, event)]))[0]

    async def snooze(self, alarm_id: int, until: int, by: str, account_id: int | None = None) -> Alarm:
        """Be quiet about an alarm until a time (Unix seconds); `InvalidInput` for one that is not ahead."""
        async with self._writing:
            alarm = self._own(alarm_id, account_id)
            now = int(self._clock.now())
            if not 0 < until - now <= SNOOZE_MOST_S:
                raise InvalidInput(f"a snooze ends within {SNOOZE_MOST_S // 86_400} days from now")
            after = replace(alarm, state="snoozed", snoozed_until=until)
            words = f"quiet until {minute(until)}, by {by}"
            return (await self._write([AlarmChange(after, AlarmEvent(0, alarm.id, now, "snoozed", words))]))[
                0
            ]

    async def apply(self, decide: Callable[[Sequence[Alarm]], list[AlarmChange]]) -> list[Alarm]:
        """Write what `decide` makes of the alarms that are not cleared, in one transaction.

        No acknowledgement comes in between. Raise `StoreUnavailable` if it could not be written; then
        nothing has changed in memory either.
        """
        async with self._writing:
            changes = decide(self.open)
            return await self._write(changes) if changes else []

    def settings(self, account_id: int | None = None) -> list[AlarmSetting]:
        """Return all settings that somebody made; for another account than the owner's, those for all.

        The settings of its brews and devices are among those of `setting_of`.
        """
        order = {"all": 0, "brew": 1, "device": 2, "target": 3}
        names = ["", *RULES]
        return [
            AlarmSetting(scope, subject, rule, setting)  # type: ignore[arg-type]
            for (scope, subject, rule), setting in sorted(
                self._settings.items(),
                key=lambda item: (order.get(item[0][0], 9), item[0][1], names.index(item[0][2])),
            )
            if is_owner(account_id) or scope == "all"
        ]

    def setting_of(
        self, rule: str, *, brew: int | None = None, device: int | None = None, target: str | None = None
    ) -> Mapping[str, Any] | None:
        """Return the narrowest setting of a rule, which may be empty; None if it is off.

        Device and target are narrower than the brew, and that is narrower than all. In one scope the rule's
        own setting goes before that for every rule. The switch for everything goes before them all.
        """
        if self._settings.get(("all", "", ""), {}).get("off"):
            return None
        subjects = (("device", device), ("target", target), ("brew", brew), ("all", ""))
        for scope, subject in subjects:
            if subject is not None:
                for name in (rule, ""):
                    found = self._settings.get((scope, str(subject), name))
                    if found is not None:
                        return None if found.get("off") else found
        return {}

    async def set(
        self, rule: str, setting: Mapping[str, Any] | None, scope: SettingScope = "all", subject: str = ""
    ) -> None:
        """Set limits of a rule, or `{"off": True}`; None takes the setting back.

        `InvalidInput` names what is wrong. An empty rule is every rule, which can be switched off only.
        Numbers may be texts. The caller checks that the subject is there and the caller's own.
        """
        check_scope(rule, scope, subject)
        checked = None if setting is None else checked_setting(rule, setting)
        async with self._writing:
            await self._store.alarms.set(scope, subject, rule, checked)
            if checked is None:
                self._settings.pop((scope, subject, rule), None)
            else:
                self._settings[scope, subject, rule] = checked
        self._notices.publish("alarm")

    def forget_device(self, device_id: int) -> None:
        """Forget the settings of a device, as the store has when it forgot the device."""
        for key in [key for key in self._settings if key[:2] == ("device", str(device_id))]:
            del self._settings[key]

    def _own(self, alarm_id: int, account_id: int | None) -> Alarm:
        found = self._open.get(alarm_id)
        if found is None or found.state not in OPEN or not sees(account_id, found):
            raise NotFound(f"no alarm {alarm_id} fires; `alarms list` shows those that do")
        return found

    async def _write(self, changes: Sequence[AlarmChange]) -> list[Alarm]:
        written = await self._store.alarms.change(changes)
        for alarm in written:
            if alarm.cleared_at is None:
                self._open[alarm.id] = alarm
            else:
                self._open.pop(alarm.id, None)
            brew = int(alarm.subject) if alarm.scope == "brew" else None
            device = int(alarm.subject) if alarm.scope == "device" else None
            self._notices.publish("alarm", brew=brew, device=device)
        return written


def is_owner(account_id: int | None) -> bool:
    """Return whether the account is the owner's, who sees every alarm."""
    return account_id in {None, OWNER_ID}


def sees(account_id: int | None, alarm: Alarm) -> bool:
    """Return whether an account may see an alarm: the owner all, another one its own."""
    return is_owner(account_id) or alarm.account_id == account_id


def snooze_until(words: str, now: float) -> int:
    """Return the end of a snooze in Unix seconds: `1h`, `8h`, `tomorrow`, or a time as 2026-11-24T08:00.

    A time without a zone, and the morning of tomorrow, are in the gateway's zone. `InvalidInput` for other
    words.
    """
    text = words.strip().lower()
    if text in SNOOZES_S:
        return int(now) + SNOOZES_S[text]
    if text == "tomorrow":
        # Without its zone, so that a day with another offset keeps the hour.
        day = datetime.fromtimestamp(now, UTC).astimezone().replace(tzinfo=None) + timedelta(days=1)
        return int(day.replace(hour=MORNING_HOUR, minute=0, second=0, microsecond=0).timestamp())
    try:
        return int(datetime.fromisoformat(words.strip()).timestamp())
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(
            f"{words!r} is no time of quiet: 1h, 8h, tomorrow, or a time such as 2026-11-24T08:00"
        ) from error


def check_scope(rule: str, scope: str, subject: str) -> None:
    """`InvalidInput` unless the rule exists and can be set for this scope."""
    if rule and rule not in RULES:
        raise InvalidInput(f"no rule {rule!r}{did_you_mean(rule, RULES)}; the rules are {', '.join(RULES)}")
    if scope not in {"all", "brew", "device", "target"}:
        raise InvalidInput(f"no scope {scope!r}: all, brew, device or target")
    if (scope == "all") != (subject == ""):
        raise InvalidInput("a setting for all has no subject; one of a brew, device or target needs it")
    if scope in {"brew", "device"} and not (subject.isascii() and subject.isdigit() and len(subject) <= 15):
        raise InvalidInput(f"{subject!r} is no id of a {scope}")
    if rule and scope not in scopes_of(rule):
        raise InvalidInput(f"{rule} can be set for {' or '.join(scopes_of(rule))}, not for a {scope}")


def scopes_of(rule: str) -> tuple[str, ...]:
    """Return the scopes for which a rule can be set. What is about a device can be set for its brew, too."""
    own = [scope for scope in RULES[rule].scopes if scope != "gateway"]
    if "device" in own and "brew" not in own:
        own.insert(0, "brew")
    return ("all", *own)


def checked_setting(rule: str, setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting with its numbers as numbers; `InvalidInput` names what is wrong with it."""
    names = RULES[rule].settings if rule else ()
    checked: dict[str, Any] = {}
    for name, value in setting.items():
        if name == "off":
            if not isinstance(value, bool):
                raise InvalidInput("off is true or false")
            checked[name] = value
        elif name not in names:
            known = f"{rule} has {', '.join(names)}" if names else f"{rule or 'every rule'} has no limits"
            raise InvalidInput(f"no setting {name!r}: {known}, and off")
        elif name == "text":
            if not isinstance(value, str) or not value.strip() or value.strip() != label_of(value.strip()):
                raise InvalidInput("text is a line of at most 64 characters that can be seen")
            checked[name] = value.strip()
        else:
            checked[name] = _number(name, value)
    if not checked:
        raise InvalidInput("nothing is set: give a limit, or off")
    if checked.get("off"):
        return {"off": True}
    if "lo" in checked and "hi" in checked and checked["lo"] >= checked["hi"]:
        raise InvalidInput("lo is below hi")
    if rule == "reached" and not checked.keys() & {"sg", "attenuation", "day", "off"}:
        raise InvalidInput("reached needs sg, attenuation or day")
    return checked


def _number(name: str, value: Any) -> float:
    least, most, unit = LIMITS[name]
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not least <= number <= most:
        raise InvalidInput(f"{name} is a number from {least:g} to {most:g} ({unit})")
    return number
