-- What the page of one email tells besides types and times: details of timeline entries, and which email was resent as which.

ALTER TABLE email_events ADD COLUMN detail jsonb;
COMMENT ON COLUMN email_events.detail IS
  'What the entry says besides its type, where there is something: the clicked link, the answer of a server, the times of a reschedule (EventDetail).';
ALTER TABLE chat_events ADD COLUMN detail jsonb;
COMMENT ON COLUMN chat_events.detail IS 'The same of messages.';
ALTER TABLE emails ADD COLUMN resend_of text COLLATE "C", ADD COLUMN resent_as text[] COLLATE "C";
COMMENT ON COLUMN emails.resend_of IS 'The email that this one repeats; NULL for all that were posted by the API.';
COMMENT ON COLUMN emails.resent_as IS 'The emails that repeat this one, oldest first; NULL without one.';
