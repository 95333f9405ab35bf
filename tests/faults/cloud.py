"""`tests.cloud.ScriptedCloud` for hundreds of thousands of readings, counting what was delivered twice."""

from collections import Counter, deque
from dataclasses import dataclass, field

from aiohttp import web

from tests.cloud import Behaviour, Row, ScriptedCloud, Visit

UPSTREAM_ID = 4101
"""The brew session's number there."""


@dataclass
class Upstream(ScriptedCloud):
    """`deliveries` counts every arrival by its mark, also those that replace what has the same `_id`."""

    deliveries: Counter[str] = field(default_factory=Counter)
    down: bool = False
    """Whether every request is answered 503."""
    forget_requests: bool = True
    """Whether the rows of requests are dropped once they are kept: they would fill the memory."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._by_id: dict[int, dict[str, Row]] = {}
        self._last = 0

    async def _see(self, visit: Visit, script: deque[Behaviour], ordinary: Behaviour) -> web.StreamResponse:
        if self.down:
            return web.json_response({"message": "failure", "detail": "down"}, status=503)
        return await super()._see(visit, script, ordinary)

    def commit(self, session: int, rows: list[Row]) -> None:
        """Keep them, each under an id as this kind of cloud gives it."""
        kept = self._by_id.setdefault(session, {})
        for row in rows:
            self._last += 1
            oid = row["_id"]["$oid"] if self.keeps_ids else f"{self._last:024x}"
            sent_as = row.get("_id", {}).get("$oid")
            kept[oid] = {**row, "_id": {"$oid": oid}, "brewevent_id": session, "sent_as": sent_as}
            self.deliveries[str(row.get("comment"))] += 1
        if self.forget_requests:
            self.requests.clear()
        self._changed.set()

    def kept(self, session: int = UPSTREAM_ID) -> list[Row]:
        """What it holds of the brew session, in order of arrival."""
        return list(self._by_id.get(session, {}).values())

    def holds(self, mark: str) -> bool:
        """Whether this reading ever arrived."""
        return mark in self.deliveries
