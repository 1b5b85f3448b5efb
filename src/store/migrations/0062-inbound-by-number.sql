-- A number that is connected again has another id. The messages that it received are found by the number itself, so that a connection
-- writes none of their rows.
-- on purpose: version 0.1.0 has no such table, and the index has no entries until the first row with a number.

ALTER TABLE chat_inbound
  ADD COLUMN number text COLLATE "C",
  ADD COLUMN provider text;
COMMENT ON COLUMN chat_inbound.number_id IS 'The connection that received it, which may have been replaced since.';
COMMENT ON COLUMN chat_inbound.number IS
  'The number that received it, E.164. NULL in rows of an earlier version, whose number is found by number_id.';
COMMENT ON COLUMN chat_inbound.provider IS 'The provider that has its file. NULL in rows of an earlier version.';
COMMENT ON INDEX chat_inbound_once IS 'Records a repeated callback once, also if an earlier version has recorded it.';
CREATE UNIQUE INDEX chat_inbound_by_number ON chat_inbound (org_id, number, provider_message_id) WHERE number IS NOT NULL;
COMMENT ON INDEX chat_inbound_by_number IS
  'Records a repeated callback once, also after its number is connected again; finds the message of a reaction or reply.';
