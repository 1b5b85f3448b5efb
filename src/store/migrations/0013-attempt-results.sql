-- The result of a provider call is committed in `attempts` before it is applied to its message: when applying it is blocked or
-- its worker dies, the next claim applies it instead of sending the message again.

ALTER TABLE attempts ADD COLUMN provider_message_id text;
COMMENT ON COLUMN attempts.provider_message_id IS 'With the outcome sent: the provider''s id of the message. NULL for copies.';

ALTER TABLE attempts ADD COLUMN changes jsonb;
COMMENT ON COLUMN attempts.changes IS
  'What the provider''s answer changes, where outcome, detail and provider_message_id do not tell: bounces, and the copies of a marketing email. NULL once it has been applied.';
