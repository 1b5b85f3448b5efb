-- The content of chat-app messages and SMS is encrypted at rest, with the data keys of organizations, and expires as that of emails.
-- Data keys are rotated.

ALTER TABLE chat_messages ADD COLUMN sealed_content bytea, ADD COLUMN has_fallback boolean;
-- Ciphertext does not compress.
ALTER TABLE chat_messages ALTER COLUMN sealed_content SET STORAGE EXTERNAL;
COMMENT ON COLUMN chat_messages.content IS
  'The content of the request, in rows from before encryption; otherwise the JSON value null. json, not jsonb, to keep the order of fields.';
COMMENT ON COLUMN chat_messages.sealed_content IS
  'The content of the request, encrypted: text, preview_url, template, image, document, fallback_template. NULL in rows from before encryption, and once it is erased.';
COMMENT ON COLUMN chat_messages.has_fallback IS
  'Whether the encrypted content has a fallback_template. NULL in rows from before encryption.';

ALTER TABLE organizations ADD COLUMN messages_expired_at timestamptz(3), ADD COLUMN messages_expired_id text COLLATE "C";
COMMENT ON COLUMN organizations.messages_expired_at IS
  'With messages_expired_id, the same of its chat-app messages and SMS.';
COMMENT ON COLUMN organizations.body_retention_days IS
  'Days after which the content of its messages is erased; 0 is never, NULL is the setting BODY_RETENTION_DAYS.';

ALTER TABLE data_keys ADD COLUMN seals bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN data_keys.seals IS
  'Values that the key has encrypted. Processes add them late, so it may be some 65,536 for each process too low.';
COMMENT ON TABLE data_keys IS
  'Keys that encrypt the content of an organization''s messages. Without its row, the content cannot be read.';

COMMENT ON TABLE held_bodies IS
  'Messages whose content is kept beyond its retention, since they are not sent yet or were sent late. Few rows.';
COMMENT ON COLUMN held_bodies.email_id IS 'The email, chat-app message or SMS.';
COMMENT ON TABLE erased_recipients IS
  'Erased addresses, telephone numbers and ids of users that remain suppressed, without the address itself.';
COMMENT ON COLUMN erased_recipients.hash IS
  'HMAC-SHA256 of the address in lower case, the number in E.164, or the id, with a key of the organization''s data key.';
