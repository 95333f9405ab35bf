"""`doctor`: makes one check after the other with the settings of `serve`. No check changes anything."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.clock import Clock, SystemClock
from gateway.doctor import (
    backups,
    broker,
    certificate,
    data,
    database,
    devices,
    keys,
    machine,
    ports,
    topics,
    upstream,
)
from gateway.doctor.finding import Broker, Check, Context, Finding, warning
from gateway.errors import in_words
from gateway.settings import Settings

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
    ("inbox", database.inbox),
    ("devices", devices.silent),
    ("keys", keys.keys),
    ("backups", backups.nightly),
    ("clock", machine.clock),
    ("http parser", machine.parser),
    ("http deadlines", machine.deadlines),
    ("ports", ports.ports),
    ("addresses", ports.addresses),
    ("certificate", certificate.pair),
    ("key files", upstream.key_files),
    ("broker", broker.reached),
    ("broker settings", broker.settings),
    ("topics", topics.unread),
    ("client ids", topics.client_ids),
    ("upstream", upstream.reached),
)
"""Name and function of every check, in the order in which they are made and shown."""


async def examine(
    settings: Settings,
    mqtt: Broker | None,
    parts: Callable[[], Awaitable[Mapping[str, str]]],
    clock: Clock | None = None,
    unread: Callable[[], Awaitable[Mapping[str, Any]]] | None = None,
    quota: Callable[[], Awaitable[int]] | None = None,
    shared_ids: Callable[[], Awaitable[Mapping[str, Sequence[str]]]] | None = None,
) -> list[Finding]:
    """Make all checks and return their findings. A check that fails itself is a warning and stops no other.

    `parts` asks a running gateway for the states of its parts, `unread` for MQTT topics that are not read,
    `quota` for the quota in force, `shared_ids` for MQTT client ids of several devices.
    """
    context = Context(settings, mqtt, clock or SystemClock(), parts, unread, quota, shared_ids)
    findings: list[Finding] = []
    for name, check in CHECKS:
        found: Sequence[Finding]
        try:
            found = await check(context)
        except Exception as error:  # of any kind, because the other checks have to be made
            log.debug("doctor: %s", name, exc_info=True)
            found = [warning(f"could not be checked: {in_words(error)}")]
        findings += [replace(finding, check=finding.check or name) for finding in found]
    return findings
