"""Logins as they are stored: browsers that have shown a key and carry a cookie since."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PREFERENCES = frozenset({"language", "gravity_unit", "temp_unit", "scheme", "zone"})
"""The things that a viewer may choose."""

PREFERENCE_CHARACTERS = 64
"""Characters of a choice at most; the longest is the name of a time zone."""


@dataclass(frozen=True, slots=True)
class StoredLogin:
    """A login, without its key. Times are Unix seconds; `seen_at` is up to a day behind.

    `sha256` is the hash of the cookie's secret, `key_sha256` the hash of the key that the browser showed.
    """

    id: int
    sha256: bytes
    key_sha256: bytes
    created_at: int
    seen_at: int
    agent: str
    preferences: Mapping[str, str] = field(default_factory=dict)
