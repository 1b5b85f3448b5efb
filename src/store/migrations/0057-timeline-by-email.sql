-- Reports are compared with the timeline under the lock of their email, so its index need not be unique. Without the deduplication key
-- its entries are a fourth as large: Postgres stores equal ones once. Version 0.1.0 inserts events with ON CONFLICT, which needs the unique
-- index. Where that version may still run, it stays.
-- on purpose: a new installation has no events, so that making an index on them takes no time.

DO $$
BEGIN
  IF EXISTS (SELECT FROM organizations) THEN
    COMMENT ON INDEX email_events_of_email IS 'Version 0.1.0 needs it to be unique. The timeline of one email.';
  ELSE
    DROP INDEX email_events_of_email;
    CREATE INDEX email_events_by_email ON email_events (email_id);
    COMMENT ON INDEX email_events_by_email IS 'The timeline of one email.';
  END IF;
END
$$;
