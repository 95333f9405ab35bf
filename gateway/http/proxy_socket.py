"""The Unix socket for a reverse proxy: the TCP door by another way, not the owner's control socket.

A peer there has no address. The proxy names one. Without a name, a peer needs a key.
"""

import socket
import stat
from pathlib import Path

from gateway.errors import ConfigError, in_words
from gateway.http.both_ends import SOCKET_NAME

MODE = 0o660
"""The owner of the socket and its group may connect: the proxy's user has to be in that group."""


def listen_for_proxy(path: Path) -> socket.socket:
    """Bind a Unix socket. Replace the socket that a killed gateway left; `ConfigError` for anything else."""
    if path.name == SOCKET_NAME:
        raise ConfigError(f"{SOCKET_NAME} is the name of the owner's own socket; choose another")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_left_over(path):
            path.unlink()
        listener.bind(str(path))
        # Before `listen`, because nobody can connect until then.
        path.chmod(MODE)
        listener.listen()
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on the socket {path}: {in_words(error)}") from error
    except ConfigError:
        listener.close()
        raise
    return listener


def close_for_proxy(listener: socket.socket, path: Path) -> None:
    """Close the socket and remove its file, unless the file is another's by now."""
    listener.close()
    try:
        if _is_left_over(path):
            path.unlink()
    except (OSError, ConfigError):
        pass  # the next start removes it or says why it cannot


def _is_left_over(path: Path) -> bool:
    """Return whether the path is a socket that nobody listens on; `ConfigError` if it is anything else."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ConfigError(f"{path} exists and is no socket; choose another with --http-socket")
    except FileNotFoundError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
    raise ConfigError(f"the socket {path} is in use; stop the other program, or choose another")
