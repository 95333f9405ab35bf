"""Checks of the data directory: its owner, its disk, and the files in it."""

import asyncio
import os
import pwd
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gateway.backup.restore import MARK as RESTORE_MARK
from gateway.doctor.database import opened, usable
from gateway.doctor.finding import Context, Finding, mib, ok, problem, warning
from gateway.doctor.topics import ANSWER_S
from gateway.errors import GatewayError
from gateway.services.upkeep import NEARLY_FULL
from gateway.store.local import NOT_COUNTED, DiskQuota, database_files, kept_aside

SERVE = "start it: `systemctl start hydrometer-gateway`, or `hydrometer-gateway serve`"

MOUNTS = Path("/proc/self/mountinfo")

GONE_AT_REBOOT = frozenset({"tmpfs", "ramfs"})
LIES_ABOUT_FSYNC = {
    "9p": "a directory of the host in a virtual machine",
    "drvfs": "a Windows drive in WSL",
    "nfs": "a network disk",
    "nfs4": "a network disk",
    "cifs": "a network disk",
    "smb3": "a network disk",
    "vfat": "FAT, which has no journal",
    "msdos": "FAT, which has no journal",
    "exfat": "exFAT, which has no journal",
    "overlay": "a container's own layer, which goes with the container",
}
"""File systems that may lose synced data, or where SQLite's locks fail (sqlite.org/howtocorrupt.html)."""

NO_BARRIERS = frozenset({"nobarrier", "barrier=0"})

ELSEWHERE = "put --data-dir on a local disk with ext4, XFS or Btrfs"


class Mount(NamedTuple):
    """A line of mountinfo: mount point, file system, and its options."""

    point: str
    kind: str
    options: frozenset[str]


async def running(context: Context) -> Sequence[Finding]:
    """Check whether a gateway has the directory open."""
    if context.is_open():
        return [ok("a gateway is running with these data")]
    return [warning("no gateway is running with these data: devices get no answer", SERVE)]


async def directory(context: Context) -> Sequence[Finding]:
    """Check that the directory exists and that only its owner can read it."""
    path = context.data_dir
    if not path.exists():
        return [ok(f"{path} does not exist yet; the first start makes it")]
    if not path.is_dir():
        return [problem(f"{path} is not a directory", "name another with --data-dir")]
    status = path.stat()
    if status.st_uid != os.geteuid():
        try:
            owner = pwd.getpwuid(status.st_uid).pw_name
        except KeyError:
            owner = str(status.st_uid)
        if os.geteuid() == 0:
            return [ok(f"{path} belongs to {owner}")]
        remedy = f"run this as {owner}, or name another with --data-dir"
        return [problem(f"{path} belongs to {owner}, not to you", remedy)]
    if not os.access(path, os.W_OK | os.X_OK):
        return [
            problem(f"{path} cannot be written to", f"chmod 700 {path}; or the disk is mounted read-only")
        ]
    open_files = [file for file in (path, *database_files(path)) if file.stat().st_mode & 0o077]
    if open_files:
        names = " ".join(map(str, open_files))
        return [warning(f"other users can read {names}", f"chmod go= {names}")]
    return [ok(f"{path} is its owner's alone")]


async def file_system(context: Context) -> Sequence[Finding]:
    """Check that the file system keeps data that it reports as written."""
    existing = next(path for path in (context.data_dir, *context.data_dir.parents) if path.exists())
    mount = mount_of(
        existing.resolve(), await asyncio.to_thread(MOUNTS.read_text, "utf-8", "surrogateescape")
    )
    return [judged(mount)]


