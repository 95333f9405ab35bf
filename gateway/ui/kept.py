"""Drawn parts that are kept in memory, so that several viewers cost one drawing for each reading."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any
from weakref import WeakKeyDictionary

from gateway.store.protocol import Store

PARTS = 32
"""Drawn parts that are kept at most."""

CHARACTERS = 1_000_000
"""Characters of all kept parts at most: about 1 MB."""


class KeptParts:
    """Drawn parts by their keys, the last used ones. A key holds all that a part is made of."""

    def __init__(self) -> None:
        self._parts: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable) -> Any:
        """Return the part with this key, None if it is not kept."""
        found = self._parts.get(key)
        if found is None:
            return None
        self._parts.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, part: Any, size: int) -> None:
        """Keep a part of so many characters; those that were not used for longest go."""
        if key in self._parts:
            self._size -= self._parts.pop(key)[1]
        self._parts[key] = part, size
        self._size += size
        while self._parts and (len(self._parts) > PARTS or self._size > CHARACTERS):
            _, (_, gone) = self._parts.popitem(last=False)
            self._size -= gone


_kept: WeakKeyDictionary[Store, KeptParts] = WeakKeyDictionary()


def kept_parts(store: Store) -> KeptParts:
    """Return the parts that are kept of this store."""
    return _kept.setdefault(store, KeptParts())
