"""Links to pictures and to the page for a screen on the wall: addresses that need no login."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

ViewLinkKind = Literal["tv", "picture"]

VIEW_LINK_KINDS: tuple[ViewLinkKind, ...] = get_args(ViewLinkKind)

VIEW_LINK_OPTIONS = frozenset({"language", "gravity_unit", "temp_unit", "zone"})
"""The things that the maker of a link may choose: a screen on the wall has no settings of its own."""


@dataclass(frozen=True, slots=True)
class ViewLink:
    """A link that needs no login. Its token is not stored: `sha256` is the hash.

    `session_id` is the brew that the link shows, None for the one that runs; a screen shows all that run.
    `created_at` is Unix seconds.
    """

    id: int
    sha256: bytes
    account_id: int
    kind: ViewLinkKind
    session_id: int | None
    name: str
    created_at: int
    options: Mapping[str, str] = field(default_factory=dict)
