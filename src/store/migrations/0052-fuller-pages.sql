-- Pages of emails and attempts are filled by 85 instead of 50 %. Vacuum frees the room of former versions soon enough: half of each
-- page was space that an email never used. Existing pages stay as they are.

DO $$
DECLARE
  partition regclass;
BEGIN
  FOR partition IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'emails'::regclass LOOP
    EXECUTE format('ALTER TABLE %s SET (fillfactor = 85)', partition);
  END LOOP;
END
$$;
ALTER TABLE attempts SET (fillfactor = 85);
