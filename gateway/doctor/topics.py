"""Checks for MQTT topics that are not read: one may be of a hydrometer that the user waits for."""

import asyncio
from collections.abc import Sequence

from gateway.doctor.finding import Context, Finding, ok, warning
from gateway.errors import GatewayError

ANSWER_S = 5.0
"""Seconds in which a running gateway must answer."""

NAMED = 8
"""Topics in the finding at most, the latest ones; `/manage/status` has more."""


async def client_ids(context: Context) -> Sequence[Finding]:
    """Warn of devices at several addresses with one MQTT client id; a broker would hear one of them only."""
    if context.shared_ids is None or not (context.data_dir.is_dir() and context.is_open()):
        return []
    try:
        shared = await asyncio.wait_for(context.shared_ids(), ANSWER_S)
    except (OSError, TimeoutError, GatewayError, KeyError):
        return []
    return [
        warning(
            f"several devices use the MQTT client id {name!r}: {', '.join(addresses)}",
            "the gateway hears all of them; give each a name of its own, so that they can be told apart",
        )
        for name, addresses in shared.items()
    ]


async def unread(context: Context) -> Sequence[Finding]:
    """Warn of topics that are not read. Without a running gateway, or without MQTT, there is no finding."""
    if (
        context.unread is None
        or context.settings.no_mqtt
        or not (context.data_dir.is_dir() and context.is_open())
    ):
        return []
    try:
        topics = await asyncio.wait_for(context.unread(), ANSWER_S)
    except (
        OSError,
        TimeoutError,
        GatewayError,
    ):  # no gateway has the directory open, or an older one
        return []
    messages: dict[str, int] = topics["messages"]
    if not messages:
        return [ok("no messages come on topics that are not read")]
    named = [f"{topic} ({count})" for topic, count in reversed(messages.items())]
    rest = len(named) - NAMED
    shown = ", ".join(named[:NAMED]) + (f" and {rest} more" if rest > 0 else "")
    return [
        warning(
            f"messages come on topics that are not read: {shown}",
            "if one of them is a hydrometer's: serve --mqtt-topic TOPIC=DRIVER, or TOPIC=DEVICE:gravity",
        )
    ]
