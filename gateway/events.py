"""In-process notices that something was stored; lossy by design, listeners read the store again."""

import asyncio


class StoredNotices:
    """Rings a bell at every listener. A bell that already rings is not rung twice."""

    def __init__(self) -> None:
        self._bells: list[asyncio.Event] = []

    def listen(self) -> asyncio.Event:
        """A bell for one listener, who clears it before looking."""
        bell = asyncio.Event()
        self._bells.append(bell)
        return bell

    def ring(self) -> None:
        """Say that readings, devices or brew sessions changed."""
        for bell in self._bells:
            bell.set()
