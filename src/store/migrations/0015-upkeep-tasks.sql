-- When each maintenance task last succeeded, for metrics and alerts.

CREATE TABLE upkeep_tasks (
  name             text COLLATE "C" PRIMARY KEY,
  interval_seconds integer NOT NULL CHECK (interval_seconds > 0),
  succeeded_at     timestamptz(3) NOT NULL DEFAULT now()
);
COMMENT ON TABLE upkeep_tasks IS 'Maintenance tasks of this version, registered by workers with the fleet upkeep.';
COMMENT ON COLUMN upkeep_tasks.interval_seconds IS 'How often its schedule runs it.';
COMMENT ON COLUMN upkeep_tasks.succeeded_at IS 'When it last ran to its end; before its first run, when it was registered.';
COMMENT ON INDEX upkeep_tasks_pkey IS 'One row per task, updated by its name.';
