-- Ids of events are random enough, and no statement looks for one.

ALTER TABLE email_events DROP CONSTRAINT IF EXISTS email_events_pkey;
