-- without a transaction
-- One index of timelines instead of two: it finds the events of an email, and keeps a report from being recorded twice.

DROP INDEX CONCURRENTLY IF EXISTS email_events_of_email;
CREATE UNIQUE INDEX CONCURRENTLY email_events_of_email ON email_events (email_id, dedupe_key);
COMMENT ON INDEX email_events_of_email IS 'The timeline of one email; a provider''s report that is repeated is recorded once.';
