"""Which process holds a lock or a port, as far as `/proc` tells this user (proc(5)). Never an error."""

import os
import pwd
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")

LISTENS = "0A"
"""The state of a listening socket in `/proc/net/tcp`."""

PROCESSES = 5_000
"""Processes whose open files are looked through at most for the holder of a port."""

COMM_CHARACTERS = 15
"""Characters of a program's name that the kernel keeps in `comm` (TASK_COMM_LEN without its end)."""

NAME_CHARACTERS = 40
"""Characters of a program's name that are shown."""

FLOCK = re.compile(r"^\d+: FLOCK +ADVISORY +WRITE +(?P<pid>\d+) [0-9a-f]+:[0-9a-f]+:(?P<inode>\d+) ", re.M)


@dataclass(frozen=True, slots=True)
class Holder:
    """A process by its id and name. Without the right to see it, the id is 0 and the name is its user's."""

    pid: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid})" if self.pid else f"a program of the user {self.name}"


def lock_words(path: Path) -> str:
    """Name the process that has the lock on a file: `process 812, since 14:02`; nothing if unknown."""
    with suppress(OSError, ValueError):
        inode = path.stat().st_ino
        locks = (PROC / "locks").read_text("ascii", "replace")
        pids = {int(found["pid"]) for found in FLOCK.finditer(locks) if int(found["inode"]) == inode}
        if len(pids) == 1 and (pid := pids.pop()):
            since = started_at(pid)
            return f"process {pid}" + ("" if since is None else f", since {_shown_time(since)}")
    return ""


def started_at(pid: int) -> float | None:
    """Return when a process was started, in Unix seconds; None if unknown."""
    with suppress(OSError, ValueError, IndexError):
        # The name in brackets may hold blanks; starttime is field 22, in ticks since the machine's start.
        fields = (PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        uptime_s = float((PROC / "uptime").read_text("ascii").split()[0])
        return time.time() - uptime_s + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return None


def _shown_time(unix_seconds: float) -> str:
    """Return the time of the day, with the day if that is not today."""
    then, now = time.localtime(unix_seconds), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


def port_holder(port: int) -> Holder | None:
    """Return the process that listens on a TCP port, or the user whose process it is."""
    with suppress(OSError, ValueError, IndexError):
        for user_id, inode in _listening(port):
            return _process_with(f"socket:[{inode}]") or Holder(0, _user_name(user_id))
    return None


def _listening(port: int) -> Iterator[tuple[int, str]]:
    """Yield user id and inode of each socket that listens on the port."""
    for table in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):
            for line in (PROC / "net" / table).read_text("ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    yield int(fields[7]), fields[9]


def _process_with(link: str) -> Holder | None:
    """Return the process that has this open file; None if this user may not see it."""
    for entry in [found for found in PROC.iterdir() if found.name.isdigit()][:PROCESSES]:
        with suppress(OSError):
            if any(str(file.readlink()) == link for file in (entry / "fd").iterdir()):
                return Holder(int(entry.name), _name_of(entry)[:NAME_CHARACTERS] or "a program")
    return None


def _name_of(process: Path) -> str:
    """Return the name of a process. The command line has the whole of a name that the kernel cut."""
    name = (process / "comm").read_text("utf-8", "replace").strip()
    if len(name) < COMM_CHARACTERS:
        return name
    words = (process / "cmdline").read_text("utf-8", "replace").split("\0")
    return next((whole for word in words if (whole := Path(word).name).startswith(name)), name)


def _user_name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def owner_of(path: Path) -> str:
    """Name the user whose file or directory it is; of what does not exist, the nearest directory above."""
    for each in (path, *path.parents):
        with suppress(OSError):
            return _user_name(each.stat().st_uid)
    return "another user"
