"""`doctor`: one check after the other, each told the settings of `serve`; none of them changes anything."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gateway.clock import Clock, SystemClock
from gateway.config import Settings
from gateway.doctor import (
    backups,
    broker,
    data,
    database,
    devices,
    machine,
    ports,
    topics,
    upstream,
)
from gateway.doctor.finding import Broker, Check, Context, Finding, warning
from gateway.errors import in_words

__all__ = ["CHECKS", "examine"]

log = logging.getLogger(__name__)

CHECKS: tuple[tuple[str, Check], ...] = (
    ("gateway", data.running),
    ("data directory", data.directory),
    ("file system", data.file_system),
    ("free space", data.free_space),
    ("set aside", data.set_aside),
    ("sqlite", database.version),
    ("database", database.file),
    ("forwarding", upstream.waiting),
    ("quarantine", database.quarantine),
    ("devices", devices.silent),
    ("backups", backups.nightly),
    ("clock", machine.clock),
    ("http parser", machine.parser),
    ("ports", ports.ports),
    ("key files", upstream.key_files),
    ("broker", broker.reached),
    ("broker settings", broker.settings),
    ("topics", topics.unread),
    ("upstream", upstream.reached),
)
"""What each is called in the findings, and the check, in the order in which they are made and shown."""


async def examine(
    settings: Settings,
    mqtt: Broker | None,
    parts: Callable[[], Awaitable[Mapping[str, str]]],
    clock: Clock | None = None,
    unread: Callable[[], Awaitable[Mapping[str, Any]]] | None = None,
) -> list[Finding]:
    """All findings; a check that fails itself is a warning and stops no other.

    `parts` asks the gateway that runs, if one does, for the states of its parts, `unread` for MQTT topics
    whose messages came to nothing.
    """
    case = Context(settings, mqtt, clock or SystemClock(), parts, unread)
    findings: list[Finding] = []
    for about, check in CHECKS:
        try:
            findings += [finding.of(about) for finding in await check(case)]
        except Exception as error:  # whatever it met, the others have to be made
            log.debug("doctor: %s", about, exc_info=True)
            findings.append(warning(f"could not be looked at: {in_words(error)}").of(about))
    return findings
