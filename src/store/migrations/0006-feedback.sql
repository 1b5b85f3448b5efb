-- What happens after the send: recipients, suppression, providers' reports, customers' webhooks.

ALTER TABLE email_events
  ADD COLUMN recipient text,
  DROP CONSTRAINT email_events_type_check,
  ADD CONSTRAINT email_events_type_check CHECK (type IN (
    'email.queued', 'email.scheduled', 'email.rescheduled', 'email.sent', 'email.delivery_delayed', 'email.delivered',
    'email.opened', 'email.clicked', 'email.bounced', 'email.complained', 'email.unsubscribed', 'email.suppressed',
    'email.canceled', 'email.rejected', 'email.failed'
  ));
COMMENT ON COLUMN email_events.recipient IS 'Whom it is about, in lower case; NULL when it is about the whole email.';

CREATE TABLE email_recipients (
  email_id            text COLLATE "C" NOT NULL,
  recipient           text COLLATE "C" NOT NULL CHECK (recipient = lower(recipient)),
  status              text NOT NULL CHECK (status IN (
    'queued', 'sent', 'delivery_delayed', 'delivered', 'opened', 'clicked', 'bounced', 'complained', 'suppressed',
    'rejected', 'failed'
  )),
  error               text,
  bounce_reason       text,
  provider_message_id text COLLATE "C",
  changed_at          timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (email_id, recipient)
);
COMMENT ON TABLE email_recipients IS
  'Recipients of whom something is known that is not known of the whole email: what was reported about one, that one was left out, and how far the copies of a marketing email have come.';
COMMENT ON COLUMN email_recipients.status IS 'queued: a copy that is still to be sent.';
COMMENT ON COLUMN email_recipients.provider_message_id IS 'Of a copy of a marketing email.';
COMMENT ON INDEX email_recipients_pkey IS 'The recipients of one email.';

CREATE TABLE suppressions (
  id         text COLLATE "C" PRIMARY KEY,
  org_id     text COLLATE "C" NOT NULL,
  email      text COLLATE "C" NOT NULL CHECK (email = lower(email)),
  origin     text NOT NULL CHECK (origin IN ('bounce', 'complaint', 'unsubscribe', 'manual', 'provider')),
  reason     text,
  message_id text COLLATE "C",
  created_at timestamptz(3) NOT NULL DEFAULT now()
);
COMMENT ON TABLE suppressions IS 'Addresses that an organization sends nothing to, or, with the origin unsubscribe, no marketing email.';
COMMENT ON COLUMN suppressions.reason IS 'Of a bounce: its bounce_reason.';
COMMENT ON COLUMN suppressions.message_id IS 'The email that led to it.';
COMMENT ON INDEX suppressions_pkey IS 'One suppression by its id.';
CREATE UNIQUE INDEX suppressions_one_each ON suppressions (org_id, email, (origin = 'unsubscribe'));
COMMENT ON INDEX suppressions_one_each IS
  'Claiming an email: may its recipients get it? One row for all mail and one for marketing mail at most.';
CREATE INDEX suppressions_newest ON suppressions (org_id, created_at, id);
COMMENT ON INDEX suppressions_newest IS 'The list of an organization''s suppressions, newest first.';
CREATE INDEX suppressions_by_origin ON suppressions (org_id, origin, created_at, id);
COMMENT ON INDEX suppressions_by_origin IS 'The same of one origin.';
CREATE INDEX suppressions_at_provider ON suppressions (email, org_id) WHERE origin IN ('bounce', 'complaint', 'provider');
COMMENT ON INDEX suppressions_at_provider IS
  'Before an address is taken off the provider''s list: does another organization still want it there?';

CREATE TABLE provider_list_removals (
  id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id   text COLLATE "C" NOT NULL,
  email    text COLLATE "C" NOT NULL,
  tries    integer NOT NULL DEFAULT 0,
  retry_at timestamptz(3) NOT NULL DEFAULT now()
);
COMMENT ON TABLE provider_list_removals IS
  'Addresses that an organization has taken off its list and that must still be taken off the provider''s. A row leaves once the provider has done so.';
COMMENT ON COLUMN provider_list_removals.retry_at IS 'Not before: put off each time the provider could not be asked.';
COMMENT ON INDEX provider_list_removals_pkey IS 'Upkeep: the oldest are done first. The table is nearly always empty.';

CREATE TABLE provider_callbacks (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  provider    text NOT NULL,
  received_at timestamptz(3) NOT NULL DEFAULT now(),
  body        text NOT NULL
);
COMMENT ON TABLE provider_callbacks IS 'What providers posted that is about no email of ours or means nothing to us, as it came; kept 30 days.';
COMMENT ON INDEX provider_callbacks_pkey IS 'Upkeep: the oldest are deleted first.';

CREATE TABLE webhook_endpoints (
  id              text COLLATE "C" PRIMARY KEY,
  org_id          text COLLATE "C" NOT NULL REFERENCES organizations (id),
  url             text NOT NULL,
  description     text,
  events          text[] NOT NULL,
  status          text NOT NULL DEFAULT 'enabled' CHECK (status IN ('enabled', 'disabled')),
  disabled_reason text,
  secret          bytea NOT NULL,
  old_secret      bytea,
  old_until       timestamptz(3),
  failing_since   timestamptz(3),
  idle            boolean NOT NULL DEFAULT true,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  CHECK ((old_secret IS NULL) = (old_until IS NULL))
);
COMMENT ON COLUMN webhook_endpoints.events IS 'Types that it wants; none is all of them.';
COMMENT ON COLUMN webhook_endpoints.secret IS 'Signs what it gets; sealed with a key of SECRET_KEY.';
COMMENT ON COLUMN webhook_endpoints.old_secret IS 'Signs too until old_until: the one before the last rotation.';
COMMENT ON COLUMN webhook_endpoints.failing_since IS 'When the first of the failures came that no success has followed.';
COMMENT ON COLUMN webhook_endpoints.idle IS
  'Whether its workflow sleeps and must be woken for a new delivery. Writers of deliveries hold the row FOR SHARE, so that who lays it to sleep sees all of theirs.';
