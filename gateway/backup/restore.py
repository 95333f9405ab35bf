"""Restore a backup: check it first, keep the present data, and let one rename decide.

Until the last step, the rename of the database, the data are unchanged; after it they are the backup's.
Photos come before it, under names of their own: the next start sweeps the photos that no record needs.
Everything here blocks.
"""

import hashlib
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from gateway.backup import archive
from gateway.backup.archive import DATABASE
from gateway.backup.backup import Work
from gateway.domain.audit import AuditEntry
from gateway.errors import InvalidInput, StoreInUse, StoreUnavailable, in_words
from gateway.store.files import PHOTO_DIRECTORY
from gateway.store.local import database_path, is_database, lock_directory, snapshot, sync_directory
from gateway.store.records import Contents


@dataclass(frozen=True, slots=True)
class Staged:
    """An unpacked and checked backup; `photos` is a directory, `missing` are names of lost photos."""

    database: Path
    photos: Path
    contents: Contents
    missing: list[str]
    made_at: str


def stage(data_dir: Path, backup: Path, folder: Path, work: Work) -> Staged:
    """Unpack a backup, or copy a database file, into `folder`; `InvalidInput` if it is not sound."""
    try:
        is_file_of_ours = is_database(backup)
    except OSError as error:
        raise InvalidInput(f"cannot read {backup}: {in_words(error)}") from error
    database, photos = database_path(folder), folder / PHOTO_DIRECTORY
    photos.mkdir(mode=0o700)
    if is_file_of_ours:
        _check_room(data_dir, backup.stat().st_size)
        made_at = _take_database(backup, database)
    else:
        made_at = _unpack(data_dir, backup, folder, work)
    snapshot.check(database, f"the database of {backup}")
    held = snapshot.contents(database)
    beside = backup.with_name(backup.name.replace(database.name, PHOTO_DIRECTORY, 1))
    sources = [*([beside] if is_file_of_ours else []), data_dir / PHOTO_DIRECTORY]
    missing = [
        name for name, sha256 in sorted(held.photos.items()) if not _photo(name, sha256, photos, sources)
    ]
    return Staged(database, photos, held, missing, made_at)


def _check_room(data_dir: Path, size: int) -> None:
    """Raise `StoreUnavailable` without room for files of this size in bytes, and once more for the checks."""
    needed, free = 2 * size, shutil.disk_usage(data_dir).free
    if free < needed:
        raise StoreUnavailable(
            f"the disk of {data_dir} has {free >> 10} KiB left, a restore takes {needed >> 10} KiB"
        )


def _unpack(data_dir: Path, backup: Path, folder: Path, work: Work) -> str:
    work.begin("reading the backup", backup.stat().st_size)
    with archive.opened(backup) as reading:
        _check_room(data_dir, sum(file.bytes for file in reading.manifest.files.values()))
        for name in reading.names():
            path = database_path(folder) if name == DATABASE else folder / PHOTO_DIRECTORY / Path(name).name
            with _new_file(path) as fd, os.fdopen(fd, "wb", closefd=False) as file:
                reading.copy(name, file, work.tick)
                file.flush()
                os.fsync(fd)
        return reading.manifest.made_at


@contextmanager
def _new_file(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        yield fd
    finally:
        os.close(fd)


def _take_database(backup: Path, database: Path) -> str:
    """Copy a database file that was set aside, with its log; return its time."""
    for suffix in ("", "-wal"):
        source = backup.with_name(f"{backup.name}{suffix}")
        if not source.exists():
            continue
        with _new_file(database.with_name(f"{database.name}{suffix}")) as fd, source.open("rb") as file:
            with os.fdopen(fd, "wb", closefd=False) as copy:
                shutil.copyfileobj(file, copy)
            os.fsync(fd)
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(backup.stat().st_mtime))


def _photo(name: str, sha256: str, photos: Path, sources: list[Path]) -> bool:
    """Put a photo into the staged directory; return whether it was found with this SHA-256."""
    for source in (photos, *sources):
        path = source / name
        with suppress(FileNotFoundError, NotADirectoryError):
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                    continue
            if source != photos:
                (photos / name).unlink(missing_ok=True)
                link(path, photos / name)
            return True
    return False


def link(source: Path, target: Path) -> None:
    """Link a file to a second name; copy it if the file system cannot, or is another one."""
    try:
        os.link(source, target)
    except OSError:
        with _new_file(target) as fd, source.open("rb") as file:
            with os.fdopen(fd, "wb", closefd=False) as copy:
                shutil.copyfileobj(file, copy)
            os.fsync(fd)


MARK = ".before-restore-"
"""The mark between name and time (UTC) in the names of files from before a restore."""

STAGING = ".restoring-"

