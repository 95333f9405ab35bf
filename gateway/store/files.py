"""Originals of photos as files in a directory beside the database, one per row.

Everything here blocks: callers use `asyncio.to_thread`. Order makes it safe: the file is on the disk before
its row is, and outlives it; a crash between the two leaves a file too many, which `PhotoFiles.sweep` takes.
"""

import os
import re
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.errors import InvalidInput, StoreUnavailable, in_words

PHOTO_DIRECTORY = "photos"
"""The name of the directory inside the data directory."""

PHOTO_NAME = re.compile(r"[0-9a-f-]{36}\.(?:jpg|png|gif)")
"""The name of a photo's file."""

_PART = re.compile(PHOTO_NAME.pattern + r"\.\w+\.part")


class PhotoFiles:
    """The files of one directory, named `<uuid>.jpg`, `.png` or `.gif`; any other name is `InvalidInput`.

    Any trouble with the disk is `StoreUnavailable`. Only their owner can read the files and the directory.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def save(self, name: str, data: bytes) -> None:
        """Write a file so that it survives a power cut from the moment this call returns.

        After an error there is no file, or, where the last step failed, one that the next sweep takes.
        """
        path = self._path(name)
        with _unavailable("keep the photo", self.directory):
            try:
                self.directory.mkdir(mode=0o700)
                _sync_directory(self.directory.parent)
            except FileExistsError:
                pass
            temporary = self._write_part(name, data)
            try:
                temporary.replace(path)
            except BaseException:
                _discard(temporary)
                raise
            _sync_directory(self.directory)

    def load(self, name: str) -> bytes:
        """Return a file's bytes; `StoreUnavailable` if a photo has its row but has lost its file."""
        path = self._path(name)
        with _unavailable("read the photo", self.directory):
            try:
                return path.read_bytes()
            except FileNotFoundError as error:
                remedy = "restore it from a backup, or delete the photo"
                raise StoreUnavailable(f"the photo's file {path} is missing: {remedy}") from error

    def remove(self, name: str) -> None:
        """Delete a file for good; a missing file is no error."""
        path = self._path(name)
        with _unavailable("delete the photo", self.directory), suppress(FileNotFoundError):
            path.unlink()
            _sync_directory(self.directory)

    def names(self) -> set[str]:
        """Return the names of all photos in the directory."""
        return {name for name in self._files() if PHOTO_NAME.fullmatch(name)}

    def sweep(self, known: Collection[str]) -> int:
        """Delete leftovers of crashes, half-written files and photos not in `known`; return how many.

        Call this only while nothing is being saved: a file whose row is yet to come looks the same. Files
        with any other name are not ours and stay.
        """
        kept = frozenset(known)
        left = [
            name
            for name in self._files()
            if _PART.fullmatch(name) or (PHOTO_NAME.fullmatch(name) and name not in kept)
        ]
        with _unavailable("tidy the photos", self.directory):
            for name in left:
                (self.directory / name).unlink(missing_ok=True)
        return len(left)

    def _path(self, name: str) -> Path:
        if PHOTO_NAME.fullmatch(name) is None:
            raise InvalidInput("that is no name of a photo")
        return self.directory / name

    def _write_part(self, name: str, data: bytes) -> Path:
        fd, path = tempfile.mkstemp(prefix=f"{name}.", suffix=".part", dir=self.directory)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
        except BaseException:
            _discard(Path(path))
            raise
        return Path(path)

    def _files(self) -> list[str]:
        with (
            _unavailable("list the photos", self.directory),
            suppress(FileNotFoundError),
            os.scandir(self.directory) as entries,
        ):
            return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        return []


@contextmanager
def _unavailable(task: str, directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"cannot {task} in {directory}: {in_words(error)}") from error


def _discard(path: Path) -> None:
    with suppress(OSError):  # the disk that refused the file may refuse this too, and the first error counts
        path.unlink()


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
