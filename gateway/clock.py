"""Wall time and monotonic time behind one small protocol, so that tests can set the clock.

Also the machine's own facts about its clock: the present boot, and whether network time has set the clock.
"""

import os
import time
from pathlib import Path
from typing import Protocol

RELEASED_AT = 1_767_225_600.0
"""2026-01-01T00:00:00Z in Unix seconds: before the first release, so any earlier time is wrong."""

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""random(4): another id after each boot."""

TIMESYNC = Path("/run/systemd/timesync")
"""systemd-timesyncd.service(8): there while it runs. Each synchronisation touches `synchronized` in it."""


class Clock(Protocol):
    """The gateway's clock; all times in seconds."""

    def now(self) -> float:
        """Return Unix time in seconds; it may jump."""

    def monotonic(self) -> float:
        """Return seconds that never jump: the only base of waits and deadlines."""

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds of monotonic time."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> float:
        """Return Unix time in seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start."""
        return time.monotonic()

    def since_boot(self) -> float:
        """Return monotonic seconds that also count while the machine is suspended, if the system can."""
        return (
            time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
        )

    async def sleep(self, seconds: float) -> None:
        """Wait that many seconds."""
        import asyncio  # not above: the command line imports this module, and few commands need a loop

        await asyncio.sleep(seconds)


class Machine:
    """The system's facts about its clock, read from files: no system call that a sandbox would forbid."""

    def __init__(self, boot_id: Path = BOOT_ID, timesync: Path = TIMESYNC) -> None:
        self._timesync = timesync
        try:
            self.boot = boot_id.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):  # not Linux: each process counts as a boot
            self.boot = f"process {os.urandom(8).hex()}"
        """This boot's name."""

    def synchronised_at(self) -> float | None:
        """Return when network time last set the clock (Unix seconds); None if not since the boot."""
        try:
            return (self._timesync / "synchronized").stat().st_mtime
        except OSError:
            return None

    def awaits_network_time(self) -> bool:
        """Return whether a time service runs that has heard of no time server since the boot."""
        return self._timesync.is_dir() and self.synchronised_at() is None
