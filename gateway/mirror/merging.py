"""Merge a record that both sides changed, member by member, against the last state of the source. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

DIGEST_DIGITS = 12
"""Hex digits kept of a member's SHA-256: enough to see whether the member changed."""

Members = Mapping[str, str | None]
"""The texts of a record, by the name of the member."""

Digests = Mapping[str, str]
"""A digest of every member that a record had, by its name."""


@dataclass(frozen=True, slots=True)
class MirrorChanges:
    """Names of members that differ: some to take from the source, others to leave as they are here."""

    taken: frozenset[str]
    stay: frozenset[str]


def digests_of(members: Members) -> Digests:
    """Return the digests to remember of a record."""
    return {
        name: hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]
        for name, text in members.items()
        if text is not None
    }


def digests_to_json(digests: Digests) -> str:
    """Return the digests as JSON."""
    return json.dumps(digests, separators=(",", ":"))


def digests_from_json(text: str | None) -> Digests | None:
    """Return the digests from JSON; None if nothing is remembered."""
    return None if text is None else json.loads(text)


def compare(last: Digests | None, here: Members, there: Members, *, ours_is_later: bool) -> MirrorChanges:
    """Compare a record here and at the source with the last state of the source.

    A member that changed on one side only comes from that side; of a member that changed on both sides the
    later change wins. Without a last state, every difference counts as changed on both sides.
    """
    ours, theirs = digests_of(here), digests_of(there)
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
