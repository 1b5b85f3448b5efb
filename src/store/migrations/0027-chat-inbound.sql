-- Messages of chat-app users: who they are, when they last wrote, and their files.

ALTER TABLE chat_numbers ADD COLUMN receives_since timestamptz(3);
COMMENT ON COLUMN chat_numbers.receives_since IS
  'When its first message from a user arrived. A day later it is known of every user whether its customer-service window is open.';

CREATE TABLE chat_contacts (
  id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  org_id          text COLLATE "C" NOT NULL,
  number          text COLLATE "C" NOT NULL,
  wa_number       text COLLATE "C" CHECK (wa_number ~ '^\+[1-9][0-9]{4,14}$'),
  user_id         text COLLATE "C",
  former_user_id  text COLLATE "C",
  username        text,
  last_inbound_at timestamptz(3),
  CHECK (wa_number IS NOT NULL OR user_id IS NOT NULL)
);
COMMENT ON TABLE chat_contacts IS 'Users who have written to a number of an organization. They are written under a lock of the number.';
COMMENT ON COLUMN chat_contacts.number IS 'The number of the organization, E.164: it stays when the number is connected again.';
COMMENT ON COLUMN chat_contacts.wa_number IS 'E.164; NULL while the user withholds it.';
COMMENT ON COLUMN chat_contacts.user_id IS 'Business-scoped; NULL for a user who has not written since providers report it.';
COMMENT ON COLUMN chat_contacts.former_user_id IS 'The id before the last change: late callbacks have it.';
COMMENT ON COLUMN chat_contacts.last_inbound_at IS 'When the user wrote last; for 24 hours after it, free text may be sent. NULL if only a change of its id is known.';
COMMENT ON INDEX chat_contacts_pkey IS 'One contact, to update it.';
CREATE UNIQUE INDEX chat_contacts_by_user_id ON chat_contacts (org_id, number, user_id) WHERE user_id IS NOT NULL;
COMMENT ON INDEX chat_contacts_by_user_id IS 'A callback, and the claim of a message to a user id.';
CREATE UNIQUE INDEX chat_contacts_by_number ON chat_contacts (org_id, number, wa_number) WHERE wa_number IS NOT NULL;
COMMENT ON INDEX chat_contacts_by_number IS 'A callback, and the claim of a message to a number.';
CREATE INDEX chat_contacts_by_former_id ON chat_contacts (org_id, number, former_user_id) WHERE former_user_id IS NOT NULL;
COMMENT ON INDEX chat_contacts_by_former_id IS 'The same by the id before the last change.';

CREATE TABLE chat_inbound (
  id                  text COLLATE "C" PRIMARY KEY,
  org_id              text COLLATE "C" NOT NULL,
  number_id           text COLLATE "C" NOT NULL,
  provider_message_id text COLLATE "C" NOT NULL,
  media               text,
  content_type        text,
  filename            text,
  received_at         timestamptz(3) NOT NULL DEFAULT now(),
  CHECK ((media IS NULL) = (content_type IS NULL))
);
COMMENT ON TABLE chat_inbound IS 'Messages of chat-app users, kept 30 days. Their text is in the webhook event only.';
COMMENT ON COLUMN chat_inbound.media IS 'Where the provider has the file: Meta''s id, or the path at Twilio.';
COMMENT ON INDEX chat_inbound_pkey IS 'The file of one message. Upkeep: ids begin with the time, the oldest are deleted first.';
CREATE UNIQUE INDEX chat_inbound_once ON chat_inbound (number_id, provider_message_id);
COMMENT ON INDEX chat_inbound_once IS 'A callback that is repeated is recorded once; a reaction or reply to the message.';
