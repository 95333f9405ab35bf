"""A target: a Brewing Data Service that brew sessions are forwarded to."""

import re
from dataclasses import dataclass

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
NAME_RULE = "a target's name is of letters, digits, '-', '_' and '.', 64 of them at most"

PER_MINUTE, PER_MINUTE_MAX = 60, 6000
"""Requests in any minute at most: unless told otherwise, and the highest number that is taken."""

MIRROR_RATE, MIRROR_RATE_MIN, MIRROR_RATE_MAX = 2.0, 0.01, 100.0
"""Requests a second to a service that is copied: unless told otherwise, at least, and at most."""

UPSTREAM, MIRROR = "upstream", "mirror"
"""What the services of `--upstream-url` and `--mirror-from` are called."""


@dataclass(frozen=True, slots=True)
class Target:
    """One service. Watermarks and mappings know it by its base URL, `url`; the key stays in its file.

    `unnamed` says that brew sessions which name no service go there, `paused` that the user stopped it.
    `from_options` is one that `serve` was told of. When `resumed`, a count, moves, forwarding to it
    begins afresh.
    """

    name: str
    url: str
    key_file: str
    per_minute: int = PER_MINUTE
    from_options: bool = False
    unnamed: bool = False
    paused: bool = False
    resumed: int = 0


@dataclass(frozen=True, slots=True)
class TargetState:
    """How a target is doing, in words, and when it is asked again (Unix seconds), where that is known."""

    words: str
    next_at: float | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of the readings of a brew session at a target.

    `upstream_id` is the session's number there, None where it is forwarded there no longer. `edited` counts
    those that were edited here, and are there as they were. `oldest_at` is when the first pending one arrived
    (Unix milliseconds), `edited_since` the time of the first edited one (Unix seconds).
    """

    target: str
    session_id: int
    upstream_id: int | None
    pending: int
    forwarded: int
    refused: int
    not_forwarded: int
    oldest_at: int | None
    edited: int = 0
    edited_since: int | None = None


@dataclass(frozen=True, slots=True)
class ReadingDelivery:
    """What became of one reading, and why, by target's name.

    The states are `pending`, `forwarded`, `refused`, `not forwarded` and `edited here, not there`.
    """

    oid: str
    created_at: int
    states: dict[str, str]
    reasons: dict[str, str]
