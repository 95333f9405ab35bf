"""The rules with limits that a person sets: `reached`, and temperatures of a brew or of a device. Pure."""

from collections.abc import Callable, Mapping, Sequence

from gateway.domain.alarm import RULES
from gateway.notify import temperatures
from gateway.notify.look import DAY_S, NO_GRAVITY, Look, episodes, evidence_of, moment, of_brew, sg_text
from gateway.notify.temperatures import Limits
from gateway.notify.views import BrewView, DeviceView, Finding

WORDS = {"sg": "gravity at most {:.3f}", "attenuation": "attenuation at least {:g} %", "day": "day {:g}"}


def reached(look: Look) -> list[Finding]:
    """Return whether a brew has reached one of the limits that were set for it."""
    view, figures = look.view, look.view.insight
    limits = {name: look.setting[name] for name in WORDS if name in look.setting}
    if not limits:
        return [of_brew(view, "reached", False, why_not="no limit is set")]
    limit = " or ".join(WORDS[name].format(value) for name, value in limits.items())
    if any(alarm.evidence.get("limits") == limits for alarm in look.told):
        # What was reached stays so, even where gravity rises a little again.
        return [of_brew(view, "reached", None, limit=limit, why_not="it was told", told=True)]
    hit = reached_limits(view, limits)
    if not hit:
        holds = None if figures.sg is None else False
        return [of_brew(view, "reached", holds, limit=limit, why_not="not yet" if figures.sg else NO_GRAVITY)]
    what = look.setting.get("text") or "reached what you set"
    said = ", ".join(WORDS[name].format(limits[name]) for name in hit)
    return [
        of_brew(
            view,
            "reached",
            True,
            since=look.now,
            held_s=RULES["reached"].held_s,
            limit=limit,
            text=f"{view.title}: {what} ({said}). Gravity is {sg_text(figures.sg)}.",
            evidence=evidence_of(view, look.now, limits=limits, day=figures.day),
        )
    ]


def reached_limits(view: BrewView, limits: Mapping[str, float]) -> list[str]:
    """Return the names of the limits that a brew has reached."""
    figures, found = view.insight, []
    if "sg" in limits and figures.sg is not None and figures.sg <= limits["sg"]:
        found.append("sg")
    if "attenuation" in limits and (figures.attenuation or 0.0) >= limits["attenuation"]:
        found.append("attenuation")
    if "day" in limits and figures.day is not None and figures.day >= limits["day"]:
        found.append("day")
    return found


def temperature_of_brew(look: Look) -> list[Finding]:
    """Return whether a brew is too warm or too cold, or changed quickly."""
    view, figures = look.view, look.view.insight
    last = next(reversed(episodes(figures.changes)), None)
    is_cold = figures.cold_since is not None
    # A beer that is done, or was made cold, may be as cold as its brewer likes.
    ready = is_cold or (last is not None and last.phase == "finished")
    begin = None if figures.day is None else look.now - int(figures.day * DAY_S)
    lo, hi = look.setting.get("lo", view.lo), look.setting.get("hi", view.hi)
    if lo is not None and hi is not None and lo >= hi:
        # Who sets one limit beyond the other of the recipe means another range than the recipe does.
        lo, hi = look.setting.get("lo"), look.setting.get("hi")
    limits = Limits(
        lo=None if ready else lo,
        hi=hi,
        moves_from=None if is_cold or begin is None else begin + temperatures.SETTLED_S,
    )
    temps = () if view.signs is None else view.signs.temps
    since_pitching = [pair for pair in temps if begin is None or pair[0] >= begin]
    return [
        _temperature(
            lambda holds, **members: of_brew(view, "temperature", holds, **members),
            view.title,
            since_pitching,
            limits,
            look.now,
        )
    ]


def temperature_of_device(
    found: Callable[..., Finding], view: DeviceView, setting: Mapping[str, float], now: int
) -> Finding:
    """Return whether a device in no brew is outside the limits that were set for it."""
    limits = Limits(setting.get("lo"), setting.get("hi"))
    return _temperature(found, view.title, view.signs.temps, limits, now)


def _temperature(
    found: Callable[..., Finding], title: str, temps: Sequence[tuple[int, float]], limits: Limits, now: int
) -> Finding:
    sides = (("below", limits.lo), ("above", limits.hi))
    parts = [f"{side} {value:g} °C" for side, value in sides if value is not None]
    if limits.moves_from is not None:
        parts.append(f"{temperatures.MOVED_K:g} K in an hour")
    limit = " or ".join(parts)
    if not limit:
        return found(False, why_not="no limits: set lo or hi")
    recent = bool(temps) and now - temps[-1][0] <= temperatures.OLD_S
    course = temperatures.course(temps, limits) if recent else None
    if course is None:
        why_not = "too few temperatures of the last hours"
        return found(None, limit=limit, saw=f"{len(temps)} temperatures", why_not=why_not)
    saw = f"{course.celsius:.1f} °C, the median of {temperatures.MEDIAN_OF}"
    if course.holds is not True or course.readings < temperatures.HELD_READINGS:
        why_not = "it is inside" if course.holds is False else "it is not clearly inside or outside"
        ended = f"{title} has {course.celsius:.1f} °C again."
        holds, held_s = False if course.holds is False else None, temperatures.HELD_S
        return found(holds, held_s=held_s, limit=limit, saw=saw, why_not=why_not, ended=ended)
    meant = {"warm": limits.hi, "cold": limits.lo}.get(course.kind)
    if meant is None:
        text = (
            f"{title} changed by more than {temperatures.MOVED_K:g} K within an hour: {course.celsius:.1f} °C"
        )
    else:
        most = "most" if course.kind == "warm" else "least"
        text = f"{title} is too {course.kind}: {course.celsius:.1f} °C, at {most} {meant:g} °C are meant"
    evidence = {"at": course.since, "temp_c": round(course.celsius, 2), "lo": limits.lo, "hi": limits.hi}
    return found(
        True,
        since=course.since,
        held_s=temperatures.HELD_S,
        limit=limit,
        saw=saw,
        text=f"{text}, since {moment(course.since)}.",
        why_not="not for 30 min yet" if now - course.since < temperatures.HELD_S else "",
        evidence={name: value for name, value in evidence.items() if value is not None},
    )
