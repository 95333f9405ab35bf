"""Record identifiers in the layout of a MongoDB ObjectId: 24 hex digits.

4 bytes Unix seconds, 5 bytes drawn once per process, 3 bytes counter, all big endian
(MongoDB BSON specification, ObjectId). Ids made in one second by one process sort in order of making.
"""

import itertools
import os
import re
from functools import lru_cache

_PROCESS = os.urandom(5).hex()
_COUNTER = itertools.count(int.from_bytes(os.urandom(3), "big"))
_HEX24 = re.compile(r"[0-9a-fA-F]{24}\Z")


def new_object_id(unix_seconds: int) -> str:
    """Make a new id. Its first eight digits are `unix_seconds`."""
    return f"{_beginning(unix_seconds)}{next(_COUNTER) & 0xFFFFFF:06x}"


# For eight seconds, because many readings arrive in one second, and an import goes through many.
@lru_cache(maxsize=8)
def _beginning(unix_seconds: int) -> str:
    return f"{unix_seconds & 0xFFFFFFFF:08x}{_PROCESS}"


def is_object_id(text: str) -> bool:
    """Return whether the text is 24 hex digits."""
    return _HEX24.match(text) is not None