def mount_of(path: Path, mountinfo: str) -> Mount:
    """Return the mount of a path from the text of /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    best = Mount("", "unknown", frozenset())
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape")  # a blank is written \040
        if path.is_relative_to(point) and len(point) >= len(best.point):
            kind, _, options = (*after.split(), "", "", "")[:3]
            best = Mount(point, kind, frozenset(f"{before.split()[5]},{options}".split(",")))
    return best


def judged(mount: Mount) -> Finding:
    """Judge a file system."""
    where = f"{mount.kind} on {mount.point}"
    if mount.kind in GONE_AT_REBOOT:
        return problem(f"{where} is memory: everything is gone at the next reboot", ELSEWHERE)
    if "ro" in mount.options:
        return problem(
            f"{where} is mounted read-only", "look at `dmesg`: the disk may be failing; then remount it"
        )
    if mount.kind in LIES_ABOUT_FSYNC or mount.kind.startswith("fuse"):
        kind = LIES_ABOUT_FSYNC.get(mount.kind, "a file system in user space")
        return warning(f"{where} is {kind}: acknowledged readings may be lost in a power cut", ELSEWHERE)
    if mount.options & NO_BARRIERS:
        return problem(
            f"{where} is mounted without barriers: a power cut loses readings", "remount with barrier=1"
        )
    return ok(where)


async def free_space(context: Context) -> Sequence[Finding]:
    """Check that the quota fits on the disk, beside other files."""
    if not context.data_dir.is_dir():
        return []
    room = DiskQuota(context.data_dir, context.settings.quota)
    refusal = room.refusal()
    if refusal is not None:
        return [problem(refusal, "delete files that are not needed, or put the data on a larger disk")]
    used = await asyncio.to_thread(_bytes_in, context.data_dir)
    in_deleted = 0
    if usable(context):
        async with opened(context) as store:
            used -= (await store.totals.storage()).reusable_bytes
            in_deleted = sum(found.readings for found in await store.sessions.deleted())
    free, quota = room.free_bytes(), await _quota_in_force(context) or room.quota_bytes
    text = f"{mib(used)} of the quota of {mib(quota)} in use, {mib(free)} free on the disk"
    if used > quota * NEARLY_FULL:
        purge = f"`sessions purge` the {in_deleted} readings of deleted brew sessions, " if in_deleted else ""
        remedy = f"{purge}raise --quota, set --keep-days, or delete files that were set aside"
        return [problem(text, f"{remedy}; at the quota nothing is taken")]
    if free < quota - used:
        return [
            warning(
                f"{text}: the disk is full before the quota is reached",
                f"lower --quota below {mib(used + free)}, or make room",
            )
        ]
    return [ok(text)]


async def _quota_in_force(context: Context) -> int | None:
    """Return the quota of the running gateway: `serve` may have options that `doctor` does not know."""
    if context.quota is None or not context.is_open():
        return None
    try:
        return await asyncio.wait_for(context.quota(), ANSWER_S)
    except (OSError, TimeoutError, GatewayError, KeyError):  # no gateway, or one of an older version
        return None


def _bytes_in(directory: Path) -> int:
    """Count bytes as the disk does, without files that only the user deletes."""
    files = (file for file in directory.rglob("*") if not any(mark in str(file) for mark in NOT_COUNTED))
    return sum(file.stat().st_blocks * 512 for file in files if file.is_file())


async def set_aside(context: Context) -> Sequence[Finding]:
    """List files that the gateway does not need but the user may want."""
    damaged = kept_aside(context.data_dir)
    replaced = sorted(context.data_dir.glob(f"*{RESTORE_MARK}*"))
    found = []
    if damaged:
        size = mib(sum(map(_size, damaged)))
        text = f"{len(damaged)} damaged files are kept, {size}, the last {damaged[-1].name}"
        found.append(
            warning(text, "their readable rows are in the database; check the disk, then delete them")
        )
    if replaced:
        text = f"{len(replaced)} files from before a restore are kept, {mib(sum(map(_size, replaced)))}"
        found.append(ok(f"{text}; delete {context.data_dir}/*{RESTORE_MARK}* once you miss nothing"))
    return found or [ok("nothing")]


def _size(path: Path) -> int:
    return sum(map(_size, path.iterdir())) if path.is_dir() else path.stat().st_size
