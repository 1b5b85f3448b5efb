-- The relay records how workers keep up, for the metric and for the dashboard's backlog.

ALTER TABLE relay_lease ADD COLUMN lag_ms integer NOT NULL DEFAULT 0;
ALTER TABLE relay_lease ADD COLUMN is_behind boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN relay_lease.lag_ms IS
  'The age of the oldest workflow that the relay has started and no worker has claimed an email of, as of the last renewal.';
COMMENT ON COLUMN relay_lease.is_behind IS
  'Whether single emails share workflows because workers do not keep up with workflows of their own.';
