"""The rules about devices, targets, and the gateway itself. Pure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from gateway.insight.series import median
from gateway.insight.silence import silent_after_s
from gateway.notify.limits import temperature_of_device
from gateway.notify.look import DAY_S, HOUR_S, Setting, SettingOf, moment
from gateway.notify.views import DeviceView, Finding, KeeperView, TargetView

FIRST_REPORT_S = DAY_S
"""Seconds that a device which is new in a brew has until its first reading: it is not in the beer yet."""

GAPS = 12
"""Gaps between readings whose median is the usual one."""

VOLTS, PERCENT = 3.5, 15.0
"""A battery so low fires."""

RECOVERED = {"volts": 0.1, "percent": 10.0}
"""A battery is well again so much above its limit."""

BATTERY_OF = {"ispindel": "volts", "gravitymon": "volts", "rapt": "percent"}
"""What families with a known battery send. Others have no limit until a person sets one."""

BATTERY_MEDIAN_OF, BATTERY_READINGS = 3, 2
"""Readings of a median, and medians in a row that must be low."""

WAITS_S = HOUR_S
"""Seconds that a reading may wait for a target."""

LATEST_INTERVALS = 3
"""Intervals that a target may wait which shows the latest only."""

REFUSED_S = DAY_S
"""Seconds without another refused reading after which they are no news."""


def look_at_device(view: DeviceView, setting_of: SettingOf, now: int) -> list[Finding]:
    """Return what each rule finds at a device."""

    def found(rule: str, holds: bool | None, **members: Any) -> Finding:
        return Finding(rule, "device", str(view.device_id), view.account_id, holds, **members)

    findings = []
    for rule, look in (("silent", _silent), ("battery", _battery)):
        setting = setting_of(rule)
        if setting is None:
            findings.append(found(rule, False, off=True, why_not="switched off"))
        else:
            holds, members = look(view, setting, now)
            findings.append(found(rule, holds, **members))
    setting = setting_of("temperature")
    if setting is None or view.brew:
        why_not = "switched off" if setting is None else "its brew has the rule"
        findings.append(found("temperature", False, off=setting is None, why_not=why_not))
    else:
        findings.append(
            temperature_of_device(
                lambda holds, **members: found("temperature", holds, **members), view, setting, now
            )
        )
    return findings


def usual_gap(times: Sequence[int]) -> float | None:
    """Return the median of the gaps between times, newest first; None for fewer than two."""
    gaps = [later - earlier for later, earlier in pairwise(times)][:GAPS]
    return median(gaps) if gaps else None


def _silent(view: DeviceView, _: Setting, now: int) -> tuple[bool | None, dict[str, Any]]:
    if not view.brew:
        return False, {
            "why_not": "it is in no open brew",
            "ended": f"{view.title} is in no open brew any more.",
        }
    times = view.signs.times
    limit_s = silent_after_s(view.interval_s, usual_gap(times))
    limit = f"nothing for {_duration(limit_s)}"
    last = times[0] if times else None
    if last is None or last < view.in_brew_since:
        since = view.in_brew_since + FIRST_REPORT_S
        saw, last_words = "no reading in this brew", "it has not reported in this brew"
        why_not = f"it has until {moment(since)} for its first reading in this brew"
        ended = f"{view.title} is in {view.brew} now, and has not reported there yet."
    else:
        since, saw = last + int(limit_s), f"the last reading came {moment(last)}"
        last_words = f"its last reading came {moment(last)}"
        why_not, ended = "it reports", f"{view.title} reports again."
    if now <= since:
        return False, {"limit": limit, "saw": saw, "why_not": why_not, "ended": ended}
    text = f"{view.title} in {view.brew} is silent: {last_words}. Look at its battery and its WLAN."
    if now < view.quiet_until:
        why_not = f"the gateway has just begun to listen; it waits until {moment(view.quiet_until)}"
        return None, {"limit": limit, "saw": saw, "why_not": why_not}
    evidence = {"at": since, "last_at": last, "silent_after_s": int(limit_s)}
    return True, {"since": since, "limit": limit, "saw": saw, "text": text, "evidence": evidence}


def _battery(view: DeviceView, setting: Setting, now: int) -> tuple[bool | None, dict[str, Any]]:
    kind = BATTERY_OF.get(view.family)
    limits: Mapping[str, float] = {
        "volts": setting.get("volts", VOLTS if kind == "volts" else 0.0),
        "percent": setting.get("percent", PERCENT if kind == "percent" else 0.0),
    }
    series = {"volts": view.signs.volts, "percent": view.signs.percents}
    unit = {"volts": "V", "percent": "%"}
    which = next((name for name in limits if limits[name] and series[name]), None)
    if which is None:
        return False, {"why_not": "its battery is not known, or no limit is set for this kind of device"}
    limit = f"at most {limits[which]:g} {unit[which]}"
    values = [value for _, value in series[which]]
    medians = [
        median(values[place : place + BATTERY_MEDIAN_OF])
        for place in range(len(values) - BATTERY_MEDIAN_OF + 1)
    ]
    if len(medians) < BATTERY_READINGS:
        return None, {"limit": limit, "saw": f"{len(values)} readings", "why_not": "too few readings"}
    saw = f"{medians[0]:.2f} {unit[which]}" if which == "volts" else f"{medians[0]:.0f} {unit[which]}"
    members: dict[str, Any] = {"limit": limit, "saw": saw}
    if max(medians[:BATTERY_READINGS]) <= limits[which]:
        low = next((n for n, value in enumerate(medians) if value > limits[which]), len(medians))
        since = series[which][low - 1][0]
        text = f"The battery of {view.title} is low: {saw}. Charge it before the next brew."
        evidence = {"at": since, which: round(medians[0], 3), "limit": limits[which]}
        return True, members | {"since": since, "text": text, "evidence": evidence}
    ended = f"The battery of {view.title} has {saw} again."
    if medians[0] >= limits[which] + RECOVERED[which]:
        return False, members | {"why_not": "it has enough", "ended": ended}
    # Between both limits it stays what it was; what the newest readings show decides, where they do.
    was_well = next((value > limits[which] for value in medians[1:] if _is_clear(value, limits, which)), None)
    return (False if was_well else None), members | {
        "why_not": "it is not clearly low or well",
        "ended": ended,
    }


def _is_clear(value: float, limits: Mapping[str, float], which: str) -> bool:
    return value <= limits[which] or value >= limits[which] + RECOVERED[which]


def look_at_target(view: TargetView, setting_of: SettingOf, now: int) -> Finding:
    """Return whether readings, or messages, do not get to a target."""

    def found(holds: bool | None, **members: Any) -> Finding:
        return Finding("sending", "target", view.name, None, holds, **members)

    if setting_of("sending") is None:
        return found(False, off=True, why_not="switched off")
    wait_s = WAITS_S if view.interval_s is None else LATEST_INTERVALS * view.interval_s
    limit = f"refused, or waiting for {_duration(wait_s)}"
    waits_s = 0 if view.oldest_at is None else now - view.oldest_at
    saw = f"{view.kind}, {view.refused} refused, the oldest waits for {_duration(waits_s)}"
    members: dict[str, Any] = {"limit": limit, "saw": saw}
    reason = f" ({view.reason})" if view.reason else ""
    evidence = {
        "kind": view.kind,
        "reason": view.reason,
        "refused": view.refused,
        "oldest_at": view.oldest_at,
    }
    if view.kind == "paused":
        return found(False, why_not="you paused it", ended=f"{view.name} is paused.", **members)
    if view.kind in {"held", "off"}:
        return found(None, why_not="nothing is sent now", **members)
    if view.kind == "blocked":
        text = f"{view.name} does not take anything{reason}. Somebody must act."
        since = now
    elif view.oldest_at is not None and waits_s > wait_s:
        text = f"Nothing has gone to {view.name} for {_duration(waits_s)}{reason}."
        since = view.oldest_at + wait_s
    elif view.refused_at is not None and now - view.refused_at < REFUSED_S:
        text = f"{view.name} refused a reading, {view.refused} in all{reason}."
        since = view.refused_at
        evidence["refused_at"] = view.refused_at
    else:
        return found(
            False, why_not="it takes what is sent", ended=f"{view.name} takes what is sent.", **members
        )
    return found(True, since=since, text=text, evidence=evidence, **members)


KEEPER = {
    "disk": "room on the disk",
    "database": "no damaged file was set aside",
    "backup": "a backup within 2 days",
    "clock": "the time is known",
    "quarantine": "devices are understood",
}
"""What the gateway looks at in its own house, and what is meant."""


def look_at_keeper(view: KeeperView, setting_of: SettingOf, now: int) -> list[Finding]:
    """Return what is wrong with the gateway itself."""
    findings = []
    off = setting_of("keeper") is None
    for subject, meant in KEEPER.items():
        if off:
            finding = Finding("keeper", "gateway", subject, None, False, off=True, why_not="switched off")
        elif subject not in view.troubles:
            finding = Finding("keeper", "gateway", subject, None, None, limit=meant, why_not="not known now")
        elif (trouble := view.troubles[subject]) is None:
            ended = f"Well again: {meant}."
            finding = Finding(
                "keeper",
                "gateway",
                subject,
                None,
                False,
                saw="ok",
                limit=meant,
                ended=ended,
                why_not="all is well",
            )
        else:
            finding = Finding(
                "keeper", "gateway", subject, None, True, since=trouble.since, saw=trouble.text, limit=meant,
                text=trouble.text, evidence={"at": trouble.since},
            )  # fmt: skip
        findings.append(finding)
    return findings


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
