-- Room for updates on the pages of the tables whose rows change most. An email's row has four versions until it is delivered, and an
-- attempt's two: without room each update but a few writes to all indexes, and dead versions stay until the next vacuum.

DO $$
DECLARE
  partition regclass;
BEGIN
  FOR partition IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'emails'::regclass LOOP
    EXECUTE format('ALTER TABLE %s SET (fillfactor = 50)', partition);
  END LOOP;
END
$$;
ALTER TABLE attempts SET (fillfactor = 50);
