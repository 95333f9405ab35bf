"""SQL for targets that are no Brewing Data Service: what goes there, and what becomes of it with a device."""

ROUTED = """EXISTS (
    SELECT 1 FROM routes m WHERE m.target = {url} AND r.seq > m.after AND (m.what = 'all'
        OR m.what = 'device' AND m.id = r.device_id OR m.what = 'brew' AND m.id = r.session_id))
"""
"""Whether a reading `r` goes to the target."""

HAS_NUMBERS = "r.mirrored IS NULL AND r.crc IS NOT NULL AND (r.sg IS NOT NULL OR r.celsius IS NOT NULL)"
"""Never sent: copies of a service's readings, readings known to be damaged, and readings without a number."""

MERGED_ROUTES = """
INSERT OR IGNORE INTO routes (target, what, id, after)
SELECT target, 'device', :into, after FROM routes WHERE what = 'device' AND id = :other
"""
MERGED_LANES = """
UPDATE lanes SET watermark = min(watermark, coalesce((
    SELECT min(r.seq) - 1 FROM readings r WHERE r.device_id = :other AND r.seq > coalesce(
        (SELECT o.watermark FROM lanes o WHERE o.target = lanes.target AND o.device_id = :other), 0)
), watermark)) WHERE device_id = :into
"""
MERGED = (
    MERGED_ROUTES,
    MERGED_LANES,
    "DELETE FROM routes WHERE what = 'device' AND id = :other",
    "DELETE FROM lanes WHERE device_id = :other",
)
"""Before a device becomes a part of another: its routes go over, and nothing that waits is passed over."""

FORGET_DEVICE = "DELETE FROM routes WHERE what = 'device' AND id = :id"
"""With a device. Its lanes stay as long as its readings do, or they would all go once more."""

TIDY = (
    "DELETE FROM lanes WHERE device_id <> 0 AND device_id NOT IN (SELECT id FROM devices)",
    "DELETE FROM latest WHERE device_id NOT IN (SELECT id FROM devices)",
    "DELETE FROM taken WHERE NOT EXISTS (SELECT 1 FROM readings r WHERE r.seq = taken.seq)",
)
"""After a device's row is gone: its number may be given to another one, and places in the queue, too."""

FORGET = tuple(
    f"DELETE FROM {table} WHERE target IN (SELECT url FROM targets WHERE name = ? AND kind <> 'service')"
    for table in ("routes", "lanes", "latest", "taken", "refusals")
)
"""With the target: one of the same name may be somewhere else, and nothing goes there unasked."""
