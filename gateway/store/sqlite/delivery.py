"""Delivery states of readings at targets, as SQL."""

import sqlite3
from typing import Any

from gateway.store.sqlite.lanes import HAS_NUMBERS, ROUTED

SAYS_SOMETHING = "(r.gravity <> '' OR r.temp <> '' OR r.comment <> '')"
"""The specification's import refuses an item without any of the three."""

TO_SEND = f"r.mirrored IS NULL AND r.crc IS NOT NULL AND {SAYS_SOMETHING}"
"""Never sent: readings copied from a service, readings known to be damaged, and empty readings."""

UPSTREAM_ID = """
CASE WHEN s.deleted = 0 THEN
    coalesce(f.upstream_id, iif(s.upstream = {url} OR s.upstream IS NULL AND {unnamed}, s.upstream_id, NULL))
END
"""
"""A session's number at a target, of `brewsessions s LEFT JOIN forwardings f`; NULL: not forwarded there."""

OF_TARGET = UPSTREAM_ID.format(url="t.url", unnamed="t.unnamed")

AT_ROUTE = ROUTED.format(url="t.url")
ROUTED_STATE = f"""
CASE WHEN NOT ({HAS_NUMBERS} AND {AT_ROUTE}) THEN 'not forwarded'
     WHEN x.seq IS NOT NULL THEN 'refused'
     WHEN EXISTS (SELECT 1 FROM taken k WHERE k.target = t.url AND k.seq = r.seq) THEN 'forwarded'
     WHEN r.seq > coalesce(l.watermark, 0) THEN 'pending'
     WHEN json_extract(t.settings, '$.latest') THEN 'superseded'
     ELSE 'forwarded' END
"""
"""The state at a target that is no Brewing Data Service, of `readings r LEFT JOIN lanes l, refusals x`."""

EDITED = "edited here, not there"
"""The state of a reading that a target has as it was before an edit."""

SERVICE_STATE = f"""
CASE WHEN c.seq IS NOT NULL AND (r.mirrored IS NOT NULL OR r.seq <= d.watermark) THEN '{EDITED}'
     WHEN r.session_id IS NULL OR NOT ({TO_SEND}) THEN 'not forwarded'
     WHEN x.seq IS NOT NULL THEN 'refused'
     WHEN r.seq <= d.watermark THEN 'forwarded'
     WHEN {OF_TARGET} IS NOT NULL THEN 'pending'
     ELSE 'not forwarded' END
"""
STATE = f"CASE WHEN t.kind = 'service' THEN {SERVICE_STATE} ELSE {ROUTED_STATE} END"
AT_TARGETS = """
targets t LEFT JOIN deliveries d ON d.target = t.url AND d.session_id = r.session_id
LEFT JOIN forwardings f ON f.target = t.url AND f.session_id = r.session_id
LEFT JOIN refusals x ON x.target = t.url AND x.seq = r.seq
LEFT JOIN corrections c ON c.target = t.url AND c.seq = r.seq
LEFT JOIN lanes l ON l.target = t.url AND l.device_id = coalesce(r.device_id, 0)
"""
STATES_JSON = f"(SELECT json_group_object(t.name, {STATE}) FROM {AT_TARGETS})"
"""A JSON object, state by target, of a row of `readings r LEFT JOIN brewsessions s`."""

REASON = """
CASE WHEN x.seq IS NOT NULL THEN x.reason
     WHEN c.withheld THEN 'it has another id there; `targets resend ' || t.name || ' --since '
          || strftime('%Y-%m-%d', r.created_at, 'unixepoch') || '` sends it as one more reading'
     WHEN c.seq IS NOT NULL THEN 'the edit is sent under the same id, where the service has that' END
"""
REASONS_JSON = f"""
(SELECT json_group_object(t.name, {REASON}) FROM {AT_TARGETS} WHERE x.seq IS NOT NULL OR c.seq IS NOT NULL)
"""

ROUTED_TARGETS = f"""
SELECT t.name, t.url, coalesce(json_extract(t.settings, '$.latest'), 0),
       coalesce((SELECT after FROM routes WHERE target = t.url AND what = 'all'), {2**62}),
       EXISTS (SELECT 1 FROM refusals x WHERE x.target = t.url)
FROM targets t WHERE t.kind <> 'service' AND EXISTS (SELECT 1 FROM routes m WHERE m.target = t.url)
ORDER BY t.name
"""
ROUTED_SESSIONS = """
SELECT id FROM brewsessions WHERE :session_id IS NULL OR id = :session_id
UNION ALL SELECT 0 WHERE :session_id IS NULL
"""
ROUTED_COUNT = f"""
SELECT count(*) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 3),
       count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 0),
       min(received_at) FILTER (WHERE state = 2), count(*) FILTER (WHERE state = 4),
       max(created_at) FILTER (WHERE state = 3)
FROM (
    SELECT r.received_at, r.created_at,
        CASE WHEN NOT ({HAS_NUMBERS}) THEN 0
             WHEN :refused
                  AND EXISTS (SELECT 1 FROM refusals x WHERE x.target = :url AND x.seq = r.seq) THEN 1
             WHEN :latest AND EXISTS (SELECT 1 FROM taken k WHERE k.target = :url AND k.seq = r.seq) THEN 3
             WHEN r.seq > coalesce(l.watermark, 0) THEN 2
             WHEN :latest THEN 4 ELSE 3 END state
    FROM readings r LEFT JOIN lanes l ON l.target = :url AND l.device_id = coalesce(r.device_id, 0)
    WHERE {{which}} AND (r.seq > :all_after OR {ROUTED.format(url=":url")}))
"""
"""As `ROUTED_STATE`, of the readings of one brew session, or of none, at one target. Nothing is sorted."""


def routed_counts(connection: sqlite3.Connection, session_id: int | None = None) -> list[tuple[Any, ...]]:
    """Count the readings that go to targets which are no Brewing Data Service, by target and brew session.

    Each has the target's name, the brew session (0 for none), pending, forwarded, refused, not forwarded, the
    arrival of the first pending one (Unix milliseconds), superseded, the time of the newest there (Unix s).
    """
    targets = connection.execute(ROUTED_TARGETS).fetchall()
    if not targets:
        return []
    sessions = [id for (id,) in connection.execute(ROUTED_SESSIONS, {"session_id": session_id})]
    found = []
    for name, url, latest, all_after, refused in targets:
        for session in sessions:
            sql = ROUTED_COUNT.format(which="r.session_id = :session" if session else "r.session_id IS NULL")
            values = {
                **{"url": url, "latest": latest, "refused": refused},
                **{"all_after": all_after, "session": session},
            }
            row = connection.execute(sql, values).fetchone()
            if any(row):
                found.append((name, session, *row))
    return found
