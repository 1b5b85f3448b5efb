-- After a fail-over to a replica that lagged, Postgres has forgotten the last results of calls. Each server that takes over begins
-- a new timeline: the first worker that sees it marks what may have been sent meanwhile.

CREATE TABLE postgres_timeline (
  id smallint PRIMARY KEY DEFAULT 1 CHECK (id = 1),
  timeline text COLLATE "C" NOT NULL,
  seen_at timestamptz(3) NOT NULL DEFAULT now()
);
COMMENT ON TABLE postgres_timeline IS 'The timeline of the server that the workers last used. A change is a fail-over or a restore.';
COMMENT ON COLUMN postgres_timeline.timeline IS 'Identifier of the cluster and number of its timeline.';
COMMENT ON INDEX postgres_timeline_pkey IS 'The only row: locked, compared, replaced.';
