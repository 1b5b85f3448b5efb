-- An attempt names its worker, which holds an advisory lock in a session of its own. When the worker dies, Postgres ends the session:
-- immediately after a kill, after 25 s if its host vanished. Its calls are then over, so that nothing waits for them any longer.

ALTER TABLE attempts ADD COLUMN worker integer;
COMMENT ON COLUMN attempts.worker IS
  'The worker that made the call, by the number of its advisory lock (class 1400332919). NULL: of an earlier version, or recorded by upkeep.';

ALTER TABLE attempts ADD COLUMN handed_over boolean;
COMMENT ON COLUMN attempts.handed_over IS
  'false: the last bytes of the message have not left, so the provider cannot have accepted it. true: they may have. NULL: not recorded for this provider.';

COMMENT ON COLUMN attempts.denied_at IS
  'The first look-up that found nothing, or if the provider cannot be asked, the first time its worker was found to be gone. A later one confirms it.';

CREATE FUNCTION require_worker_session(worker integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
  IF pg_try_advisory_xact_lock_shared(1400332919, worker) THEN
    RAISE 'worker % has no session', worker USING ERRCODE = 'connection_does_not_exist';
  END IF;
  RETURN worker;
END
$$;
COMMENT ON FUNCTION require_worker_session IS
  'Returns the number of a worker. Fails if its session is not connected to this server: others take its calls for ended then.';
