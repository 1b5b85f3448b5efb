-- The copies of a marketing email know the call that they were last part of: those that were never tried go first, and an
-- ambiguous call that is not repeated fails its own copies only. An earlier version leaves it NULL.

ALTER TABLE email_recipients ADD COLUMN call text COLLATE "C";
COMMENT ON COLUMN email_recipients.call IS 'The last provider call of a copy, whose ids sort by time; NULL before the first.';
COMMENT ON COLUMN attempts.outcome IS
  'sent: accepted, or of several copies a part. refused: rejected permanently. again: not accepted, to be retried. account: refused because of our account; does not count as an attempt. unknown: ambiguous. lost: looked up, and not accepted. risked: it could not be looked up, and the message was sent again.';
