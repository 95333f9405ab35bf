"""The ledger: what was promised to devices, written the moment the yes arrived, on another file system."""

import os
import time
from pathlib import Path


class Ledger:
    """Lines of monotonic nanoseconds and mark; `issued` is every mark that was ever sent."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.issued: set[str] = set()
        self.yes = 0
        self.no = 0
        self.waits_s: list[float] = []

    def write(self, mark: str, waited_s: float = 0.0) -> None:
        """Somebody said yes to this reading."""
        os.write(self._fd, b"%d %s\n" % (time.monotonic_ns(), mark.encode()))
        self.yes += 1
        self.waits_s.append(waited_s)

    def before(self, monotonic_ns: int | None = None) -> set[str]:
        """The marks that were promised, before a moment where one is given."""
        lines = (line.split(" ", 1) for line in self._path.read_text("ascii").splitlines())
        return {mark for at, mark in lines if monotonic_ns is None or int(at) < monotonic_ns}

    def wait_s(self, share: float, first: int = 0) -> float:
        """How long such a share of devices waited for the yes at most, from yes number `first` on."""
        waits = sorted(self.waits_s[first:]) or [0.0]
        return waits[min(len(waits) - 1, int(len(waits) * share))]

    def close(self) -> None:
        """No more."""
        os.close(self._fd)
