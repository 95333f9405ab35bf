"""API keys: what a caller may do, and how keys are made and compared."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Literal, get_args

Scope = Literal["read", "ingest", "admin"]
ALL_SCOPES: frozenset[Scope] = frozenset(get_args(Scope))

KEY_PREFIX = "hg_"
"""So that a person, or a secret scanner, knows a key of ours when they see one."""

KEY_BYTES = 32
"""Random bytes in a key: high entropy, so SHA-256 without salt or stretching is enough."""

SHOWN_CHARACTERS = 10
"""How much of a key lists show, prefix included."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as stored: never the key itself, only its SHA-256. Times are Unix seconds."""

    name: str
    account_id: int
    shown: str
    sha256: bytes
    scopes: frozenset[Scope]
    created_at: int

    def allows(self, scope: Scope) -> bool:
        """Whether the key may do that; `admin` may do everything."""
        return scope in self.scopes or "admin" in self.scopes


def new_key_text() -> str:
    """A fresh key: prefix and 32 random bytes, URL-safe."""
    return KEY_PREFIX + secrets.token_urlsafe(KEY_BYTES)


def digest(key_text: str) -> bytes:
    """SHA-256 of a key, surrounding white space dropped: a known client sends one with a leading blank."""
    return hashlib.sha256(key_text.strip().encode("utf-8", "surrogateescape")).digest()


def find_key(keys: list[ApiKey], presented: str) -> ApiKey | None:
    """The stored key that was presented, or None; takes the same time whichever it is."""
    wanted = digest(presented)
    found = None
    for key in keys:
        if hmac.compare_digest(key.sha256, wanted):
            found = key
    return found
