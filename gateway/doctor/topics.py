"""MQTT topics whose messages come to nothing: perhaps a hydrometer that somebody waits for."""

import asyncio
from collections.abc import Sequence

from gateway.doctor.finding import Context, Finding, ok, warning
from gateway.errors import GatewayError

ANSWER_S = 5.0
"""For the gateway that runs to say what came."""

NAMED = 8
"""Topics in the finding at most, those that were heard last; `/manage/status` has more."""


async def unread(case: Context) -> Sequence[Finding]:
    """A warning that names them; nothing where no gateway runs, or none listens to MQTT."""
    if case.unread is None or case.settings.no_mqtt or not (case.data_dir.is_dir() and case.is_open()):
        return []
    try:
        told = await asyncio.wait_for(case.unread(), ANSWER_S)
    except (
        OSError,
        TimeoutError,
        GatewayError,
    ):  # no gateway has the directory open, or an older one
        return []
    messages: dict[str, int] = told["messages"]
    if not messages:
        what = "nothing comes" if case.settings.mqtt_url is None else "nothing has come"
        return [ok(f"{what} on a topic that is not read")]
    named = [f"{topic} ({count})" for topic, count in reversed(messages.items())]
    rest = len(named) - NAMED
    shown = ", ".join(named[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
    return [
        warning(
            f"messages came to nothing on {shown}",
            "if one of them is a hydrometer's: serve --mqtt-topic TOPIC=DRIVER, or TOPIC=DEVICE:gravity",
        )
    ]
