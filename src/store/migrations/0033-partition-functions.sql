-- The large tables of emails are partitioned by email id, that is by the time of acceptance, so that old records leave with
-- their partition. 0034 prepares the tables that exist, 0035 partitions them. The application may not change the schema:
-- functions that it calls run as their owner. Each works on one table, so that it waits for no two locks.

CREATE FUNCTION email_id_at(at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN 'em_' || (
    SELECT string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + (at_ms >> 5 * digit & 31)::integer, 1), '' ORDER BY digit DESC)
    FROM (SELECT floor(extract(epoch FROM at) * 1000)::bigint) AS time(at_ms), generate_series(0, 9) AS digit
  );
COMMENT ON FUNCTION email_id_at IS 'The lower bound of the ids of emails that are accepted from then on.';

CREATE FUNCTION partitions_of(parent text) RETURNS TABLE (suffix text, first_id text, end_id text) LANGUAGE sql STABLE AS $$
  SELECT substr(relname, length(parent) + 2), substring(bounds FROM 'FROM \(''(\w+)'''), substring(bounds FROM 'TO \(''(\w+)''')
  FROM pg_inherits JOIN pg_class AS partition ON partition.oid = inhrelid
       CROSS JOIN LATERAL pg_get_expr(relpartbound, partition.oid) AS bounds
  WHERE inhparent = parent::regclass AND bounds <> 'DEFAULT'
  ORDER BY substring(bounds FROM 'TO \(''(\w+)''') COLLATE "C"
$$;
COMMENT ON FUNCTION partitions_of IS
  'The partitions of a table and their bounds, oldest first; the default partition is left out. The first has no first_id.';

CREATE FUNCTION settings_of(relation text) RETURNS text LANGUAGE sql STABLE
  RETURN (SELECT coalesce('WITH (' || array_to_string(reloptions, ', ') || ')', '') FROM pg_class WHERE oid = relation::regclass);
COMMENT ON FUNCTION settings_of IS 'The storage parameters of a table, for another that is created like it.';

CREATE FUNCTION first_bound(relation text) RETURNS text LANGUAGE sql STABLE
  RETURN (SELECT substring(pg_get_constraintdef(oid) FROM 'em_\w+') FROM pg_constraint
          WHERE conrelid = relation::regclass AND conname = 'before_partitions');
COMMENT ON FUNCTION first_bound IS 'The bound of the constraint before_partitions of a table; NULL without it.';

