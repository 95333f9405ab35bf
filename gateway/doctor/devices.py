"""Checks for devices that have fallen silent."""

from collections.abc import Sequence

from gateway.doctor.database import opened, usable
from gateway.doctor.finding import Context, Finding, ok, warning
from gateway.insight.silence import silent_after_s

OUT_OF_USE_S = 14 * 86_400
"""A device that is silent for longer, in seconds, is not in use."""


async def silent(context: Context) -> Sequence[Finding]:
    """Warn of each device that should have reported."""
    if not usable(context):
        return []
    async with opened(context) as store:
        summaries = await store.devices.summaries()
    ages = [
        (summary, context.clock.now() - summary.last_seen_at) for summary in summaries if summary.last_seen_at
    ]
    found = []
    for summary, age in ages:
        interval_s = summary.device.settings.interval_s or summary.device.interval_s
        if silent_after_s(interval_s) < age <= OUT_OF_USE_S:
            name = summary.device.settings.label or summary.device.name
            text = f"{name} (id {summary.device.id}) has been silent for {_duration(age)}"
            text += f"; it should report every {_duration(interval_s)}" if interval_s else ""
            found.append(warning(text, "check its battery, its WLAN and the address typed into it"))
    resting = sum(age > OUT_OF_USE_S for _, age in ages)
    if found:
        return found
    text = f"{len(ages) - resting} of {len(ages)} report" + (
        ", the others have been silent for two weeks" if resting else ""
    )
    return [ok(text if ages else "no device has reported yet")]


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds / length)} {unit}"
    return f"{int(seconds)} seconds"
