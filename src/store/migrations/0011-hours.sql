-- What the dashboard's overview shows of an organization's email, by the hour in which it was accepted (UTC).

CREATE TABLE email_hours (
  org_id  text COLLATE "C" NOT NULL,
  hour    timestamptz(0) NOT NULL,
  measure text COLLATE "C" NOT NULL CHECK (measure IN ('status', 'bounce', 'sent', 'delivered')),
  name    text COLLATE "C" NOT NULL,
  emails  bigint NOT NULL,
  PRIMARY KEY (org_id, hour, measure, name)
);
COMMENT ON TABLE email_hours IS
  'Emails accepted in an hour, together with email_moves: how many have each status now, have bounced for each reason, and took how long.';
COMMENT ON COLUMN email_hours.measure IS
  'status: they have it now. bounce: they have bounced for this reason, whatever came later. sent, delivered: they became that within this time.';
COMMENT ON COLUMN email_hours.name IS 'A status, a bounce_reason, or the number that time_step() gives.';
COMMENT ON INDEX email_hours_pkey IS 'The overview of an organization since a certain hour.';

CREATE TABLE email_moves (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id        text COLLATE "C" NOT NULL,
  hour          timestamptz(0) NOT NULL,
  from_status   text,
  to_status     text NOT NULL,
  bounce_reason text,
  time_step     smallint,
  emails        integer NOT NULL CHECK (emails > 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
COMMENT ON TABLE email_moves IS
  'What email_hours does not hold yet. Rows are only added, so that nobody waits for a counter, and every second are folded into email_hours.';
COMMENT ON COLUMN email_moves.hour IS 'In which the emails were accepted.';
COMMENT ON COLUMN email_moves.from_status IS 'NULL: from nowhere, when they were accepted.';
COMMENT ON COLUMN email_moves.time_step IS 'How long after they were due, by time_step(); only of those that became sent or delivered.';
COMMENT ON INDEX email_moves_pkey IS 'The oldest are folded first.';

CREATE FUNCTION time_step(due timestamptz, at timestamptz) RETURNS smallint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN ceil(2 * ln(greatest(extract(epoch FROM at - due)::float8 * 1000, 1)) / ln(2::float8))::smallint;
COMMENT ON FUNCTION time_step IS
  'The smallest whole n with 2^(n/2) ms or more between the two times: steps of 41 %, whatever the scale.';

-- One pass over the emails; their times only of those that a page can still show. Times of what an earlier version stores
-- while it is still running are not counted; readers take less than nothing for nothing.
INSERT INTO email_hours (org_id, hour, measure, name, emails)
SELECT org_id, date_trunc('hour', created_at, 'UTC'), 'status', status, count(*) FROM emails GROUP BY 1, 2, 4
UNION ALL
SELECT org_id, date_trunc('hour', created_at, 'UTC'), 'bounce', bounce_reason, count(*) FROM emails
WHERE bounce_reason IS NOT NULL GROUP BY 1, 2, 4
UNION ALL
SELECT org_id, date_trunc('hour', created_at, 'UTC'), measure, time_step(due, at)::text, count(*)
FROM (
  SELECT email.org_id, email.created_at, coalesce(email.scheduled_at, email.created_at) AS due,
         substr(event.type, length('email.') + 1) AS measure, min(event.created_at) AS at
  FROM emails AS email JOIN email_events AS event ON event.email_id = email.id
  WHERE email.created_at > now() - interval '31 days' AND event.type IN ('email.sent', 'email.delivered')
  GROUP BY email.id, event.type
) AS timed
GROUP BY 1, 2, 3, 4;

CREATE INDEX emails_due ON emails (org_id, scheduled_at) WHERE status = 'scheduled';
COMMENT ON INDEX emails_due IS 'The overview: how many of an organization''s emails are due soon.';
