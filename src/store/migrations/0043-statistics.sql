-- Statistics: messages by every state that they ever reached. email_moves and email_hours, which hold current statuses only,
-- are no longer written; a later version removes them.

ALTER TABLE emails
  ADD COLUMN key_id  text COLLATE "C",
  ADD COLUMN reached smallint,
  ADD COLUMN bounced_for text COLLATE "C";
COMMENT ON COLUMN emails.key_id IS 'The API key that it was accepted with; NULL for those of the dashboard and of versions without this column.';
COMMENT ON COLUMN emails.reached IS
  'The states that statistics have counted it in, as the bits of STATES in domain/statistics.ts. NULL: not counted yet, since an earlier version accepted it.';
COMMENT ON COLUMN emails.bounced_for IS 'The reason of its first bounce, which stays when its status moves on.';

ALTER TABLE chat_messages
  ADD COLUMN key_id  text COLLATE "C",
  ADD COLUMN reached smallint;
COMMENT ON COLUMN chat_messages.key_id IS 'The API key that it was accepted with; NULL for those of versions without this column.';
COMMENT ON COLUMN chat_messages.reached IS 'As emails.reached.';

CREATE TABLE stat_additions (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id         text COLLATE "C" NOT NULL,
  channel        text COLLATE "C" NOT NULL CHECK (channel IN ('email', 'chatapp', 'sms')),
  hour           timestamptz(0) NOT NULL,
  domain         text COLLATE "C",
  key_id         text COLLATE "C",
  batch_id       text COLLATE "C",
  tags           jsonb,
  bounced_for    text COLLATE "C",
  states         smallint NOT NULL CHECK (states > 0),
  bounced_states smallint,
  sent_step      smallint,
  delivered_step smallint,
  messages       integer NOT NULL CHECK (messages > 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
COMMENT ON TABLE stat_additions IS
  'Messages that have reached states, one row for all alike in a transaction. Rows are only added, so that no transaction waits for a counter, and every second are aggregated into stat_totals.';
COMMENT ON COLUMN stat_additions.hour IS 'In which the messages were accepted, UTC.';
COMMENT ON COLUMN stat_additions.domain IS 'The domain in `from`; NULL for chat-app messages and SMS.';
COMMENT ON COLUMN stat_additions.tags IS 'As emails.tags; NULL without tags.';
COMMENT ON COLUMN stat_additions.states IS 'The states that they have reached now for the first time, as emails.reached.';
COMMENT ON COLUMN stat_additions.bounced_states IS
  'The states that are new for the bounce reason: with the bounce, all that they have reached until then; NULL without a bounce.';
COMMENT ON COLUMN stat_additions.sent_step IS 'How long after they were due they were sent, by time_step(); only with that state.';
COMMENT ON COLUMN stat_additions.delivered_step IS 'How long after they were due they were delivered, by time_step(); only with that state.';
COMMENT ON INDEX stat_additions_pkey IS 'The oldest are aggregated first.';

CREATE TABLE stat_totals (
  org_id          text COLLATE "C" NOT NULL,
  channel         text COLLATE "C" NOT NULL,
  dimension       text COLLATE "C" NOT NULL,
  step            text COLLATE "C" NOT NULL CHECK (step IN ('hour', 'day')),
  at              timestamptz(0) NOT NULL,
  key             text COLLATE "C" NOT NULL,
  accepted        bigint NOT NULL,
  sent            bigint NOT NULL,
  delivered       bigint NOT NULL,
  delayed         bigint NOT NULL,
  bounced         bigint NOT NULL,
  complained      bigint NOT NULL,
  opened          bigint NOT NULL,
  clicked         bigint NOT NULL,
  suppressed      bigint NOT NULL,
  rejected        bigint NOT NULL,
  failed          bigint NOT NULL,
  canceled        bigint NOT NULL,
  sent_times      jsonb,
  delivered_times jsonb,
  PRIMARY KEY (org_id, channel, dimension, step, at, key)
) WITH (fillfactor = 80);
COMMENT ON TABLE stat_totals IS
  'Messages accepted in an hour or day, together with stat_additions: how many have ever reached each state.';
COMMENT ON COLUMN stat_totals.dimension IS 'all, domain, key, batch, bounce_reason, or tag: and the name of a tag.';
COMMENT ON COLUMN stat_totals.at IS 'The begin of the hour or day, UTC.';
COMMENT ON COLUMN stat_totals.key IS 'The value of the dimension: a domain, the id of a key or batch, a reason, the value of a tag; all for all.';
COMMENT ON COLUMN stat_totals.sent_times IS 'Messages by the time from when they were due until they were sent: {"<time_step()>": n}; NULL without.';
COMMENT ON COLUMN stat_totals.delivered_times IS 'The same until they were delivered.';
COMMENT ON INDEX stat_totals_pkey IS 'Statistics of an organization by one dimension in a period.';
CREATE INDEX stat_totals_expiring ON stat_totals (step, at);
COMMENT ON INDEX stat_totals_expiring IS 'Figures that have been kept long enough.';

CREATE FUNCTION add_times(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a ELSE (
    SELECT jsonb_object_agg(step, messages) FROM (
      SELECT step, sum(messages::bigint) AS messages
      FROM (SELECT * FROM jsonb_each_text(a) UNION ALL SELECT * FROM jsonb_each_text(b)) AS part(step, messages) GROUP BY step
    ) AS sums
  ) END
$$;
COMMENT ON FUNCTION add_times IS 'The sum of two columns of times of stat_totals.';

CREATE TABLE stat_backfills (
  channel text COLLATE "C" PRIMARY KEY CHECK (channel IN ('email', 'chatapp', 'sms')),
  last_id text COLLATE "C" NOT NULL,
  end_id  text COLLATE "C" NOT NULL
);
COMMENT ON TABLE stat_backfills IS
  'What upkeep still counts for the statistics: messages that the version before has accepted or changed. A row leaves at its end.';
COMMENT ON COLUMN stat_backfills.last_id IS 'Messages up to this id are done.';
COMMENT ON COLUMN stat_backfills.end_id IS 'The upper bound of the ids: a day after the upgrade, since the version before may still serve until then.';
COMMENT ON INDEX stat_backfills_pkey IS 'One row for each channel.';

INSERT INTO stat_backfills (channel, last_id, end_id)
SELECT channel, prefix || substr(email_id_at(now() - interval '400 days'), 4), prefix || substr(email_id_at(now() + interval '1 day'), 4)
FROM (VALUES ('email', 'em_'), ('chatapp', 'wa_'), ('sms', 'sms_')) AS kind(channel, prefix)
WHERE EXISTS (SELECT FROM organizations);
