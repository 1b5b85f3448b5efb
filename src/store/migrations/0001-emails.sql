-- Accounts, emails and their way out. Ids are text in byte order: they sort by creation.
-- Children of an email carry no foreign key: they are written in the statement that writes the email, never without
-- it, and a key would lock and rewrite the parent row once per child on the busiest path there is.

CREATE TABLE organizations (
  id         text COLLATE "C" PRIMARY KEY,
  name       text NOT NULL CHECK (name <> ''),
  created_at timestamptz(3) NOT NULL DEFAULT now()
);

COMMENT ON INDEX organizations_pkey IS 'Its keys and domains refer to it.';

CREATE TABLE domains (
  id          text COLLATE "C" PRIMARY KEY,
  org_id      text COLLATE "C" NOT NULL REFERENCES organizations,
  name        text COLLATE "C" NOT NULL CHECK (name = lower(name)),
  status      text NOT NULL CHECK (status IN ('pending', 'verified', 'failed')),
  created_at  timestamptz(3) NOT NULL DEFAULT now(),
  verified_at timestamptz(3),
  UNIQUE (org_id, name),
  CHECK ((status = 'verified') <= (verified_at IS NOT NULL))
);
COMMENT ON COLUMN domains.name IS 'Lower-case A-label (RFC 5890).';
CREATE UNIQUE INDEX domains_one_holder ON domains (name) WHERE status = 'verified';
COMMENT ON INDEX domains_pkey IS 'A domain by its id.';
COMMENT ON INDEX domains_one_holder IS 'Refuses a domain that another organization has verified.';
COMMENT ON INDEX domains_org_id_name_key IS 'Accepting an email: is the domain of its from registered?';

CREATE TABLE api_keys (
  id         text COLLATE "C" PRIMARY KEY,
  org_id     text COLLATE "C" NOT NULL REFERENCES organizations,
  preset     text NOT NULL CHECK (preset IN ('full_access', 'sending_access', 'read_only')),
  domain_ids text[] COLLATE "C",
  sha256     bytea NOT NULL CHECK (octet_length(sha256) = 32),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  revoked_at timestamptz(3)
);
COMMENT ON COLUMN api_keys.domain_ids IS 'Domains it may send from; NULL is all of its organization.';
COMMENT ON COLUMN api_keys.sha256 IS 'Of the secret part of the key; the key itself is shown once and not kept.';
COMMENT ON INDEX api_keys_pkey IS 'Every request: who calls?';

CREATE TABLE emails (
  id                  text COLLATE "C" PRIMARY KEY,
  org_id              text COLLATE "C" NOT NULL,
  batch_id            text COLLATE "C",
  "from"              text NOT NULL,
  "to"                jsonb NOT NULL,
  cc                  jsonb,
  bcc                 jsonb,
  reply_to            jsonb,
  subject             text NOT NULL,
  marketing           boolean NOT NULL,
  tags                jsonb NOT NULL,
  headers             json NOT NULL,
  status              text NOT NULL CHECK (status IN (
                        'queued', 'scheduled', 'sent', 'delivery_delayed', 'delivered', 'opened', 'clicked', 'bounced',
                        'complained', 'suppressed', 'canceled', 'rejected', 'failed')),
  error               text,
  bounce_reason       text CHECK (bounce_reason IN (
                        'mailbox_not_found', 'mailbox_inactive', 'dns_failure', 'policy_block', 'provider_suppressed',
                        'mailbox_full', 'spam_block', 'reputation_block', 'authentication_failure', 'rate_limited',
                        'message_too_large', 'content_rejected', 'unknown')),
  created_at          timestamptz(3) NOT NULL,
  scheduled_at        timestamptz(3),
  last_event_at       timestamptz(3) NOT NULL,
  schedule_version    integer NOT NULL DEFAULT 0,
  workflow_id         text COLLATE "C" NOT NULL,
  provider            text,
  provider_message_id text COLLATE "C",
  CHECK ((status = 'bounced') = (bounce_reason IS NOT NULL)),
  CHECK (status <> 'scheduled' OR scheduled_at IS NOT NULL),
  CHECK (status <> 'failed' OR error IS NOT NULL)
) WITH (fillfactor = 85);
COMMENT ON INDEX emails_pkey IS 'One email: shown, changed, claimed.';
COMMENT ON COLUMN emails.headers IS 'json, not jsonb: the customer''s order is kept.';
COMMENT ON COLUMN emails.schedule_version IS 'Grows with each reschedule, so that a timer that is out of date finds out.';
COMMENT ON COLUMN emails.workflow_id IS 'The Temporal workflow that carries it: its own id, or that of a group.';
COMMENT ON COLUMN emails.provider IS 'Who took it; NULL until then.';

