"""A disk in memory as an apsw VFS: it records every write and sync, and shows what a power cut leaves.

At a cut, of what was written since the last sync of its file some writes are there, some are torn at 512
bytes, and some are not, in any combination (reliability.md 2.2).
"""

import itertools
import random
from dataclasses import dataclass
from typing import Any

import apsw

SECTOR = 512
KEPT, TORN = 0.4, 0.3
"""Shares of unsynced writes; the rest is gone."""

POWERSAFE_OVERWRITE = 0x1000
"""SQLITE_IOCAP_POWERSAFE_OVERWRITE, which SQLite assumes of Unix files by itself (sqlite.org/psow.html)."""

_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Event:
    """A write (`data`), a truncation (`data` is None), or a sync (`offset` is -1) of a file; or an
    acknowledgement, which has no file."""

    file: str
    offset: int = -1
    data: bytes | None = None
    said: Any = None


class Disk(apsw.VFS):
    """Files by name; `events` is what happened to them since the beginning."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.vfs_name = f"disk-{next(_NUMBERS)}"
        self.files = {name: bytearray(content) for name, content in files.items()}
        self.before = dict(files)
        self.events: list[Event] = []
        super().__init__(self.vfs_name, "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        """A `DiskFile` for any file; those without a name are nobody's business."""
        flags[1] = flags[0]
        filename = name.filename() if isinstance(name, apsw.URIFilename) else name
        return DiskFile(self, filename or f"temporary-{next(_NUMBERS)}")

    def xAccess(self, pathname: str, flags: int) -> bool:
        """Whether it is there."""
        return pathname in self.files

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Gone at once and for good: the loggers of directories are not what is looked at here."""
        self.files.pop(filename, None)
        self.before.pop(filename, None)
        self.events = [event for event in self.events if event.file != filename]

    def xFullPathname(self, name: str) -> str:
        """There are no folders."""
        return name

    def xRandomness(self, numbytes: int) -> bytes:
        """Salts and the like."""
        return random.randbytes(numbytes)  # noqa: S311 - no secrets

    def xSleep(self, microseconds: int) -> int:
        """There is nobody to wait for."""
        return microseconds

    def xCurrentTime(self) -> float:
        """A Julian day."""
        return 2_461_000.5

    def xCurrentTimeInt64(self) -> int:
        """The same in milliseconds."""
        return int(2_461_000.5 * 86_400_000)

    def xGetLastError(self) -> tuple[int, str]:
        """None."""
        return 0, ""

    def said(self, what: Any) -> None:
        """Note that something was acknowledged now."""
        self.events.append(Event("", said=what))

    def after_cut(self, moment: int, chance: random.Random) -> dict[str, bytes]:
        """The files when power comes back after a cut before event `moment`."""
        files = {name: bytearray(content) for name, content in self.before.items()}
        pending: dict[str, list[Event]] = {}
        for event in self.events[:moment]:
            if not event.file:
                continue
            if event.offset < 0 and event.data is None and event.said == "sync":
                for earlier in pending.pop(event.file, []):
                    _apply(files, earlier)
            else:
                pending.setdefault(event.file, []).append(event)
        for events in pending.values():
            for event in events:
                _apply_perhaps(files, event, chance)
        return {name: bytes(content) for name, content in files.items()}

    def acknowledged(self, moment: int) -> list[Any]:
        """What had been acknowledged before it."""
        return [event.said for event in self.events[:moment] if not event.file]


def _apply(files: dict[str, bytearray], event: Event) -> None:
    content = files.setdefault(event.file, bytearray())
    if event.data is None:
        del content[event.offset :]
        return
    if len(content) < event.offset:
        content.extend(bytes(event.offset - len(content)))
    content[event.offset : event.offset + len(event.data)] = event.data


def _apply_perhaps(files: dict[str, bytearray], event: Event, chance: random.Random) -> None:
    fate = chance.random()
    if fate < KEPT:
        _apply(files, event)
    elif fate < KEPT + TORN and event.data is not None:
        for start in range(0, len(event.data), SECTOR):
            if chance.random() < 0.5:
                part = event.data[start : start + SECTOR]
                _apply(files, Event(event.file, event.offset + start, part))


class DiskFile:
    """One open file of a `Disk`."""

    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        self._name = name
        self._content = disk.files.setdefault(name, bytearray())

    def xRead(self, amount: int, offset: int) -> bytes:
        """Fewer bytes at the end."""
        return bytes(self._content[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:
        """Into the cache."""
        event = Event(self._name, offset, bytes(data))
        self._disk.events.append(event)
        _apply(self._disk.files, event)

    def xTruncate(self, size: int) -> None:
        """Into the cache, too."""
        event = Event(self._name, size)
        self._disk.events.append(event)
        _apply(self._disk.files, event)

    def xSync(self, flags: int) -> None:
        """All of this file to the medium."""
        self._disk.events.append(Event(self._name, said="sync"))

    def xFileSize(self) -> int:
        """In bytes."""
        return len(self._content)

    def xLock(self, level: int) -> None:
        """One process, one connection."""

    def xUnlock(self, level: int) -> None:
        """One process, one connection."""

    def xCheckReservedLock(self) -> bool:
        """One process, one connection."""
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:
        """None is known."""
        return False

    def xSectorSize(self) -> int:
        """In bytes."""
        return SECTOR

    def xDeviceCharacteristics(self) -> int:
        """As an ordinary Unix file."""
        return POWERSAFE_OVERWRITE

    def xClose(self) -> None:
        """What is not synced stays so."""
