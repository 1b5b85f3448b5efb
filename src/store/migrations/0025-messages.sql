-- SMS beside chat-app messages; both can be scheduled and tagged.
-- NOT VALID: 0028 checks the rows that exist, without a lock that stops requests.

ALTER TABLE chat_messages
  ADD COLUMN channel text NOT NULL DEFAULT 'chatapp',
  ADD CONSTRAINT chat_messages_channel_check CHECK (channel IN ('chatapp', 'sms')) NOT VALID,
  ADD COLUMN scheduled_at timestamptz(3),
  ADD COLUMN schedule_version integer NOT NULL DEFAULT 0,
  ADD COLUMN tags jsonb NOT NULL DEFAULT '[]',
  ADD COLUMN encoding text,
  ADD CONSTRAINT chat_messages_encoding_check CHECK (encoding IN ('gsm7', 'ucs2')) NOT VALID,
  ADD COLUMN segments integer,
  DROP CONSTRAINT chat_messages_check,
  DROP CONSTRAINT chat_messages_status_check,
  ADD CONSTRAINT chat_messages_status_check CHECK (status IN ('queued', 'scheduled', 'sent', 'delivered', 'read', 'undelivered', 'failed', 'canceled', 'suppressed')) NOT VALID;
COMMENT ON COLUMN chat_messages.number_id IS 'The chat-app number, or the sender of an SMS.';
COMMENT ON COLUMN chat_messages.schedule_version IS 'Grows with each reschedule; a workflow claims only the version that its timer was set for.';
COMMENT ON COLUMN chat_messages.encoding IS 'Of an SMS.';
COMMENT ON COLUMN chat_messages.segments IS 'Of an SMS: the number of parts that it is sent in.';

ALTER TABLE chat_events
  DROP CONSTRAINT chat_events_type_check,
  ADD CONSTRAINT chat_events_type_check CHECK (type IN ('chatapp.queued', 'chatapp.scheduled', 'chatapp.rescheduled', 'chatapp.sent', 'chatapp.delivered', 'chatapp.read', 'chatapp.failed', 'chatapp.canceled', 'sms.queued', 'sms.scheduled', 'sms.rescheduled', 'sms.sent', 'sms.delivered', 'sms.undelivered', 'sms.failed', 'sms.canceled', 'sms.suppressed')) NOT VALID;

CREATE TABLE message_tags (
  org_id     text COLLATE "C" NOT NULL,
  channel    text NOT NULL,
  name       text COLLATE "C" NOT NULL,
  value      text COLLATE "C" NOT NULL,
  created_at timestamptz(3) NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (org_id, channel, name, value, created_at, message_id)
);
COMMENT ON TABLE message_tags IS 'One row for each tag of a chat-app message or SMS.';
COMMENT ON INDEX message_tags_pkey IS 'The list of an organization''s messages with one tag, newest first.';

ALTER TABLE outbox
  DROP CONSTRAINT outbox_action_check,
  ADD CONSTRAINT outbox_action_check CHECK (action IN ('start', 'leave', 'group', 'reschedule', 'cancel', 'webhook', 'chore', 'chat', 'chat_again', 'domain', 'message', 'message_again', 'message_reschedule', 'message_cancel'));