STOP_FIRST = "stop the gateway first (systemctl stop hydrometer-gateway); nothing was changed"


@dataclass(slots=True)
class Restored:
    """The result of a restore or of a dry run: the contents before (None: nothing readable) and now.

    `aside` are names of files that were kept, `missing` names of photos that are lost.
    """

    made_at: str
    before: Contents | None
    now: Contents
    aside: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def restore(data_dir: Path, backup: Path, work: Work, *, dry_run: bool = False) -> Restored:
    """Replace the data with a backup, or with a database file that this program has kept.

    `StoreInUse` while a gateway runs. After `InvalidInput`, `SchemaTooNew` or `StoreUnavailable` the data
    are as they were. With `dry_run` they always are.
    """
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(data_dir, dry_run), _unavailable(data_dir), _staging(data_dir) as folder:
        staged = stage(data_dir, backup, folder, work)
        before = None
        with suppress(StoreUnavailable):  # there is nothing, or it cannot be read
            before = snapshot.contents(database_path(data_dir))
        result = Restored(staged.made_at, before, staged.contents, missing=staged.missing)
        if not dry_run:
            readings = staged.contents.counts["readings"]
            detail = f"of {staged.made_at}: {readings:,} readings"
            snapshot.make_ready(staged.database, AuditEntry("restore", f"backup:{backup.name}", detail))
            result.aside = _swap(data_dir, staged)
        return result


@contextmanager
def _locked(data_dir: Path, dry_run: bool) -> Iterator[None]:
    # No lock for a dry run, because it leaves the data as they are: a gateway may run beside it.
    if dry_run:
        yield
        return
    try:
        fd = lock_directory(data_dir)
    except StoreInUse as error:
        raise StoreInUse(f"{error}: {STOP_FIRST}") from error
    try:
        yield
    finally:
        os.close(fd)


@contextmanager
def _unavailable(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or data_dir
        raise StoreUnavailable(f"cannot restore: {where}: {in_words(error)}") from error


@contextmanager
def _staging(data_dir: Path) -> Iterator[Path]:
    """Make a directory on the disk of the data; remove the leftovers of interrupted restores."""
    for old in data_dir.glob(f"{STAGING}*"):
        shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=STAGING, dir=data_dir))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _swap(data_dir: Path, staged: Staged) -> list[str]:
    """Keep the present files, bring in the photos, rename the database; return the names of kept files."""
    present, photos = database_path(data_dir), data_dir / PHOTO_DIRECTORY
    stamp = base = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    numbers = itertools.count(1)
    while any(data_dir.glob(f"*{MARK}{stamp}*")):  # two restores within a second
        stamp = f"{base}-{next(numbers)}"
    aside = _keep_database(present, stamp)
    aside += _keep_photos(photos, staged, stamp)
    photos.mkdir(mode=0o700, exist_ok=True)
    for photo in staged.photos.iterdir():
        photo.replace(photos / photo.name)
    sync_directory(photos)
    sync_directory(data_dir)
    # Files that root has made go to the owner of the directory: the gateway must be able to open them.
    if os.geteuid() == 0:
        owner = data_dir.stat()
        for path in data_dir.rglob("*"):
            if path.lstat().st_uid != owner.st_uid:
                os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    for suffix in ("-wal", "-shm"):
        present.with_name(f"{present.name}{suffix}").unlink(missing_ok=True)
    staged.database.replace(present)
    sync_directory(data_dir)
    return aside


def _keep_database(present: Path, stamp: str) -> list[str]:
    """Give the database a second name; if it is damaged, its log, too."""
    if not os.path.lexists(present):
        return []
    try:
        if not snapshot.take_log_in(present):
            raise StoreInUse(f"another program is reading {present}: end it first; nothing was changed")
    except StoreUnavailable:
        pass  # damaged: the log is kept as it is
    kept = []
    for suffix in ("", "-wal"):
        file = present.with_name(f"{present.name}{suffix}")
        if file.exists() and (not suffix or file.stat().st_size):
            other = present.with_name(f"{present.name}{MARK}{stamp}{suffix}")
            link(file, other)
            kept.append(other.name)
    return kept


def _keep_photos(photos: Path, staged: Staged, stamp: str) -> list[str]:
    """Give a second name to each photo that would be removed or replaced."""
    going = [
        photo
        for photo in (photos.iterdir() if photos.is_dir() else ())
        if not (other := staged.photos / photo.name).exists() or other.read_bytes() != photo.read_bytes()
    ]
    if not going:
        return []
    folder = photos.with_name(f"{photos.name}{MARK}{stamp}")
    folder.mkdir(mode=0o700)
    for photo in going:
        link(photo, folder / photo.name)
    sync_directory(folder)
    return [folder.name]
