"""The machine: its clock, and what aiohttp parses HTTP with."""

import ctypes
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import http_parser

from gateway.backup.nightly import BELIEVED_FROM
from gateway.doctor.database import opened, usable
from gateway.doctor.finding import Context, Finding, ok, problem, warning

SYNCHRONISED = Path("/run/systemd/timesync/synchronized")
"""systemd-timesyncd makes it once the time is known (systemd-timesyncd.service(8))."""

STA_UNSYNC = 0x40
"""Of the kernel's clock, in `status` (adjtimex(2))."""

AHEAD_S = 3_600
"""A reading so far in the future was not taken in the future."""

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
    """Whether the machine knows what time it is; None where it does not say."""
    if SYNCHRONISED.exists():
        return True
    timex = Timex()
    try:
        told = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError):
        return None
    return None if told < 0 else not timex.status & STA_UNSYNC


async def clock(case: Context) -> Sequence[Finding]:
    """Whether readings get the right time."""
    now = case.clock.now()
    shown = datetime.fromtimestamp(now, UTC).astimezone().isoformat(" ", "seconds")
    if now < BELIEVED_FROM:
        return [problem(f"it is {shown}, says the machine: readings get that time", NETWORK_TIME)]
    newest = await _newest(case)
    if newest is not None and newest > now + AHEAD_S:
        hours = int(newest - now) // 3600
        text = f"it is {shown}, says the machine, but readings have arrived {hours} hours later"
        return [
            problem(text, f"{NETWORK_TIME}; a clock that was wrong then leaves readings with a wrong time")
        ]
    synchronised = is_synchronised()
    if synchronised is False:
        return [warning(f"{shown}, but nothing has set it from the network", NETWORK_TIME)]
    return [ok(f"{shown}{', synchronised' if synchronised else ''}")]


async def _newest(case: Context) -> int | None:
    """When the newest reading has arrived, in Unix seconds."""
    if not usable(case):
        return None
    async with opened(case) as store:
        summaries = await store.devices.summaries()
    return max((summary.last_seen_at for summary in summaries if summary.last_seen_at), default=None)


async def parser(_: Context) -> Sequence[Finding]:
    """Whether aiohttp has its C parser: several advisories of 2026 are about the other one alone."""
    if http_parser.HttpRequestParser is not http_parser.HttpRequestParserPy:
        return [ok("aiohttp uses its C parser")]
    variable = (
        "unset AIOHTTP_NO_EXTENSIONS"
        if os.environ.get("AIOHTTP_NO_EXTENSIONS")
        else "pip install --force-reinstall aiohttp"
    )
    return [
        problem(
            "aiohttp parses HTTP in Python, which is slower and through which requests were smuggled",
            f"{variable}; a binary wheel for this machine has the C parser",
        )
    ]
