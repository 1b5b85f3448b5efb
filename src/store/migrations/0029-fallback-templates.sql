-- Chat-app messages that are sent as a template when the recipient's customer-service window is closed.

ALTER TABLE chat_messages ADD COLUMN fallback_at timestamptz(3);
COMMENT ON COLUMN chat_messages.fallback_at IS
  'Since when the message goes out as the fallback_template of its content; NULL while it goes out as it was given.';