COMMENT ON INDEX webhook_endpoints_pkey IS 'One endpoint by its id.';
CREATE INDEX webhook_endpoints_of_org ON webhook_endpoints (org_id, created_at, id);
COMMENT ON INDEX webhook_endpoints_of_org IS 'Every event: who listens? And the list of an organization''s endpoints.';

CREATE TABLE webhook_events (
  id         text COLLATE "C" PRIMARY KEY,
  org_id     text COLLATE "C" NOT NULL,
  type       text NOT NULL,
  created_at timestamptz(3) NOT NULL,
  message_id text COLLATE "C",
  data       jsonb NOT NULL,
  payload    text
);
COMMENT ON TABLE webhook_events IS 'What happened, for customers'' endpoints: one row for each event that at least one of them wants; kept 30 days.';
COMMENT ON COLUMN webhook_events.message_id IS 'The message it is about, whose fields belong into the payload.';
COMMENT ON COLUMN webhook_events.data IS 'What the payload''s data holds besides the message''s own fields.';
COMMENT ON COLUMN webhook_events.payload IS 'The body as it is posted, made before the first try and the same ever after.';
COMMENT ON INDEX webhook_events_pkey IS 'The event of a delivery.';

CREATE TABLE webhook_deliveries (
  id              text COLLATE "C" PRIMARY KEY,
  endpoint_id     text COLLATE "C" NOT NULL,
  event_id        text COLLATE "C" NOT NULL,
  type            text NOT NULL,
  status          text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'succeeded', 'failed')),
  created_at      timestamptz(3) NOT NULL,
  next_attempt_at timestamptz(3),
  tries           integer NOT NULL DEFAULT 0,
  CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
COMMENT ON TABLE webhook_deliveries IS 'One row for each event and endpoint that wants it, written in the transaction in which it happened.';
COMMENT ON COLUMN webhook_deliveries.tries IS 'Tries since it was created or replayed.';
COMMENT ON INDEX webhook_deliveries_pkey IS 'One delivery by its id.';
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_attempt_at) WHERE status = 'pending';
COMMENT ON INDEX webhook_deliveries_due IS 'What an endpoint gets next, and when.';
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (endpoint_id, created_at, id);
COMMENT ON INDEX webhook_deliveries_newest IS 'The list of an endpoint''s deliveries, newest first.';
CREATE INDEX webhook_deliveries_by_status ON webhook_deliveries (endpoint_id, status, created_at, id);
COMMENT ON INDEX webhook_deliveries_by_status IS 'The same of one status.';

CREATE TABLE webhook_attempts (
  delivery_id text COLLATE "C" NOT NULL,
  at          timestamptz(3) NOT NULL,
  status_code integer,
  duration_ms integer NOT NULL,
  response    text,
  error       text
);
COMMENT ON COLUMN webhook_attempts.response IS 'The first 4 kB of the answer.';
CREATE INDEX webhook_attempts_of_delivery ON webhook_attempts (delivery_id, at);
COMMENT ON INDEX webhook_attempts_of_delivery IS 'The tries of one delivery.';

CREATE FUNCTION delivery_id(event_id text, endpoint_id text) RETURNS text
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN 'whd_' || substr(event_id, 5, 10) || substr(md5(event_id || endpoint_id), 1, 16);
COMMENT ON FUNCTION delivery_id IS 'The id of an event''s delivery to an endpoint: the event''s time and a digest of both, so that it sorts by creation.';

ALTER TABLE outbox
  DROP CONSTRAINT outbox_action_check,
  ADD CONSTRAINT outbox_action_check CHECK (action IN ('start', 'leave', 'group', 'reschedule', 'cancel', 'webhook', 'chore'));
COMMENT ON COLUMN outbox.message_id IS 'The email; for a group the workflow that shall carry it, for a webhook the endpoint, for a chore its name.';
CREATE INDEX outbox_webhooks ON outbox (message_id) WHERE action = 'webhook';
COMMENT ON INDEX outbox_webhooks IS 'The relay wakes endpoints apart from what speaks of one email.';
CREATE INDEX outbox_chores ON outbox (id) WHERE action = 'chore';
COMMENT ON INDEX outbox_chores IS 'The relay has chores done that shall not wait for their time.';

ALTER TABLE batches ADD COLUMN announced_at timestamptz(3);
COMMENT ON COLUMN batches.announced_at IS 'When customers were told that no member waits any more; NULL before.';
CREATE INDEX batches_unannounced ON batches (id) WHERE announced_at IS NULL;
COMMENT ON INDEX batches_unannounced IS 'Upkeep: batches of which customers may still have to be told.';

ALTER TABLE emails ADD COLUMN look_at timestamptz(3);
COMMENT ON COLUMN emails.look_at IS 'When upkeep looks again at an email that seems stuck; NULL before it has looked once.';
CREATE INDEX emails_unreported ON emails (look_at, last_event_at)
  WHERE status IN ('sent', 'delivery_delayed') AND provider = 'postmark';
COMMENT ON INDEX emails_unreported IS 'Upkeep: emails about whose end the provider must be asked. Nobody can be asked about the others.';
CREATE INDEX emails_scheduled ON emails (scheduled_at) WHERE status = 'scheduled';
COMMENT ON INDEX emails_scheduled IS 'Upkeep: emails that should have left by now.';
