"""Devices that have fallen silent."""

from collections.abc import Sequence

from gateway.doctor.database import opened, usable
from gateway.doctor.finding import Context, Finding, ok, warning
from gateway.domain.device import DeviceSummary

INTERVALS = 3
"""So many may be missed: WLAN is what it is."""

INTERVAL_S = 900
"""Of a device that has not said its own."""

OUT_OF_USE_S = 14 * 86_400
"""Silent for longer, a device lies in a drawer."""


async def silent(case: Context) -> Sequence[Finding]:
    """A warning for each device that should have reported."""
    if not usable(case):
        return []
    async with opened(case) as store:
        summaries = await store.devices.summaries()
    ages = [
        (summary, case.clock.now() - summary.last_seen_at) for summary in summaries if summary.last_seen_at
    ]
    found = [_late(summary, age) for summary, age in ages if _limit(summary) < age <= OUT_OF_USE_S]
    resting = sum(age > OUT_OF_USE_S for _, age in ages)
    if found:
        return found
    text = f"{len(ages) - resting} of {len(ages)} report" + (
        ", the others have not for two weeks" if resting else ""
    )
    return [ok(text if ages else "none has reported yet")]


def _limit(summary: DeviceSummary) -> int:
    return INTERVALS * (summary.device.settings.interval_s or summary.device.interval_s or INTERVAL_S)


def _late(summary: DeviceSummary, age: float) -> Finding:
    name = summary.device.settings.label or summary.device.name
    expected = _limit(summary) // INTERVALS
    return warning(
        f"{name} (id {summary.device.id}) has been silent for {_duration(age)}; it should report every "
        f"{_duration(expected)}",
        "look at its battery, its WLAN and the address typed into it",
    )


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds / length)} {unit}"
    return f"{int(seconds)} seconds"
