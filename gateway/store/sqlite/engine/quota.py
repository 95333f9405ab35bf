"""Room on the disk: our quota, a reserve that is left to others, ballast to throw off when it is full.

A full disk stops SQLite altogether, deletes and checkpoints included: each needs room in the log first. Files
that are given up then make room for them, and their directory entries for the log and its index.
"""

import logging
import os
import time
from contextlib import suppress
from pathlib import Path

from gateway.store.sqlite.engine.codes import in_words

log = logging.getLogger(__name__)

MIB = 1024 * 1024

DEFAULT_QUOTA_BYTES = 4 * 1024 * MIB
"""The quota if none is set; half of the disk if that is less."""

LEAST_QUOTA_BYTES = 4 * MIB
"""The smallest quota: an empty database needs that much beside its log."""

OWN_SHARE = 50
"""The last fiftieth of the database's part takes no readings: forwarding, settings and deletions need it."""

GROUP_BYTES = 4 * MIB
"""Bytes that the readings of one commit take at most."""

OPEN_AT = 0.98
"""A quota that was full is open again once so much of it is in use."""

FULL = "the quota is full: make room, `sessions purge` what is deleted, raise --quota, or set --keep-days"

RESERVE_BYTES = 32 * MIB
RESERVE_SHARE = 20
"""Below 32 MiB, or a twentieth of a smaller disk, no readings are taken: forwarding needs the rest."""

LOOK_AGAIN_S = 0.25
"""Seconds between two looks at the disk at least."""

BALLAST = ("ballast-1", "ballast-2")
BALLAST_BYTES = 256 * 1024
"""The size of each of the two ballast files."""

BLOCK_BYTES = 512
"""The unit of `st_blocks`."""

NOT_COUNTED = (".damaged-", ".before-restore-", ".restoring-")
"""Marks in the names of files that only the owner may delete: the quota leaves such files out."""


class DiskQuota:
    """The disk that a data directory is on, and how much of it is ours.

    `is_full` says that readings have used up their part of the quota: they are refused before they wait for a
    commit that must fail.
    """

    def __init__(self, directory: Path, quota_bytes: int | None = None) -> None:
        self._directory = directory
        self._wanted = quota_bytes
        self._looked_at = float("-inf")
        self._refusal: str | None = None
        self._pages, self._used = 2**62, 0
        self.is_full = False

    @property
    def quota_bytes(self) -> int:
        """The bytes that database, photos and copies may take together."""
        if self._wanted is not None:
            return max(self._wanted, LEAST_QUOTA_BYTES)
        disk = os.statvfs(self._directory)
        return min(DEFAULT_QUOTA_BYTES, disk.f_blocks * disk.f_frsize // 2)

    def max_pages(self, page_bytes: int, database: Path) -> int:
        """Return how many pages the database may have beside everything else in the directory; blocks."""
        left = self.quota_bytes - _others(self._directory, database)
        self._pages = max(left, LEAST_QUOTA_BYTES // 2) // page_bytes
        return self._pages

    def note_pages(self, used: int) -> None:
        """Note how many pages of the database are in use, of those that `max_pages` gave it.

        A change between full and open is one line in the log. Between both limits the state stays, so that
        the log does not fill up with changes.
        """
        self._used = used
        limit = self._pages - self._pages // OWN_SHARE
        if not self.is_full and used >= limit:
            self.is_full = True
            log.error("store: no reading is taken: %s", FULL)
        elif self.is_full and used <= limit * OPEN_AT:
            self.is_full = False
            log.warning("store: the quota has room again, readings are taken")

    def refusal(self) -> str | None:
        """Return why no readings can be taken now, or None; look at the disk four times a second at most."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at, self._refusal = now, self._look()
        return self._refusal

    def free_bytes(self) -> int:
        """Return the bytes that this user can still write."""
        disk = os.statvfs(self._directory)
        return disk.f_bavail * disk.f_frsize

    def _reserve(self) -> int:
        disk = os.statvfs(self._directory)
        return min(RESERVE_BYTES, disk.f_blocks * disk.f_frsize // RESERVE_SHARE)

    def _look(self) -> str | None:
        try:
            free, reserve = self.free_bytes(), self._reserve()
        except OSError as error:
            return f"the data directory cannot be reached: {in_words(error)}"
        if free >= reserve:
            return None
        return (
            f"the disk is full: {free // 1024} KiB are free and {reserve // 1024} KiB must stay so for "
            f"forwarding; make room on the disk of {self._directory}"
        )

    def is_the_limit(self) -> bool:
        """Return whether a database that says it is full has met the quota, and not the end of the disk.

        A group of readings takes less than half of the smallest quota that `serve` takes.
        """
        if self._used < self._pages // 2:
            return False
        try:
            return self.free_bytes() >= max(self._reserve(), GROUP_BYTES)
        except OSError:
            return False

    def release_reserve(self) -> bool:
        """Delete the ballast for room and two directory entries; return whether any was left."""
        thrown = False
        for name in BALLAST:
            with suppress(OSError):
                (self._directory / name).unlink()
                thrown = True
        if thrown:
            log.warning("store: the disk is full, the ballast is thrown off")
        return thrown

    def fill_reserve(self) -> None:
        """Write missing ballast files again if there is room; blocks for a moment."""
        for name in BALLAST:
            path = self._directory / name
            with suppress(OSError):
                if path.exists() or self.free_bytes() < self._reserve() + 2 * BALLAST_BYTES:
                    continue
                _write_ballast(path)

    def has_ballast(self) -> bool:
        """Return whether any ballast exists: then there has been a database, too."""
        return any((self._directory / name).exists() for name in BALLAST)


def _write_ballast(path: Path) -> None:
    part = path.with_name(f"{path.name}.part")
    try:
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, os.urandom(BALLAST_BYTES))  # not zeros: some file systems keep none of those
            os.fsync(fd)
        finally:
            os.close(fd)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _others(directory: Path, database: Path) -> int:
    """Return the bytes of all files of ours but the database: photos, copies, ballast."""
    own = {f"{database.name}{suffix}" for suffix in ("", "-wal", "-shm")}
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            kept = any(mark in f"{folder}/{name}" for mark in NOT_COUNTED)
            if not kept and name not in own:
                with suppress(OSError):
                    total += Path(folder, name).stat().st_blocks * BLOCK_BYTES
    return total
