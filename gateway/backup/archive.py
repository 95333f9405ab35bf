"""The file format of a backup: a tar archive (POSIX.1-2001) of the database, the photos, and a manifest.

`gateway.sqlite3` comes first, then `photos/<uuid>.<ext>`, then `manifest.json`: `format`, `version`,
`gateway`, `schema`, `made_at` (ISO 8601), `counts`, `with_photos`, and `files` with size in bytes and SHA-256
of each. Any tar program can read it. API keys are in it as SHA-256 only; keys for upstreams and secrets of
channels are not in it, as they live in files of their own. Everything here blocks.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from gateway.errors import InvalidInput
from gateway.store.files import PHOTO_NAME

FORMAT = "hydrometer-gateway backup"
VERSION = 1

DATABASE = "gateway.sqlite3"
PHOTOS = "photos/"
MANIFEST = "manifest.json"

MANIFEST_BYTES = 64 * 1024 * 1024
"""The largest manifest that is accepted; it takes about a hundred bytes for each photo."""

PIECE_BYTES = 1024 * 1024

BROKEN = (tarfile.TarError, ValueError, LookupError, ArithmeticError)
"""Errors for a broken archive: `tarfile` leaks those of its own parsing, such as of a sparse file's map."""

NAME_SHOWN = 80
"""The most characters of a file's name in a message."""

Tick = Callable[[int], None]
"""Called with the number of bytes done since the last call; raises to stop the work."""


@dataclass(frozen=True, slots=True)
class File:
    """Size in bytes and SHA-256 (hex) of a file in the archive."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of an archive: its origin, its time (ISO 8601), counts of records, and its files."""

    gateway: str
    schema: int
    made_at: str
    counts: Mapping[str, int]
    with_photos: bool
    files: Mapping[str, File]

    def to_json(self) -> bytes:
        """Return the manifest as the JSON that stands in the archive."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=1).encode()


class Hashing:
    """A file that is hashed while it is read."""

    def __init__(self, file: IO[bytes], tick: Tick) -> None:
        self._file = file
        self._tick = tick
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes, or all if it is -1, and add them to the hash."""
        piece = self._file.read(size)
        self._hash.update(piece)
        self._tick(len(piece))
        return piece

    @property
    def sha256(self) -> str:
        """The SHA-256 (hex) of the bytes read so far."""
        return self._hash.hexdigest()


class ArchiveWriter:
    """An archive that is being written."""

    def __init__(self, file: IO[bytes], tick: Tick) -> None:
        self._tar = tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)
        self._tick = tick
        self.files: dict[str, File] = {}

    def add(self, name: str, path: Path) -> File:
        """Add a file, return its size and hash; `OSError` if it cannot be read to its end."""
        with path.open("rb") as file:
            info = self._tar.gettarinfo(arcname=name, fileobj=file)
            info.mode, info.uid, info.gid, info.uname, info.gname = 0o600, 0, 0, "", ""
            hashed = Hashing(file, self._tick)
            self._tar.addfile(info, hashed)
        self.files[name] = File(info.size, hashed.sha256)
        return self.files[name]

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest at the end, and complete the archive."""
        data = manifest.to_json()
        info = tarfile.TarInfo(MANIFEST)
        info.size, info.mode = len(data), 0o600
        self._tar.addfile(info, io.BytesIO(data))
        self._tar.close()


class ArchiveReader:
    """An archive whose list of contents has been read and is complete."""

    def __init__(self, path: Path, tar: tarfile.TarFile, manifest: Manifest) -> None:
        self._path = path
        self._tar = tar
        self.manifest = manifest

    def names(self) -> Iterable[str]:
        """Return the names of the files in the archive, without the manifest."""
        return self.manifest.files

    def copy(self, name: str, target: IO[bytes] | None, tick: Tick) -> None:
        """Write a file of the archive to `target`, None to check it only; `InvalidInput` if it is damaged.

        No more is written than the bytes that the manifest names.
        """
        left = self.manifest.files[name].bytes
        try:
            source = self._tar.extractfile(name)
            assert source is not None  # noqa: S101  (`opened` lets regular files through alone)
            hashed = Hashing(source, tick)
            while left and (piece := hashed.read(min(PIECE_BYTES, left))):
                left -= len(piece)
                if target is not None:
                    target.write(piece)
        except BROKEN as error:
            raise _damaged(self._path, f"{name}: {error}") from error
        if hashed.sha256 != self.manifest.files[name].sha256:
            raise _damaged(self._path, f"{name} is not what it was")


@contextmanager
def opened(path: Path) -> Iterator[ArchiveReader]:
    """Open an archive for reading; `InvalidInput` if it is none, not whole, or of a later version."""
    try:
        tar = tarfile.open(path, "r:")  # noqa: SIM115  (closed below)
    except BROKEN as error:
        raise InvalidInput(f"{path} is no backup of this program; name a file that `backup` wrote") from error
    with tar:
        try:
            members = tar.getmembers()
        except BROKEN as error:
            raise _damaged(path, str(error)) from error
        yield ArchiveReader(path, tar, _manifest(path, tar, members))


def _manifest(path: Path, tar: tarfile.TarFile, members: list[tarfile.TarInfo]) -> Manifest:
    last = members[-1] if members else None
    if last is None or last.name != MANIFEST or last.size > MANIFEST_BYTES:
        ours = last is not None and members[0].name == DATABASE
        raise (
            _damaged(path, "its end is missing")
            if ours
            else InvalidInput(f"{path} is no backup of this program")
        )
    manifest = _understood(path, tar, last)
    files = {name: file.bytes for name, file in manifest.files.items()}
    for name in [*files, *(member.name for member in members[:-1])]:
        if name != DATABASE and not (name.startswith(PHOTOS) and PHOTO_NAME.fullmatch(name, len(PHOTOS))):
            raise _damaged(path, f"it holds {name[:NAME_SHOWN]!a}, which is no file of a backup")
    for member in members:
        # A sparse file is as large as its header says, whatever the archive holds of it.
        if not member.isreg() or member.issparse():
            raise _damaged(path, f"{member.name[:NAME_SHOWN]!a} is no plain file")
    found = {member.name: member.size for member in members[:-1]}
    if found != files or len(members) != len(files) + 1 or DATABASE not in files:
        raise _damaged(path, "its files are not those of its manifest")
    return manifest


def _understood(path: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> Manifest:
    try:
        source = tar.extractfile(member) if member.isreg() and not member.issparse() else None
        said: dict[str, Any] = json.loads(source.read() if source else b"")
        if said.pop("format") != FORMAT:
            raise _damaged(path, "its manifest is of another program")
        if (version := said.pop("version")) > VERSION:
            raise InvalidInput(f"{path} is a backup of version {version}; update this program first")
        files = {name: File(**file) for name, file in said.pop("files").items()}
        if not all(isinstance(file.bytes, int) and file.bytes >= 0 for file in files.values()):
            raise _damaged(path, "its manifest has a size that is none")
        return Manifest(**said, files=files)
    except (*BROKEN, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, "its manifest cannot be understood") from error


def _damaged(path: Path, what: str) -> InvalidInput:
    return InvalidInput(f"the backup {path} is damaged: {what}")
