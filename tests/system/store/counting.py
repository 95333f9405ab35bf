"""The deliveries of brew sessions, counted the slow way: reading by reading."""

from gateway.domain.target import Delivery
from gateway.store.sqlite.delivery import EDITED, OF_TARGET, SERVICE_STATE
from gateway.store.sqlite.store import SqliteStore

COUNTS = f"""
SELECT name, session_id, wanted, count(*) FILTER (WHERE state = 'pending'),
       count(*) FILTER (WHERE state = 'forwarded'), count(*) FILTER (WHERE state = 'refused'),
       count(*) FILTER (WHERE state = 'not forwarded'), min(received_at) FILTER (WHERE state = 'pending'),
       count(*) FILTER (WHERE state = '{EDITED}'), min(created_at) FILTER (WHERE state = '{EDITED}')
FROM (
    SELECT t.name, s.id session_id, {OF_TARGET} wanted, r.received_at, r.created_at,
           iif(r.seq, {SERVICE_STATE}, NULL) state
    FROM targets t JOIN brewsessions s ON t.kind = 'service' LEFT JOIN readings r ON r.session_id = s.id
    LEFT JOIN deliveries d ON d.target = t.url AND d.session_id = s.id
    LEFT JOIN forwardings f ON f.target = t.url AND f.session_id = s.id
    LEFT JOIN refusals x ON x.target = t.url AND x.seq = r.seq
    LEFT JOIN corrections c ON c.target = t.url AND c.seq = r.seq
    WHERE s.deleted = 0 AND (:session_id IS NULL OR s.id = :session_id)
      AND ({OF_TARGET} IS NOT NULL OR d.watermark > 0)
)
GROUP BY name, session_id ORDER BY name, session_id
"""  # noqa: S608


async def by_reading(store: SqliteStore, session_id: int | None = None) -> list[Delivery]:
    """What `store.deliveries.counts` has to say of Brewing Data Services."""
    async with store._database.reader() as reader:
        rows = await reader.run(lambda c: c.execute(COUNTS, {"session_id": session_id}).fetchall())
    return [Delivery(*row) for row in rows]