CREATE TABLE email_bodies (
  email_id text COLLATE "C" PRIMARY KEY,
  html     text,
  text     text,
  CHECK (coalesce(html, '') <> '' OR coalesce(text, '') <> '')
);
COMMENT ON INDEX email_bodies_pkey IS 'The bodies of the emails that a worker has claimed.';
COMMENT ON TABLE email_bodies IS 'Apart from emails, whose rows are listed; read once, by the worker that sends.';

CREATE TABLE email_events (
  email_id   text COLLATE "C" NOT NULL,
  id         text COLLATE "C" NOT NULL,
  type       text NOT NULL CHECK (type IN (
               'email.queued', 'email.scheduled', 'email.rescheduled', 'email.sent', 'email.delivery_delayed',
               'email.delivered', 'email.opened', 'email.clicked', 'email.bounced', 'email.complained',
               'email.suppressed', 'email.canceled', 'email.rejected', 'email.failed')),
  created_at timestamptz(3) NOT NULL,
  dedupe_key text COLLATE "C",
  PRIMARY KEY (email_id, id)
);
COMMENT ON COLUMN email_events.dedupe_key IS 'What makes a report the same as one before: of a provider, or of the end of one call; NULL where nothing can repeat.';
COMMENT ON INDEX email_events_pkey IS 'The timeline of one email.';
CREATE UNIQUE INDEX email_events_once ON email_events (email_id, dedupe_key) WHERE dedupe_key IS NOT NULL;
COMMENT ON INDEX email_events_once IS 'A provider''s report that is repeated is noted once.';

CREATE TABLE attempts (
  message_id text COLLATE "C" NOT NULL,
  n          integer NOT NULL CHECK (n > 0),
  call       text COLLATE "C" NOT NULL,
  provider   text NOT NULL,
  started_at timestamptz(3) NOT NULL DEFAULT now(),
  ended_at   timestamptz(3),
  outcome    text CHECK (outcome IN ('sent', 'refused', 'again', 'unknown', 'lost', 'risked')),
  detail     text,
  checks     integer NOT NULL DEFAULT 0,
  denied_at  timestamptz(3),
  PRIMARY KEY (message_id, n)
);
COMMENT ON TABLE attempts IS
  'One row per email and provider call, committed before the call: a row without an outcome is a call whose end nobody saw.';
COMMENT ON COLUMN attempts.call IS 'What the provider was told to call this request, to ask about it later.';
COMMENT ON COLUMN attempts.outcome IS
  'sent: taken. refused: for good. again: not taken, worth another try. unknown: it may have been taken. lost: asked, and it was not. risked: nobody could say, and it was sent again.';
COMMENT ON COLUMN attempts.checks IS 'How often the provider was asked about a call whose end nobody saw.';
COMMENT ON COLUMN attempts.denied_at IS 'When the provider first said that it did not have it: counts when it says so again later.';
COMMENT ON INDEX attempts_pkey IS 'The last attempt of one message.';

CREATE TABLE outbox (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  message_id text COLLATE "C" NOT NULL,
  action     text NOT NULL CHECK (action IN ('start', 'reschedule', 'cancel')),
  created_at timestamptz(3) NOT NULL DEFAULT now(),
  tries      integer NOT NULL DEFAULT 0,
  retry_at   timestamptz(3)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
COMMENT ON TABLE outbox IS 'What the relay must still ask of Temporal. Holds minutes of work at most; a row leaves once Temporal has it.';
COMMENT ON COLUMN outbox.retry_at IS 'Set when Temporal refused this very row; NULL rows come first.';
COMMENT ON INDEX outbox_pkey IS 'The relay takes the oldest rows.';
