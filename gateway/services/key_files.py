"""Keys for services, given as text: one file each in the data directory, readable by its owner only."""

import os
import secrets
from pathlib import Path

from gateway.errors import StoreUnavailable, in_words

KEY_DIRECTORY = "target-keys"
FORMER_DIRECTORY = "keys"
"""Earlier versions kept keys here. Their targets name the file, so it stays where it is."""

OWNER_ALONE = 0o600


def key_file(data_dir: Path, name: str) -> Path:
    """Return the file for the key of the target of that name."""
    return data_dir.absolute() / KEY_DIRECTORY / f"{name}.key"


def is_own(data_dir: Path, name: str, path: Path) -> bool:
    """Return whether the gateway itself made this key file for the named target, and so may remove it."""
    return path in {data_dir.absolute() / each / f"{name}.key" for each in (KEY_DIRECTORY, FORMER_DIRECTORY)}


def keep_key(data_dir: Path, name: str, key: str) -> Path:
    """Write the key to its file, over an earlier key, and return the file. Blocks.

    The file gets the owner of the data directory.
    """
    path = key_file(data_dir, name)
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        owner = data_dir.stat()
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ALONE)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{key}\n")
            file.flush()
            os.fsync(file.fileno())
        # The gateway has to read a file that root writes.
        if os.geteuid() == 0:
            os.chown(path.parent, owner.st_uid, owner.st_gid)
            os.chown(temporary, owner.st_uid, owner.st_gid)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreUnavailable(f"the key cannot be kept in {path}: {in_words(error)}") from error
    return path
