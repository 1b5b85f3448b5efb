-- A partition of emails is dropped although some of its emails are still to be sent: these move to the default partition.

CREATE FUNCTION drop_partition_keeping(parent text, key text, suffix text, kept text[]) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  dropped text := parent || '_' || suffix;
BEGIN
  IF NOT EXISTS (SELECT FROM partitions_of(parent) AS known WHERE known.suffix = drop_partition_keeping.suffix) THEN RETURN; END IF;
  EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, dropped);
  EXECUTE format('INSERT INTO %I SELECT * FROM %I WHERE %I = ANY ($1)', parent, dropped, key) USING kept;
  EXECUTE format('DROP TABLE %I', dropped);
END
$$;
COMMENT ON FUNCTION drop_partition_keeping IS
  'Drops a partition; its rows of the given emails move to the default partition. Fails with 55P03 if the table is locked for longer than 2 s.';
