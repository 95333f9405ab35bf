-- Where payloads in quarantine came from, and which of them may give way to newer ones.

-- share: the source of the payload as network.source_of writes it; NULL: kept for a reason of our own, such as
-- a reading that a target refused. readable: a driver found a device and a value in it, so it never gives way.
ALTER TABLE quarantine ADD COLUMN share TEXT;
ALTER TABLE quarantine ADD COLUMN readable INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quarantine ADD COLUMN size INTEGER GENERATED ALWAYS AS (length(body)) VIRTUAL;
UPDATE quarantine SET share = source WHERE channel NOT LIKE 'forward %' AND channel <> 'damaged';
UPDATE quarantine SET readable = 1
WHERE reason LIKE 'a new device beyond %' OR reason LIKE 'it cannot be stored %' OR reason LIKE 'the driver failed %';
CREATE INDEX quarantine_by_share ON quarantine (share, readable, id, size);
