"""Secrets in files that only the owner of the data directory can read: of services, channels, and our own."""

import os
import secrets
from pathlib import Path

from gateway.errors import StoreUnavailable, in_words

KEY_DIRECTORY = "target-keys"
FORMER_DIRECTORY = "keys"
"""Earlier versions kept keys here. Their targets name the file, so it stays where it is."""

SECRET_DIRECTORY = "secrets"  # noqa: S105 (a name)
"""Secrets of channels: a file for each."""

OWNER_ALONE = 0o600

FIRST_KEY_FILE = "first-key"
"""The first API key waits here until somebody has seen it: a journal keeps what is printed for ever."""


def key_file(data_dir: Path, name: str) -> Path:
    """Return the file for the key of the target of that name."""
    return data_dir.absolute() / KEY_DIRECTORY / f"{name}.key"


def url_name(name: str) -> str:
    """Return the name under which the address of a target is kept, if it is a secret. No target has it."""
    return f"{name}~url"


def is_own(data_dir: Path, name: str, path: Path) -> bool:
    """Return whether the gateway itself made this key file for the named target, and so may remove it."""
    return path in {data_dir.absolute() / each / f"{name}.key" for each in (KEY_DIRECTORY, FORMER_DIRECTORY)}


def keep_key(data_dir: Path, name: str, key: str) -> Path:
    """Write the key to its file, over an earlier key, and return the file. Blocks.

    The file gets the owner of the data directory.
    """
    return _keep(key_file(data_dir, name), data_dir, key)


def secret_file(data_dir: Path, name: str) -> Path:
    """Return the file for the secret of the channel of that name."""
    return data_dir.absolute() / SECRET_DIRECTORY / name


def keep_secret(data_dir: Path, name: str, secret: str) -> Path:
    """Write the secret of a channel to its file, as `keep_key` does with a key. Blocks."""
    return _keep(secret_file(data_dir, name), data_dir, secret)


def _keep(path: Path, data_dir: Path, key: str) -> Path:
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        # The gateway has to read a file that root writes.
        if os.geteuid() == 0:
            os.chown(path.parent, data_dir.stat().st_uid, data_dir.stat().st_gid)
    except OSError as error:
        raise StoreUnavailable(f"the key cannot be kept in {path}: {in_words(error)}") from error
    _write(path, data_dir, key)
    return path


def first_key_file(data_dir: Path) -> Path:
    """Return the file for the first API key."""
    return data_dir.absolute() / FIRST_KEY_FILE


def keep_first_key(data_dir: Path, key: str) -> None:
    """Write the first API key to its file. Blocks."""
    _write(first_key_file(data_dir), data_dir, key)


def _write(path: Path, data_dir: Path, key: str) -> None:
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        owner = data_dir.stat()
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ALONE)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{key}\n")
            file.flush()
            os.fsync(file.fileno())
        if os.geteuid() == 0:
            os.chown(temporary, owner.st_uid, owner.st_gid)
        temporary.replace(path)
        # The name, too, because the key itself is in the database a moment later, and only as a digest.
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreUnavailable(f"the key cannot be kept in {path}: {in_words(error)}") from error
