"""File systems of their own: ext4 in an image whose power can be cut, and tmpfs that is soon full."""

import errno
import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.faults.frame import Missing
from tests.patience import PATIENCE_S

LOOK_S = 0.05

IMAGE_BYTES = 96 * 1024 * 1024

MKFS = ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0")

SHUTDOWN = 0x8004587D
"""`EXT4_IOC_SHUTDOWN`, _IOR('X', 125, __u32) (Linux, fs/ext4/ext4.h)."""

NO_FLUSH = struct.pack("I", 2)
"""`EXT4_GOING_FLAGS_NOLOGFLUSH`: what is not on the medium yet is gone, the journal's too."""


def run(*command: str) -> str:
    """Output of a command that works, else `Missing`."""
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout.decode().strip()
    except FileNotFoundError as error:
        raise Missing(f"{command[0]} is not installed") from error
    except subprocess.CalledProcessError as error:
        raise Missing(f"{' '.join(command)}: {error.stderr.decode().strip()}") from error


class PowerVolume:
    """An ext4 image on a loop device, mounted at `directory`."""

    def __init__(self, parent: Path, name: str) -> None:
        self.directory = parent / f"{name}.mounted"
        self.directory.mkdir()
        image = parent / f"{name}.image"
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        run(*MKFS, str(image))
        self.device = run("losetup", "--find", "--show", str(image))

    def mount(self) -> None:
        """As after power is back: ext4 replays its journal."""
        run("mount", "-o", "noatime", self.device, str(self.directory))

    def cut(self) -> None:
        """Everything that is not on the medium is gone, at once."""
        fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, NO_FLUSH)
        finally:
            os.close(fd)

    def read_only(self) -> None:
        """As ext4 does on errors of the device: no more writes."""
        run("mount", "-o", "remount,abort", str(self.directory))

    def unmount(self) -> None:
        """Nobody may have anything open on it; a mount namespace made meanwhile has it mounted, too."""
        run("umount", str(self.directory))
        deadline = time.monotonic() + PATIENCE_S
        while self._is_in_use():
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.device} is still mounted, in another mount namespace")
            time.sleep(LOOK_S)

    def _is_in_use(self) -> bool:
        """Whether any file system of any namespace is on the device: Linux then lends it to nobody else."""
        try:
            os.close(os.open(self.device, os.O_RDONLY | os.O_EXCL))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            return True
        return False

    def close(self) -> None:
        """Take it apart, whatever state it is in."""
        if self.directory.is_mount():
            with suppress(Missing):
                run("umount", "--lazy", str(self.directory))
        with suppress(Missing):
            run("losetup", "--detach", self.device)


@contextmanager
def tmpfs(directory: Path, options: str) -> Iterator[Path]:
    """A tmpfs with `size=` or `nr_inodes=`."""
    directory.mkdir()
    run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(directory))
    try:
        yield directory
    finally:
        run("umount", "--lazy", str(directory))
