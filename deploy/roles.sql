-- The roles of Sendwright and Temporal in Postgres, and what each owns in the current database. Safe to run again; run it as
-- superuser, once in each database. Settings of the session (`-c roles.owner=…`, `PGOPTIONS`):
--   roles.owner                                       who owns the database: migrate or temporal
--   roles.app_password, roles.migrate_password, roles.temporal_password
--   roles.app, roles.migrate, roles.temporal          names, where they are to differ
DO $roles$
DECLARE
  app name := coalesce(nullif(current_setting('roles.app', true), ''), 'sendwright_app');
  migrator name := coalesce(nullif(current_setting('roles.migrate', true), ''), 'sendwright_migrate');
  temporal name := coalesce(nullif(current_setting('roles.temporal', true), ''), 'temporal');
  is_ours boolean := current_setting('roles.owner') = 'migrate';
  owner name := CASE current_setting('roles.owner') WHEN 'migrate' THEN migrator WHEN 'temporal' THEN temporal END;
  role record;
  statement text;
BEGIN
  IF owner IS NULL THEN RAISE 'roles.owner must be migrate or temporal'; END IF;
  -- Several runs at once would create the same role.
  PERFORM pg_advisory_xact_lock(5120877302);

  FOR role IN SELECT * FROM (VALUES
    (app, current_setting('roles.app_password')),
    (migrator, current_setting('roles.migrate_password')),
    (temporal, current_setting('roles.temporal_password'))
  ) AS wanted(name, password) LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role.name) THEN EXECUTE format('CREATE ROLE %I', role.name); END IF;
    EXECUTE format('ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD %L',
                   role.name, role.password);
  END LOOP;

  EXECUTE format('ALTER DATABASE %I OWNER TO %I', current_database(), owner);
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());

  -- What an earlier version has made as superuser. Sequences of columns follow their tables; partitions do not.
  FOR statement IN
    SELECT format('ALTER TABLE %s OWNER TO %I', oid::regclass, owner) FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S') AND relowner <> owner::regrole
      AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid
                        AND (deptype = 'e' OR relkind = 'S' AND deptype IN ('a', 'i')))
    UNION ALL
    SELECT format('ALTER ROUTINE %s OWNER TO %I', oid::regprocedure, owner) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND proowner <> owner::regrole
      AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e')
  LOOP
    EXECUTE statement;
  END LOOP;

  IF NOT is_ours THEN RETURN; END IF;
  -- The application reads and writes rows, and changes no schema, except that functions of the owner add and drop partitions.
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), app);
  EXECUTE format('GRANT USAGE ON SCHEMA public TO %I', app);
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO %I', app);
  EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO %I', app);
  EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %I',
                 migrator, app);
  EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA public GRANT USAGE ON SEQUENCES TO %I', migrator, app);
  REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC;
  EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO %I', app);
  EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC', migrator);
  EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA public GRANT EXECUTE ON FUNCTIONS TO %I', migrator, app);
END
$roles$;
