-- Chat-app messages and SMS share workflows, as emails do.

ALTER TABLE chat_messages ADD COLUMN workflow_id text COLLATE "C";
COMMENT ON COLUMN chat_messages.workflow_id IS
  'The workflow that delivers it, if it shares one; NULL: its own, whose id is that of the message.';
