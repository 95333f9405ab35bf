"""Logins: browsers that have shown a key and carry a cookie since."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.domain.key import ApiKey


@dataclass(frozen=True, slots=True)
class Login:
    """A browser that is logged in; times are Unix seconds. `key` is the key that it showed.

    `preferences` are what the viewer chose: language, gravity_unit, temp_unit, scheme, zone. `agent` is the
    browser's name for itself.
    """

    id: int
    sha256: bytes
    key: ApiKey
    created_at: int
    seen_at: int
    agent: str
    preferences: Mapping[str, str] = field(default_factory=dict)
