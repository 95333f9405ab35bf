"""API keys: their scopes, and how keys are made and compared."""

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import unquote

Scope = Literal["read", "ingest", "admin"]
ALL_SCOPES: frozenset[Scope] = frozenset(get_args(Scope))

KEY_PREFIX = "hg_"
"""The prefix of every key, so that people and secret scanners recognise a key."""

KEY_BYTES = 32
"""Random bytes in a key: high entropy, so SHA-256 without salt or stretching is enough."""

SHOWN_CHARACTERS = 10
"""Characters of a key that lists show, prefix included."""

_KEY = re.compile(r"hg(?:_|%5[Ff])(?:[0-9A-Za-z_-]|%5[Ff]|%2[Dd]){20,}")
"""Text that may be a key, as it stands in a path or a query."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as stored: only its SHA-256, never the key itself. Times are Unix seconds.

    `device` is the name of the one device that an ingest key is for; empty if the key is for all. From
    `expires_at` on nothing is taken with the key. `replaced` means that a newer key has its name.
    `last_source` is the address that the key was used from last.
    """

    name: str
    account_id: int
    shown: str
    sha256: bytes
    scopes: frozenset[Scope]
    created_at: int
    device: str = ""
    expires_at: int | None = None
    replaced: bool = False
    last_used_at: int | None = None
    last_source: str = ""

    def has_ended(self, now: float) -> bool:
        """Return whether the key is no longer taken at that time (Unix seconds)."""
        return self.expires_at is not None and now >= self.expires_at

    def allows(self, scope: Scope) -> bool:
        """Return whether the key has the scope; `admin` includes every scope."""
        return scope in self.scopes or "admin" in self.scopes


def new_key_text() -> str:
    """Make a fresh key: prefix and 32 random bytes, URL-safe."""
    return KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)


def without_keys(text: str) -> str:
    """Return a path or a query with each key in it cut to the characters that lists show.

    Cut and not left out, because some devices are known by such a text.
    """
    return _KEY.sub(lambda found: unquote(found[0])[:SHOWN_CHARACTERS], text)


def digest(key_text: str) -> bytes:
    """Return the SHA-256 of a key. Drop white space around the key: a known client sends a leading blank."""
    return hashlib.sha256(key_text.strip().encode("utf-8", "surrogateescape")).digest()


def find_key(keys: list[ApiKey], presented: str) -> ApiKey | None:
    """Find the presented key among the stored ones, or None. The search takes the same time for every key."""
    wanted = digest(presented)
    found = None
    for key in keys:
        if hmac.compare_digest(key.sha256, wanted):
            found = key
    return found
