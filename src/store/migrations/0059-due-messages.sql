-- without a transaction
-- The backlog counts scheduled chat-app messages and SMS from their time on, as it does emails.

DROP INDEX CONCURRENTLY IF EXISTS chat_messages_scheduled;
CREATE INDEX CONCURRENTLY chat_messages_scheduled ON chat_messages (scheduled_at) WHERE status = 'scheduled';
COMMENT ON INDEX chat_messages_scheduled IS 'The backlog: scheduled messages that are due, longest due first.';