CREATE FUNCTION lock_for_change(relation text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- Statements that come later wait for the table behind this one: they pass between the tries.
  FOR try IN 1..30 LOOP
    BEGIN
      SET LOCAL lock_timeout = '2s';
      EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', relation);
      RETURN;
    EXCEPTION WHEN lock_not_available THEN
      IF try = 30 THEN RAISE; END IF;
      PERFORM pg_sleep(1);
    END;
  END LOOP;
END
$$;
COMMENT ON FUNCTION lock_for_change IS 'Locks a table until the end of the transaction, and lets others pass while it waits.';

CREATE FUNCTION bound_first_partition(parent text, key text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  bound text;
BEGIN
  IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = parent::regclass AND conname = 'before_partitions') THEN RETURN; END IF;
  bound := first_bound('emails');
  -- In a new database the partitions begin today. Elsewhere the table that exists takes new emails for 30 days more, so that
  -- the version before can serve until all migrations are applied.
  IF bound IS NULL THEN
    bound := email_id_at(date_trunc('day', now(), 'UTC') + CASE WHEN EXISTS (SELECT FROM organizations) THEN interval '30 days' ELSE '0' END);
  END IF;
  PERFORM lock_for_change(parent);
  EXECUTE format('ALTER TABLE %I ADD CONSTRAINT before_partitions CHECK (%I < %L) NOT VALID', parent, key, bound);
END
$$;
COMMENT ON FUNCTION bound_first_partition IS
  'Adds the constraint before_partitions to a table that will be the first partition; it is the same for all tables.';

CREATE FUNCTION partition_by_email_id(parent text, key text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  first text := parent || '_first';
  bound text;
  bound_day timestamp;
  statement text;
BEGIN
  IF (SELECT relkind FROM pg_class WHERE oid = parent::regclass) = 'p' THEN RETURN; END IF;
  bound := first_bound(parent);
  PERFORM lock_for_change(parent);
  EXECUTE format('ALTER TABLE %I RENAME TO %I', parent, first);
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL EXCLUDING INDEXES) PARTITION BY RANGE (%I)', parent, first, key);
  EXECUTE format('ALTER TABLE %I DROP CONSTRAINT before_partitions', parent);
  FOR statement IN
    SELECT unnest(ARRAY[
      format('ALTER INDEX %I RENAME TO %I', name, first || substr(name, length(parent) + 1)),
      coalesce(
        format('ALTER TABLE %I ADD CONSTRAINT %I ', parent, name) || key_definition,
        regexp_replace(definition, ' ON \S+ ', format(' ON %I ', parent))
      ),
      format('COMMENT ON INDEX %I IS %L', name, comment)
    ])
    FROM (
      SELECT index.relname AS name, pg_get_indexdef(indexrelid) AS definition, pg_get_constraintdef(key_constraint.oid) AS key_definition,
             obj_description(indexrelid, 'pg_class') AS comment
      FROM pg_index JOIN pg_class AS index ON index.oid = indexrelid
           LEFT JOIN pg_constraint AS key_constraint ON key_constraint.conindid = indexrelid
      WHERE indrelid = first::regclass
    ) AS indexes
    UNION ALL
    SELECT format('GRANT %s ON %I TO %s', privilege_type, parent, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
    FROM pg_class CROSS JOIN aclexplode(relacl) WHERE pg_class.oid = first::regclass
    UNION ALL
    SELECT format('COMMENT ON TABLE %I IS %L', parent, obj_description(first::regclass, 'pg_class'))
  LOOP
    EXECUTE statement;
  END LOOP;
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%L)', parent, first, bound);
  EXECUTE format('ALTER TABLE %I DROP CONSTRAINT before_partitions', first);
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) %s', parent || '_default', parent, settings_of(first));
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I DEFAULT', parent, parent || '_default');
  -- The day on which the first partition ends, for the name of the next.
  SELECT day INTO bound_day FROM generate_series(-400, 31) AS days, date_trunc('day', now() AT TIME ZONE 'UTC' + days * interval '1 day') AS day
  WHERE email_id_at(day AT TIME ZONE 'UTC') = bound;
  PERFORM add_partition(parent, key, to_char(bound_day, 'YYYYMMDD'), bound, email_id_at((bound_day + interval '30 days') AT TIME ZONE 'UTC'));
END
$$;
COMMENT ON FUNCTION partition_by_email_id IS
  'Makes a table that has the constraint before_partitions the first partition of a table of its name; adds one of 30 days and a default partition.';

CREATE FUNCTION add_partition(parent text, key text, suffix text, first_id text, end_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
  added text := parent || '_' || suffix;
  rest text := parent || '_default';
BEGIN
  IF to_regclass(added) IS NOT NULL THEN RETURN; END IF;
  EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', rest);
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL) %s', added, parent, settings_of(rest));
  EXECUTE format('WITH moved AS (DELETE FROM %I WHERE %I >= %L AND %I < %L RETURNING *) INSERT INTO %I SELECT * FROM moved',
                 rest, key, first_id, key, end_id, added);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, added, first_id, end_id);
END
$$;
COMMENT ON FUNCTION add_partition IS
  'Adds a partition, with the rows of it that the default partition holds. Fails with 55P03 if the table is locked for longer than 2 s.';

CREATE FUNCTION drop_partition(parent text, suffix text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s' AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM partitions_of(parent) AS known WHERE known.suffix = drop_partition.suffix) THEN RETURN; END IF;
  EXECUTE format('DROP TABLE %I', parent || '_' || suffix);
END
$$;
COMMENT ON FUNCTION drop_partition IS 'Drops a partition with its rows. Fails with 55P03 if the table is locked for longer than 2 s.';

CREATE TABLE expiring_partitions (
  suffix  text PRIMARY KEY,
  last_id text COLLATE "C" NOT NULL
);
COMMENT ON TABLE expiring_partitions IS 'The partition of emails that is about to be dropped; at most one row.';
COMMENT ON COLUMN expiring_partitions.last_id IS 'The tags of its emails up to this id are no longer counted in tag_counts.';
COMMENT ON INDEX expiring_partitions_pkey IS 'One row for each partition.';
