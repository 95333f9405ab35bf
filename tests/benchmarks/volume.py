"""A file system of its own for a data directory, so that the kernel counts what is written to it."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

IMAGE_BYTES = 128 * 1024 * 1024

SECTOR_BYTES = 512
SECTORS_WRITTEN = 6
"""Place of the field in /sys/block/DEV/stat."""

MKFS = ("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0")
"""Nothing is left to be initialised in the background: it would count as ours."""


class NoVolume(Exception):
    """This machine does not let us mount."""


@dataclass(frozen=True, slots=True)
class Volume:
    """A mounted ext4 image on a loop device."""

    directory: Path
    device: str

    def written_bytes(self) -> int:
        """What has been written to the device since it exists."""
        fields = Path(f"/sys/block/{Path(self.device).name}/stat").read_text("ascii").split()
        return int(fields[SECTORS_WRITTEN]) * SECTOR_BYTES

    def sync(self) -> None:
        """Write out what is dirty."""
        _run("sync", "-f", str(self.directory))

    def unmount(self) -> None:
        """Write out everything; the device can still be asked."""
        _run("umount", str(self.directory))


@contextmanager
def mounted() -> Iterator[Volume]:
    """An empty volume; taken apart whatever happens. Raises `NoVolume` where mounting is not permitted."""
    with tempfile.TemporaryDirectory(prefix="gateway-bench-") as parent:
        image, directory = Path(parent) / "image", Path(parent) / "volume"
        directory.mkdir()
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        device = ""
        try:
            try:
                _run(*MKFS, str(image))
                device = _run("losetup", "--find", "--show", str(image))
                _run("mount", "-o", "noatime", device, str(directory))
            except (OSError, subprocess.CalledProcessError) as error:
                raise NoVolume(str(error)) from error
            yield Volume(directory, device)
        finally:
            if directory.is_mount():
                with suppress(subprocess.CalledProcessError):
                    _run("umount", str(directory))
            if device:
                _run("losetup", "--detach", device)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode().strip()
