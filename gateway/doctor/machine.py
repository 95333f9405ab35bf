"""Checks of the machine: its clock, and the HTTP parser of aiohttp."""

import ctypes
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import http_parser

from gateway.backup.nightly import BELIEVED_FROM
from gateway.doctor.database import opened, usable
from gateway.doctor.finding import Context, Finding, ok, problem, warning
from gateway.http import self_check

SYNCHRONISED = Path("/run/systemd/timesync/synchronized")
"""A file that systemd-timesyncd makes once the time is known (systemd-timesyncd.service(8))."""

STA_UNSYNC = 0x40
"""The flag in `status` for a kernel clock that is not set (adjtimex(2))."""

AHEAD_S = 3_600
"""Seconds by which a reading may be ahead of the clock before the clock counts as wrong."""

NETWORK_TIME = "switch network time on: `timedatectl set-ntp true`"


class Timex(ctypes.Structure):
    """The beginning of the kernel's `struct timex` (adjtimex(2)), and room for the rest."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def is_synchronised() -> bool | None:
    """Return whether the clock was set from the network; None if the machine does not tell."""
    if SYNCHRONISED.exists():
        return True
    timex = Timex()
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else not timex.status & STA_UNSYNC


async def clock(context: Context) -> Sequence[Finding]:
    """Check that readings get the right time."""
    now = context.clock.now()
    shown = datetime.fromtimestamp(now, UTC).astimezone().isoformat(" ", "seconds")
    if now < BELIEVED_FROM:
        return [problem(f"the machine's clock says {shown}: readings get that time", NETWORK_TIME)]
    newest = None
    if usable(context):
        async with opened(context) as store:
            summaries = await store.devices.summaries()
        newest = max((summary.last_seen_at for summary in summaries if summary.last_seen_at), default=None)
    if newest is not None and newest > now + AHEAD_S:
        hours = int(newest - now) // 3600
        text = f"the machine's clock says {shown}, but readings have arrived {hours} hours later"
        return [
            problem(text, f"{NETWORK_TIME}; a clock that was wrong then leaves readings with a wrong time")
        ]
    synchronised = is_synchronised()
    if synchronised is False:
        return [warning(f"{shown}, but the clock was not set from the network", NETWORK_TIME)]
    return [ok(f"{shown}{', synchronised' if synchronised else ''}")]


async def deadlines(_: Context) -> Sequence[Finding]:
    """Check that the phases of a connection can be told apart, with the aiohttp that is installed."""
    reason = await self_check.trouble()
    if reason is None:
        return [ok("slow connections are cut off by phase")]
    return [problem(f"deadlines are off: {reason}", self_check.REMEDY)]


async def parser(_: Context) -> Sequence[Finding]:
    """Check that aiohttp uses its C parser: several advisories of 2026 concern only the other one."""
    if http_parser.HttpRequestParser is not http_parser.HttpRequestParserPy:
        return [ok("aiohttp uses its C parser")]
    variable = (
        "unset AIOHTTP_NO_EXTENSIONS"
        if os.environ.get("AIOHTTP_NO_EXTENSIONS")
        else "pip install --force-reinstall aiohttp"
    )
    return [
        problem(
            "aiohttp parses HTTP in Python, which is slower and was open to request smuggling",
            f"{variable}; a binary wheel for this machine has the C parser",
        )
    ]
