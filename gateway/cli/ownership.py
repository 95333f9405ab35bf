"""Whose the data directory is: files that root makes in it have to belong to the service's user."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.config import no_right
from gateway.errors import StoreUnusable

ROOT = 0


def check_right(directory: Path) -> None:
    """Refuse a data directory that this user may not enter, before a file in it is named."""
    # Not `exists`, because with DynamicUser= it is a link into a directory that only root may enter.
    if os.path.lexists(directory) and not os.access(directory, os.X_OK):
        raise StoreUnusable(no_right(directory))


@contextmanager
def files_of_owner(directory: Path) -> Iterator[None]:
    """Give files that root made in another user's directory meanwhile to that user, who could not open them.

    systemd does not do it: it looks at the owner of the directory alone.
    """
    try:
        yield
    finally:
        if os.geteuid() == ROOT:
            with suppress(OSError):
                owner = directory.stat()
                if owner.st_uid != ROOT:
                    _give(directory, owner.st_uid, owner.st_gid)


def _give(directory: Path, user_id: int, group_id: int) -> None:
    # Resolved, because the directory of a service is a link, which stays root's.
    for folder, _, names in os.walk(directory.resolve()):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            with suppress(OSError):
                if path.lstat().st_uid == ROOT:
                    os.chown(path, user_id, group_id, follow_symlinks=False)
