"""A backup unpacked on the disk of the data, and checked, before anything else is touched; blocks."""

import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import InvalidInput, StoreUnavailable
from gateway.failures import in_words
from gateway.services import archive
from gateway.services.archive import DATABASE
from gateway.services.backup import Work
from gateway.store.files import PHOTO_DIRECTORY
from gateway.store.sqlite import snapshot
from gateway.store.sqlite.database import DATABASE_NAME
from gateway.store.sqlite.snapshot import Contents

MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Staged:
    """A backup unpacked and checked; photos are files in `photos`, those of `missing` nowhere."""

    database: Path
    photos: Path
    contents: Contents
    missing: list[str]
    made_at: str


def stage(data_dir: Path, backup: Path, folder: Path, work: Work) -> Staged:
    """Take database and photos out of a backup or database file into `folder`; `InvalidInput` if unsound."""
    try:
        with backup.open("rb") as file:
            is_database = file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise InvalidInput(f"cannot read {backup}: {in_words(error)}") from error
    _check_room(data_dir, backup)
    database, photos = folder / DATABASE_NAME, folder / PHOTO_DIRECTORY
    photos.mkdir(mode=0o700)
    made_at = _take_database(backup, database) if is_database else _unpack(backup, folder, work)
    snapshot.check(database, f"the database of {backup}")
    held = snapshot.contents(database)
    beside = backup.with_name(backup.name.replace(DATABASE_NAME, PHOTO_DIRECTORY, 1))
    sources = [*([beside] if is_database else []), data_dir / PHOTO_DIRECTORY]
    missing = [
        name for name, sha256 in sorted(held.photos.items()) if not _photo(name, sha256, photos, sources)
    ]
    return Staged(database, photos, held, missing, made_at)


def _check_room(data_dir: Path, backup: Path) -> None:
    needed, free = 2 * backup.stat().st_size, shutil.disk_usage(data_dir).free
    if free < needed:
        raise StoreUnavailable(
            f"the disk of {data_dir} has {free >> 10} KiB left, a restore takes {needed >> 10} KiB"
        )


def _unpack(backup: Path, folder: Path, work: Work) -> str:
    work.begin("reading the backup", backup.stat().st_size)
    with archive.opened(backup) as reading:
        for name in reading.names():
            path = folder / (DATABASE_NAME if name == DATABASE else f"{PHOTO_DIRECTORY}/{Path(name).name}")
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
    """A database file that was set aside, with its log where there is one."""
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
    """Have the photo among those staged; whether it is there as it was."""
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
    """The same file under another name; a copy where the file system cannot, or it is another one."""
    try:
        os.link(source, target)
    except OSError:
        with _new_file(target) as fd, source.open("rb") as file:
            with os.fdopen(fd, "wb", closefd=False) as copy:
                shutil.copyfileobj(file, copy)
            os.fsync(fd)
