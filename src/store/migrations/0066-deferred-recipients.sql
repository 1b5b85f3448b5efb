-- Recipients that a server deferred while it accepted or refused others get the email later: their rows are queued, like unsent copies
-- of a marketing email. The column tells such emails apart, so that others need no search for rows. It has no default, since a NULL
-- takes no space.

ALTER TABLE emails ADD COLUMN deferred boolean;
COMMENT ON COLUMN emails.deferred IS
  'True once a server deferred some of its recipients and answered finally about others: those of its rows in email_recipients that are queued are sent to later. NULL otherwise.';
COMMENT ON TABLE email_recipients IS
  'Recipients whose status differs from that of their email: reported individually, suppressed, with a copy of a marketing email, or of an email with deferred recipients.';
COMMENT ON COLUMN email_recipients.status IS 'queued: a copy that is not sent yet, or a recipient that was deferred.';
COMMENT ON COLUMN email_recipients.call IS
  'The last provider call of a copy, or of a recipient of an email with deferred ones, whose ids sort by time. NULL before the first; empty if that call deferred the recipient, so that it certainly did not deliver it.';
COMMENT ON COLUMN email_recipients.repeats IS
  'How often it was sent again, up to its last call, although an earlier call may have delivered it.';
