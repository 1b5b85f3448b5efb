-- Members of a batch have its time, so that emails_newest finds them: emails_of_batch takes 190 bytes of an email and 420 of the log.
-- Version 0.1.0 looks members up by it for each change of one. Where that version may still run, the index stays.

DO $$
BEGIN
  IF EXISTS (SELECT FROM organizations) THEN
    COMMENT ON INDEX emails_of_batch IS 'Version 0.1.0 finds the emails of a batch by it.';
  ELSE
    DROP INDEX emails_of_batch;
  END IF;
END
$$;
COMMENT ON INDEX emails_newest IS 'The list of all of an organization''s emails, newest first; the emails of a batch, by its time.';
