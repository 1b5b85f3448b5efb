-- without a transaction
-- Lists of messages are of one channel. Reads the tables of messages while they are in use, as 0025 did not.

ALTER TABLE chat_messages VALIDATE CONSTRAINT chat_messages_channel_check;
ALTER TABLE chat_messages VALIDATE CONSTRAINT chat_messages_encoding_check;
ALTER TABLE chat_messages VALIDATE CONSTRAINT chat_messages_status_check;
ALTER TABLE chat_events VALIDATE CONSTRAINT chat_events_type_check;

DROP INDEX CONCURRENTLY IF EXISTS messages_newest;
CREATE INDEX CONCURRENTLY messages_newest ON chat_messages (org_id, channel, created_at, id);
COMMENT ON INDEX messages_newest IS 'The list of an organization''s messages of one channel, newest first.';

DROP INDEX CONCURRENTLY IF EXISTS messages_by_status;
CREATE INDEX CONCURRENTLY messages_by_status ON chat_messages (org_id, channel, status, created_at, id);
COMMENT ON INDEX messages_by_status IS 'The same of one status.';

DROP INDEX CONCURRENTLY IF EXISTS messages_by_recipient;
CREATE INDEX CONCURRENTLY messages_by_recipient ON chat_messages (org_id, channel, "to", created_at, id);
COMMENT ON INDEX messages_by_recipient IS 'The same to one recipient.';

DROP INDEX CONCURRENTLY IF EXISTS outbox_messages;
CREATE INDEX CONCURRENTLY outbox_messages ON outbox (id) WHERE action IN ('chat', 'chat_again', 'message', 'message_again', 'message_reschedule', 'message_cancel');
COMMENT ON INDEX outbox_messages IS 'The relay starts chat-app messages and SMS apart from what concerns email.';
