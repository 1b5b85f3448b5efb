-- The API key of a batch is stored once instead of with each of its members: every change of an email writes its row again.

ALTER TABLE batches ADD COLUMN key_id text COLLATE "C";
COMMENT ON COLUMN batches.key_id IS 'The API key that it was accepted with; NULL for batches of versions without this column.';
COMMENT ON COLUMN emails.key_id IS
  'The API key that it was accepted with; NULL for members of a batch, which has it, for emails of the dashboard and of versions without this column.';
