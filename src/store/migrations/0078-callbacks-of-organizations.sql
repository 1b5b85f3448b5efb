-- Callbacks of an organization's number belong to it: their number is limited, and an erasure deletes no others.
-- on purpose: the index has no entries until the first row with an organization.

ALTER TABLE provider_callbacks
  ADD COLUMN org_id text COLLATE "C",
  ADD COLUMN number text COLLATE "C";
COMMENT ON TABLE provider_callbacks IS
  'Callbacks of providers about unknown messages or with unknown content; long ones are cut. Kept 30 days, at most 256 MB.';
COMMENT ON COLUMN provider_callbacks.org_id IS 'The organization whose number it concerns; NULL if it names none.';
COMMENT ON COLUMN provider_callbacks.number IS 'That number, E.164.';
CREATE INDEX provider_callbacks_of_number ON provider_callbacks (org_id, number) WHERE org_id IS NOT NULL;
COMMENT ON INDEX provider_callbacks_of_number IS 'Counts the callbacks of a number, which are limited.';
