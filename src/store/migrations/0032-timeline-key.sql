-- Ids of events are random enough, and no statement looks for one. The former index goes here, not before: if 0031 is run
-- again, timelines are still unique meanwhile.

DROP INDEX IF EXISTS email_events_once;
ALTER TABLE email_events DROP CONSTRAINT IF EXISTS email_events_pkey;
