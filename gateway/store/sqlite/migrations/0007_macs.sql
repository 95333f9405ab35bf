-- A device whose id is a MAC is known by its digits, whichever way a program writes them. Where two devices
-- differ in nothing else they stay two: readings of both may be in brew sessions.
UPDATE OR IGNORE devices
SET key = family || ':' || lower(replace(replace(stable_id, ':', ''), '-', ''))
WHERE length(stable_id) IN (12, 17)
  AND length(replace(replace(stable_id, ':', ''), '-', '')) = 12
  AND replace(replace(stable_id, ':', ''), '-', '') NOT GLOB '*[^0-9A-Fa-f]*';
