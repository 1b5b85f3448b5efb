-- AMBIGUOUS_SEND_MAX_REPEATS limits how often a recipient may get a message again. The attempts of a marketing email are about
-- different copies, so repeats are counted for each copy.

ALTER TABLE email_recipients ADD COLUMN repeats smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN email_recipients.repeats IS
  'How often a copy was sent again, up to its last call, although an earlier call may have delivered it.';
