"""Keys in tests."""

import math

from gateway.clock import SystemClock
from gateway.services.access import Access
from gateway.services.wrong_keys import WrongKeys
from gateway.stats import Stats


def allow_wrong_keys(access: Access) -> None:
    """Take any number of wrong keys, for a test that tries every path and is not about their bound."""
    access.wrong_keys = WrongKeys(SystemClock(), Stats(), burst=math.inf)
