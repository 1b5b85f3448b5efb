-- Chat-app messages: the numbers they come from, the messages and their timelines.

CREATE TABLE chat_numbers (
  id              text COLLATE "C" PRIMARY KEY,
  org_id          text COLLATE "C" NOT NULL REFERENCES organizations (id),
  number          text COLLATE "C" NOT NULL CHECK (number ~ '^\+[1-9][0-9]{4,14}$'),
  provider        text NOT NULL CHECK (provider IN ('twilio', 'meta')),
  phone_number_id text,
  account_sid     text,
  credentials     bytea,
  created_at      timestamptz(3) NOT NULL DEFAULT now(),
  CHECK ((provider = 'meta') = (phone_number_id IS NOT NULL))
);
COMMENT ON COLUMN chat_numbers.number IS 'E.164.';
COMMENT ON COLUMN chat_numbers.phone_number_id IS 'What Meta calls the number.';
COMMENT ON COLUMN chat_numbers.account_sid IS 'The Twilio account of its own; NULL for the one of the settings.';
COMMENT ON COLUMN chat_numbers.credentials IS 'The token of its own, sealed with a key of SECRET_KEY; NULL for the one of the settings.';
COMMENT ON INDEX chat_numbers_pkey IS 'One number by its id.';
CREATE UNIQUE INDEX chat_numbers_one_holder ON chat_numbers (number);
COMMENT ON INDEX chat_numbers_one_holder IS 'Refuses a number that another organization has connected.';
CREATE INDEX chat_numbers_of_org ON chat_numbers (org_id, created_at, id);
COMMENT ON INDEX chat_numbers_of_org IS 'Accepting a message: which number is it from? And the list of an organization''s numbers.';

CREATE TABLE chat_templates (
  number_id   text COLLATE "C" NOT NULL,
  name        text NOT NULL,
  language    text NOT NULL,
  content_sid text NOT NULL,
  variables   text[] NOT NULL,
  PRIMARY KEY (number_id, name, language)
);
COMMENT ON TABLE chat_templates IS 'Which of Twilio''s contents a template of a number is, and the order of its variables.';
COMMENT ON INDEX chat_templates_pkey IS 'Sending a template by Twilio.';

CREATE TABLE chat_messages (
  id                  text COLLATE "C" PRIMARY KEY,
  org_id              text COLLATE "C" NOT NULL,
  number_id           text COLLATE "C" NOT NULL,
  "from"              text COLLATE "C" NOT NULL,
  "to"                text COLLATE "C" NOT NULL,
  country             text NOT NULL CHECK (country ~ '^[A-Z]{2}$'),
  type                text NOT NULL CHECK (type IN ('text', 'template', 'image', 'document')),
  content             json NOT NULL,
  status              text NOT NULL CHECK (status IN ('queued', 'sent', 'delivered', 'read', 'failed')),
  error               text,
  error_code          text,
  provider            text,
  provider_message_id text COLLATE "C",
  created_at          timestamptz(3) NOT NULL,
  last_event_at       timestamptz(3) NOT NULL,
  look_at             timestamptz(3) DEFAULT now() + interval '10 minutes',
  CHECK ((status = 'failed') = (error IS NOT NULL))
);
COMMENT ON COLUMN chat_messages.content IS 'What was given: text, preview_url, template, image, document. json, not jsonb: what is passed on verbatim stays so.';
COMMENT ON COLUMN chat_messages.error_code IS 'The provider''s own code.';
COMMENT ON COLUMN chat_messages.provider IS 'Who took it; NULL until then.';
COMMENT ON COLUMN chat_messages.look_at IS 'When upkeep looks after it; NULL when nothing more is expected.';
COMMENT ON INDEX chat_messages_pkey IS 'One message: shown, changed, claimed.';
CREATE INDEX chat_messages_newest ON chat_messages (org_id, created_at, id);
COMMENT ON INDEX chat_messages_newest IS 'The list of an organization''s messages, newest first.';
CREATE INDEX chat_messages_by_status ON chat_messages (org_id, status, created_at, id);
COMMENT ON INDEX chat_messages_by_status IS 'The same of one status.';
CREATE INDEX chat_messages_by_recipient ON chat_messages (org_id, "to", created_at, id);
COMMENT ON INDEX chat_messages_by_recipient IS 'The same to one number.';
CREATE INDEX chat_messages_to_look_at ON chat_messages (look_at) WHERE look_at IS NOT NULL;
COMMENT ON INDEX chat_messages_to_look_at IS 'Upkeep: messages of which nothing was heard for long.';

CREATE TABLE chat_events (
  message_id text COLLATE "C" NOT NULL,
  id         text COLLATE "C" NOT NULL,
  type       text NOT NULL CHECK (type IN ('chatapp.queued', 'chatapp.sent', 'chatapp.delivered', 'chatapp.read', 'chatapp.failed')),
  created_at timestamptz(3) NOT NULL,
  dedupe_key text COLLATE "C",
  PRIMARY KEY (message_id, id)
);
COMMENT ON COLUMN chat_events.dedupe_key IS 'What makes a report the same as one before; NULL where nothing can repeat.';
COMMENT ON INDEX chat_events_pkey IS 'The timeline of one message.';
CREATE UNIQUE INDEX chat_events_once ON chat_events (message_id, dedupe_key) WHERE dedupe_key IS NOT NULL;
COMMENT ON INDEX chat_events_once IS 'A provider''s report that is repeated is noted once.';

ALTER TABLE attempts ADD COLUMN code text;
COMMENT ON COLUMN attempts.code IS 'The provider''s own code of a refusal, of chat-app messages.';

ALTER TABLE outbox
  DROP CONSTRAINT outbox_action_check,
  ADD CONSTRAINT outbox_action_check CHECK (action IN ('start', 'leave', 'group', 'reschedule', 'cancel', 'webhook', 'chore', 'chat', 'chat_again'));
COMMENT ON COLUMN outbox.message_id IS 'The email or chat-app message; for a group the workflow that shall carry it, for a webhook the endpoint, for a chore its name.';
CREATE INDEX outbox_chats ON outbox (id) WHERE action IN ('chat', 'chat_again');
COMMENT ON INDEX outbox_chats IS 'The relay starts chat-app messages apart from what speaks of email.';
