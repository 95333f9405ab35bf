"""Both sides changed a record: what is taken, member by member, against what the source said last. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

DIGEST_DIGITS = 12
"""Of a member's SHA-256, in hex: whether it changed needs no more."""

Members = Mapping[str, str | None]
"""What a record says, by the name of the member."""

Said = Mapping[str, str]
"""A digest of every member that a record had."""


@dataclass(frozen=True, slots=True)
class MirrorChanges:
    """Members that differ: those to take from there, and those that stay as they are here."""

    taken: frozenset[str]
    stay: frozenset[str]


def said_by(members: Members) -> Said:
    """What to remember of a record."""
    return {
        name: hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]
        for name, text in members.items()
        if text is not None
    }


def said_text(said: Said) -> str:
    """The same as JSON."""
    return json.dumps(said, separators=(",", ":"))


def said_of(text: str | None) -> Said | None:
    """Back from JSON; None where nothing is remembered."""
    return None if text is None else json.loads(text)


def changes(last: Said | None, here: Members, there: Members, *, ours_is_later: bool) -> MirrorChanges:
    """What changed on one side only is taken from that side; of what changed on both, the later change wins.

    Where it is not known what the source said last, every difference counts as changed on both sides.
    """
    ours, theirs = said_by(here), said_by(there)
    different = frozenset(n for n in ours.keys() | theirs.keys() if ours.get(n) != theirs.get(n))
    if last is None:
        taken = frozenset() if ours_is_later else different
    else:
        taken = frozenset(
            name
            for name in different
            if theirs.get(name) != last.get(name) and (ours.get(name) == last.get(name) or not ours_is_later)
        )
    return MirrorChanges(taken, different - taken)
