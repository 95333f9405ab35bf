"""What a command of the command line is: a function on the services, told its arguments as plain JSON."""

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Any

from gateway.errors import InvalidInput
from gateway.services.build import Services

Arguments = dict[str, Any]

Progress = Callable[[int, int, str], None]
"""Told how much is done, of how much, and of what."""

Command = Callable[[Services, Arguments, Progress], Awaitable[Any]]
"""Gives what the command line shows, as plain JSON."""


def as_text(data: bytes) -> str:
    """A file's bytes as an argument."""
    return base64.b64encode(data).decode()


def as_bytes(text: str) -> bytes:
    """An argument's bytes."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("the file did not arrive whole") from error
