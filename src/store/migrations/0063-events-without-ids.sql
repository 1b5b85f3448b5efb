-- The id of an event serves its webhooks only. Events of organizations without endpoints, most of all rows, do without it.

ALTER TABLE email_events ALTER COLUMN id DROP NOT NULL;
COMMENT ON COLUMN email_events.id IS 'The id of its webhook event; NULL if its organization had no endpoint.';
COMMENT ON COLUMN email_events.recipient IS
  'The recipient, in lower case; NULL for an event of the whole email, and if the email has only this one.';
