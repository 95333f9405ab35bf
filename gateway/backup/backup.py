"""Make a backup: the database, copied while it is written to, and the photos, in one verified file.

The file gets its name last: a file of that name is whole and was read back. Everything here blocks.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gateway import __version__
from gateway.backup import archive
from gateway.backup.archive import DATABASE, PHOTOS, Manifest
from gateway.config import NO_DATABASE
from gateway.domain.progress import Progress
from gateway.errors import GatewayError, InvalidInput, NameTaken, StoreUnavailable, StoreUnusable, in_words
from gateway.store.files import PHOTO_DIRECTORY
from gateway.store.local import database_path, latest_schema, schema_of, snapshot, sync_directory
from gateway.store.records import Contents

KIB = 1024
SPARE_BYTES = 1024 * KIB
"""Space that must stay free beside the estimated size of a backup."""


class Stopped(GatewayError):
    """The backup was stopped; there is none."""


class Work:
    """The progress of a backup or restore for its watcher, and `stopped` for its worker, in any thread."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress
        self._done = self._of = 0
        self._what = ""
        self.stopped = False

    def begin(self, what: str, of_bytes: int) -> None:
        """Begin the next part of the work, with its name and its size in bytes."""
        self._done, self._of, self._what = 0, of_bytes, what
        self.tick(0)

    def tick(self, done_bytes: int) -> None:
        """Count `done_bytes` more bytes as done; `Stopped` if the work is to stop."""
        if self.stopped:
            raise Stopped
        self._done = min(self._done + done_bytes, self._of)
        if self._progress is not None:
            self._progress(self._done // KIB, self._of // KIB, f"{self._what} (KiB)")


@dataclass(frozen=True, slots=True)
class Made:
    """A finished backup: its contents, its size, and the names of photos that were missing or damaged."""

    path: Path
    bytes: int
    contents: Contents
    photos: int
    missing: list[str]


def of_this_version(data_dir: Path) -> bool:
    """Return whether the schema of the database is this gateway's own."""
    return schema_of(data_dir) == latest_schema()


def make(
    data_dir: Path, target: Path, work: Work, *, now: float, photos: bool = True, force: bool = False
) -> Made:
    """Write a backup of a data directory, which may be in use, to a new file; with `force`, over an old one.

    After `NameTaken`, `InvalidInput` or `StoreUnavailable`, no part of the backup is left.
    """
    database = database_path(data_dir)
    _check_target(data_dir, database, target, force)
    photo_bytes = _bytes_of(data_dir / PHOTO_DIRECTORY) if photos else 0
    # Twice, because the copy of the database is there until the archive is whole.
    directory, needed = target.parent, 2 * _bytes_of(database) + photo_bytes
    free = shutil.disk_usage(directory).free
    if free < needed + SPARE_BYTES:
        raise StoreUnavailable(
            f"the disk of {directory} has {free // KIB} KiB left; making a backup takes {needed // KIB} KiB"
        )
    with _left_behind(target) as (copy, part), _unavailable(target):
        _copy(database, copy, work)
        held = snapshot.contents(copy)
        missing = _write(data_dir, copy, part, held, work, now=now, photos=photos)
        copy.unlink()
        size = part.stat().st_size
        verify(part, work, size)
        if not force and target.exists():
            raise NameTaken(f"{target} exists by now; nothing was written over it")
        part.replace(target)
        with suppress(OSError):  # some network file systems cannot
            sync_directory(target.parent)
    return Made(target, size, held, len(held.photos) - len(missing) if photos else 0, missing)


def verify(path: Path, work: Work, size: int) -> None:
    """Read an archive to its end; `InvalidInput` if it differs from its manifest."""
    work.begin("reading the backup back", size)
    with archive.opened(path) as backup:
        for name in backup.names():
            backup.copy(name, None, work.tick)


def _check_target(data_dir: Path, database: Path, target: Path, force: bool) -> None:
    if not database.exists():
        raise StoreUnusable(NO_DATABASE.format(data_dir))
    if target.is_dir():
        raise InvalidInput(f"{target} is a directory; name a file in it, such as {target / 'gateway.tar'}")
    if not target.parent.is_dir():
        raise InvalidInput(f"there is no directory {target.parent}")
    if target.parent.resolve() in {data_dir.resolve(), (data_dir / PHOTO_DIRECTORY).resolve()}:
        raise InvalidInput(
            f"{target} lies among the data itself; write the backup elsewhere, best to another disk"
        )
    if target.exists() and not force:
        raise NameTaken(f"{target} exists; choose another name, or --force to replace it")
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{target} is not a file")


@contextmanager
def _left_behind(target: Path) -> Iterator[tuple[Path, Path]]:
    """Yield paths for the copy of the database and the unfinished archive; remove both files afterwards."""
    copy = target.with_name(f".{target.name}.database")
    part = target.with_name(f".{target.name}.part")
    names = (copy, copy.with_name(f"{copy.name}.part"), part)
    try:
        for name in names:
            name.unlink(missing_ok=True)
        yield copy, part
    finally:
        for name in names:
            with suppress(OSError):
                name.unlink(missing_ok=True)


@contextmanager
def _unavailable(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        unit = f"; under systemd, add ReadWritePaths={target.parent}" if error.errno == errno.EROFS else ""
        raise StoreUnavailable(f"cannot write the backup {target}: {in_words(error)}{unit}") from error


def _copy(database: Path, copy: Path, work: Work) -> None:
    """Copy the database alone, consistent and checked."""
    growing = copy.with_name(f"{copy.name}.part")
    work.begin("copying the database", _bytes_of(database))
    seen = 0

    def tick() -> bool:
        nonlocal seen
        grown = _bytes_of(growing) - seen
        seen += grown
        if grown:
            with suppress(Stopped):
                work.tick(grown)
        return work.stopped

    try:
        snapshot.copy_of(database, copy, tick)
    except StoreUnavailable as error:
        if work.stopped:
            raise Stopped from error
        raise


def _write(
    data_dir: Path, copy: Path, part: Path, held: Contents, work: Work, *, now: float, photos: bool
) -> list[str]:
    """Write the archive and fsync it; return the names of photos that are missing or not as they were."""
    wanted = held.photos if photos else {}
    missing: list[str] = []
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        writing = archive.ArchiveWriter(file, work.tick)
        work.begin("writing the database", _bytes_of(copy))
        writing.add(DATABASE, copy)
        work.begin(
            f"writing {len(wanted)} photos", sum(_bytes_of(data_dir / PHOTO_DIRECTORY / n) for n in wanted)
        )
        for name, sha256 in sorted(wanted.items()):
            try:
                written = writing.add(PHOTOS + name, data_dir / PHOTO_DIRECTORY / name)
            except FileNotFoundError:
                missing.append(name)
                continue
            if written.sha256 != sha256:
                missing.append(name)
        made_at = datetime.fromtimestamp(now, UTC).isoformat()
        writing.finish(Manifest(__version__, held.schema, made_at, held.counts, photos, writing.files))
        file.flush()
        os.fsync(fd)
    return missing


def _bytes_of(path: Path) -> int:
    """Return the bytes of a file with its log, or of all files in a directory; 0 if there is none."""
    if path.is_dir():
        return sum(_bytes_of(entry) for entry in path.iterdir())
    total = 0
    for each in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            total += each.stat().st_size
    return total
